"""Two runs side by side: a failed one beside the last good one, or any two."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.path_ids import run_id_of, run_named
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import NotFound
from onthedot.model.run import RunView
from onthedot.web.job_titles import titles_of
from onthedot.web.page import asked_of, page, show
from onthedot.web.parts import load_all
from onthedot.web.run_compare import compare_in_full
from onthedot.web.run_story import story_of

__all__ = ["routes"]

ASKED = (run_named("with", "Id of the other run; default: the last one before it that succeeded"),)
LOG_SHOWN = 8192
"""Characters of the end of each log; the page of a run has all that is kept."""


@page("/runs/{run_id}/compare", query=ASKED)
async def comparison(request: Request) -> HttpResponse:
    """Compare two runs."""
    run_id, other = run_id_of(request), asked_of(request, ASKED)["with"]
    service, tenant = service_of(request), tenant_of(request)
    run = await service.get_run(tenant, run_id)
    clock = context_of(request).clock
    try:
        found = await service.compare_runs(tenant, run_id, other)
    except NotFound:
        if other is not None:
            raise
        titles = await titles_of(clock, service, tenant, [run])
        return await show(request, "run_comparison.html", found=None, run=run, title=titles[run.job_id])
    both = found.run, found.other
    parts = await load_all(
        clock,
        names=service.node_names(each.node for one in both for each in (one, *one.attempts, *(one.refused or ()))),
        this_log=service.run_logs(tenant, found.run.id),
        other_log=service.run_logs(tenant, found.other.id),
    )
    titles = await titles_of(clock, service, tenant, both)
    names = parts["names"].value or {}
    return await show(
        request,
        "run_comparison.html",
        found=found,
        run=run,
        title=titles[run.job_id],
        other_title=titles[found.other.job_id],
        by_default=other is None,
        lines=compare_in_full(found),
        sides=[
            (one, story_of(one, names), _end_of(parts[log].value), _answer(one))
            for one, log in ((found.run, "this_log"), (found.other, "other_log"))
        ],
    )


def _end_of(log: str | None) -> str:
    return (log or "")[-LOG_SHOWN:]


def _answer(run: RunView) -> str | None:
    return run.response.body if run.response else None


routes = [comparison]
