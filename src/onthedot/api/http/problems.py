"""Errors as RFC 9457 problem documents: every error has this form, and none contains a stack trace."""

from __future__ import annotations

from typing import Any

from onthedot.api.http.responses import HttpResponse
from onthedot.errors import OnTheDotError
from onthedot.model.decoding import encode_json
from onthedot.service.problems import Problem, describe_error, describe_status

__all__ = ["PROBLEM_MEDIA", "HttpProblem", "Problem", "answer_problem", "problem_of", "problem_response"]

PROBLEM_MEDIA = "application/problem+json"


class HttpProblem(Exception):
    """An error of HTTP itself: 405, 408, 415, 429 …"""

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers or {}


_HEADERS: dict[int, dict[str, str]] = {
    401: {"www-authenticate": 'Bearer realm="onthedot"'},
    429: {"retry-after": "1"},
    503: {"retry-after": "1"},
}


def problem_of(error: Exception) -> tuple[Problem, dict[str, str]]:
    """The document and the headers that go with it."""
    if isinstance(error, HttpProblem):
        problem = describe_status(error.status, "", str(error))
        return problem, {**_HEADERS.get(error.status, {}), **error.headers}
    problem = describe_error(error)
    return problem, _HEADERS.get(problem.status, {})


def answer_problem(error: Exception) -> HttpResponse:
    return problem_response(*problem_of(error))


def problem_response(problem: Problem, headers: dict[str, str]) -> HttpResponse:
    return HttpResponse(encode_json(problem), problem.status, headers, PROBLEM_MEDIA)


def fields_of(error: OnTheDotError) -> dict[str, Any]:
    """An error as one item's answer in a batch."""
    problem, _ = problem_of(error)
    item: dict[str, Any] = {"status": problem.status, "detail": problem.detail}
    if problem.errors:
        item["errors"] = problem.errors
    return item
