"""Later results: what receivers of calls with `completion: callback` report. The token is the only credential."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import service_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_json
from onthedot.api.http.path_ids import run_id_of
from onthedot.api.http.query_params import read_query, text
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import KIB, operation
from onthedot.model.callback import Completion, Progress
from onthedot.model.run import RunView

__all__ = ["routes"]

TOKEN = (text("token", "Token of the callback URL, from the header x-onthedot-callback", longest=100),)


@operation(
    "POST",
    "/v1/runs/{run_id}/complete",
    "public",
    group="Runs",
    query=TOKEN,
    body=Completion,
    answers={200: RunView},
    problems=(401, 404, 409),
    limit=256 * KIB,
    example={"status": "done", "result": {"rows": 1200}},
)
async def complete_run(request: Request) -> HttpResponse:
    """Complete a run.

    For the receiver of a call with `completion: callback`; requires the token of the callback URL and no API key. A
    repeated report returns the run and changes nothing; 409 if that try has ended otherwise.
    """
    run_id, token = run_id_of(request), read_query(request.scope["query_string"], TOKEN)["token"]
    told = await read_json(request, Completion)
    return responses.json(await service_of(request).complete_run(run_id, token, told))


@operation(
    "POST",
    "/v1/runs/{run_id}/progress",
    "public",
    group="Runs",
    query=TOKEN,
    body=Progress,
    answers={204: None},
    problems=(401, 404, 409),
    limit=16 * KIB,
    example={"percent": 40, "message": "1200 of 3000 rows"},
)
async def report_progress(request: Request) -> HttpResponse:
    """Report the progress of a run.

    For the receiver of a call with `completion: callback`; requires the token of the callback URL and no API key. Does
    not extend `completion_timeout`. At most one report per second is stored for each run, the last one in any case.
    """
    run_id, token = run_id_of(request), read_query(request.scope["query_string"], TOKEN)["token"]
    await service_of(request).report_progress(run_id, token, await read_json(request, Progress))
    return responses.no_content()


routes = [complete_run, report_progress]
