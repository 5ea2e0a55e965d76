"""From an address to the operation that serves it: Starlette's routes, one per path, and no way around the guard."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from starlette.requests import Request
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from onthedot.api.auth import guard
from onthedot.api.http import responses
from onthedot.api.http.problems import HttpProblem, Problem, problem_of, problem_response
from onthedot.api.operations import OPERATION, Endpoint
from onthedot.errors import Forbidden

__all__ = ["ApiRouter", "Resource", "UndeclaredRoute", "check_declared"]

ProblemPage = Callable[[Request, Problem], str]
_HOST = re.compile(rb"[0-9A-Za-z!$&'()*+,;=\-._~:\[\]@%]*")


class UndeclaredRoute(Exception):
    """A route does not declare who may call it; the app is not built."""


class Resource:
    """The operations of one path, by method. Each request passes the guard first."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self.endpoints: dict[str, Endpoint] = {each.operation.method: each for each in endpoints}
        self.allowed = ", ".join(sorted(self.endpoints))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self.endpoints.get(scope["method"])
        if endpoint is None:
            raise HttpProblem(405, f"method not allowed; this path accepts {self.allowed}", {"allow": self.allowed})
        scope[OPERATION] = endpoint.operation
        request = Request(scope, receive)
        response: ASGIApp
        try:
            await guard(request)
            response = await endpoint.function(request)
        except Exception as error:
            response = _problem(request, endpoint.operation.problem_page, error)
        await response(scope, receive, send)


class ApiRouter(Router):
    """Literal paths come before patterns: `/v1/jobs/batch` is no job. Empty parts of a path are ignored."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        by_path: dict[str, list[Endpoint]] = {}
        for each in endpoints:
            by_path.setdefault(each.operation.path, []).append(each)
        routes = [Route(path, Resource(by_path[path])) for path in sorted(by_path, key=_generality)]
        super().__init__(routes, redirect_slashes=False)
        self._problem_page = next((page for each in endpoints if (page := each.operation.problem_page)), None)
        self._literal = {route.path: route for route in routes if not route.param_convertors}

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.lifespan(scope, receive, send)
            return
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        if not _HOST.fullmatch(host):
            raise HttpProblem(400, "invalid Host header")
        scope["path"] = "/" + "/".join([part for part in scope["path"].split("/") if part])
        try:
            route = self._find(scope)
        except HttpProblem as error:
            if self._problem_page is None or not _from_browser(scope):
                raise
            request = Request(scope, receive)
            await _problem(request, self._problem_page, error)(scope, receive, send)
            return
        if not isinstance(getattr(route, "app", None), Resource):
            raise Forbidden("this route does not declare who may call it, so access is denied")
        await route.handle(scope, receive, send)

    def _find(self, scope: Scope) -> BaseRoute:
        """The first route that matches; the path's parameters are in the scope then."""
        path: str = scope["path"]
        if (literal := self._literal.get(path)) is not None:
            return literal
        for route in self.routes:
            match, found = route.matches(scope)
            if match is not Match.NONE and not path.endswith("\n"):  # which a pattern's `$` lets through
                scope.update(found)
                return route
        raise HttpProblem(404, "no such path; /docs lists all paths")


def check_declared(routes: Sequence[BaseRoute]) -> None:
    """UndeclaredRoute if one is not reached by way of the guard."""
    for route in routes:
        if not isinstance(getattr(route, "app", None), Resource):
            raise UndeclaredRoute(f"{getattr(route, 'path', route)} names no scope and is not declared public")


def _generality(path: str) -> list[bool]:
    """Literal parts first: `by-key/{key}` comes before `{job_id}/run`."""
    return [part.startswith("{") for part in path.split("/")]


def _problem(request: Request, page: ProblemPage | None, error: Exception) -> ASGIApp:
    problem, headers = problem_of(error)
    if page is not None and problem.status >= 400:
        return responses.html(page(request, problem), problem.status, headers)
    return problem_response(problem, headers)


def _from_browser(scope: Scope) -> bool:
    """A person who mistyped the address of a page; programs and the paths of the API get problem documents."""
    accepts = next((value for name, value in scope["headers"] if name == b"accept"), b"")
    return b"text/html" in accepts and scope["method"] == "GET" and not scope["path"].startswith("/v1")
