"""Check-ins: where jobs that run elsewhere report. The token in the URL is the only credential."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from starlette.requests import Request

from onthedot.api.context import service_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_bytes
from onthedot.api.http.problems import HttpProblem
from onthedot.api.http.query_params import read_query, text
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import MIB, Endpoint, operation
from onthedot.errors import NotFound
from onthedot.model.ping import LONGEST_BODY
from onthedot.store import CheckIn

__all__ = ["routes"]

RID = (text("rid", "Id of the run in your own system; shown with the report", longest=100),)
_SIGNALS: dict[str, Any] = {"start": "start", "fail": "fail", "log": "log"}
_WHAT = {"GET": "", "POST": ", with its output", "HEAD": ""}


async def _ping(request: Request) -> HttpResponse:
    """Whatever is wrong with the rest of the address, the token is judged first: nobody learns which ones exist."""
    service, asked = service_of(request), read_query(request.scope["query_string"], RID)
    job_id = await service.pinged_job(request.path_params["token"])
    signal, exit_status = _read_signal(request.path_params.get("signal"))
    if wait := service.ping_rates.wait_for(job_id):
        raise HttpProblem(429, "this job reports too often", {"retry-after": str(math.ceil(wait))})
    body = await read_bytes(request) if request.method == "POST" else b""
    said = body.decode("utf-8", "replace")[-LONGEST_BODY:]
    await service.check_in(job_id, CheckIn(signal=signal, body=said, exit_status=exit_status, rid=asked["rid"]))
    return responses.plain(b"" if request.method == "HEAD" else b"OK\n")


def _read_signal(said: str | None) -> tuple[Any, int | None]:
    if said is None:
        return "success", None
    if said in _SIGNALS:
        return _SIGNALS[said], None
    if said.isascii() and said.isdecimal() and len(said) <= 3 and int(said) <= 255:
        return ("fail" if int(said) else "success"), int(said)
    raise NotFound(f"unknown signal {said[:50]!r}: start, fail, log, or an exit status from 0 to 255")


def _declared(method: Any, path: str, name: str, summary: str, description: str) -> Endpoint:
    declare: Callable[[Any], Endpoint] = operation(
        method,
        path,
        "public",
        group="Check-ins",
        query=RID,
        answers={200: "text/plain"},
        problems=(404, 429),
        limit=MIB,
        listed=method != "HEAD",
        body=None,
    )

    async def report(request: Request) -> HttpResponse:
        return await _ping(request)

    report.__name__ = name
    report.__doc__ = f"{summary}\n\n{description}"
    return declare(report)


_SUCCESS = "Requires no API key: the URL is the credential. Ends every run of the job that waits for its check-in."
_SIGNAL = (
    "`signal`: `start`, `fail`, `log`, or an exit status: 0 is success, 1 to 255 is failure. Requires no API key: the "
    "URL is the credential."
)
routes = [
    *(
        _declared(method, "/ping/{token}", f"ping_{method.lower()}", f"Report success{_WHAT[method]}", _SUCCESS)
        for method in _WHAT
    ),
    *(
        _declared(
            method,
            "/ping/{token}/{signal}",
            f"ping_signal_{method.lower()}",
            f"Report a signal{_WHAT[method]}",
            _SIGNAL,
        )
        for method in _WHAT
    ),
]
