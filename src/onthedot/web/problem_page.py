"""Renders an error as a page for browsers instead of a problem document."""

from __future__ import annotations

from onthedot.api.http.problems import Problem
from onthedot.web.templating import render

__all__ = ["problem_page"]

LOOK_AGAIN = 5
"""Seconds until a 503 page reloads itself."""


def problem_page(problem: Problem) -> str:
    return render("problem.html", problem=problem, again=LOOK_AGAIN if problem.status == 503 else None)
