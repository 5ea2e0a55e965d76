"""What went wrong, as a page: a person in a browser should not have to read a problem document."""

from __future__ import annotations

from onthedot.api.http.problems import Problem
from onthedot.web.templating import render

__all__ = ["problem_page"]

LOOK_AGAIN = 5
"""Seconds after which a page that could not be made is asked for again."""


def problem_page(problem: Problem) -> str:
    return render("problem.html", problem=problem, again=LOOK_AGAIN if problem.status == 503 else None)
