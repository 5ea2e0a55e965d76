"""Renders an error as a page for browsers instead of a problem document: what happened, and what to do next."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import root_of
from onthedot.api.http.problems import Problem
from onthedot.web.templating import render, render_alone

__all__ = ["problem_page", "waiting_page"]

LOOK_AGAIN = 5
"""Seconds until a 503 page reloads itself. One that follows a form does not: it would send the form again."""
TITLES = {
    401: "Your session has ended",
    403: "Not allowed",
    404: "Not found",
    405: "Nothing to see here",
    409: "Not possible right now",
    413: "Too large",
    422: "Not accepted",
}

LISTS = (
    ("/jobs", "All jobs"),
    ("/runs", "All runs"),
    ("/operations", "All operations"),
    ("/nodes", "All nodes"),
    ("/destinations", "All destinations"),
    ("/settings", "Settings"),
)
"""Where to go on from the address of something that is not there."""


def problem_page(request: Request, problem: Problem) -> str:
    is_form = request.method == "POST"
    again = LOOK_AGAIN if problem.status == 503 and not is_form else None
    plain = root_of(request) + request.scope["path"]
    title = TITLES.get(problem.status, problem.title)
    inside = request.scope.get("principal") is not None and problem.status != 401
    path = str(request.scope["path"])
    return render(
        request,
        "problem_inside.html" if inside else "problem.html",
        problem=problem,
        problem_title=title,
        again=again,
        is_form=is_form,
        here_plain=plain,
        inside=inside,
        list=next((each for each in LISTS if path.startswith(each[0] + "/")), None),
    )


def waiting_page(problem: Problem, root: str) -> str:
    """The same for a node that has no application yet: it waits for its database."""
    return render_alone(
        "problem.html",
        root,
        problem=problem,
        problem_title=problem.title,
        again=LOOK_AGAIN,
        is_form=False,
        here_plain="",
        inside=False,
        list=None,
    )
