"""Runs, current and past, newest first."""

from __future__ import annotations

from typing import Any, get_args

from starlette.requests import Request
from starlette.responses import StreamingResponse

from onthedot.api.auth import still_may_listen
from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import EmptyBody, read_optional_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.if_match import version_named
from onthedot.api.http.paging import PAGING, RunList, page_answer
from onthedot.api.http.path_ids import job_of_run, run_id_of, run_named
from onthedot.api.http.problems import HttpProblem
from onthedot.api.http.query_params import choice, flag, instant, integer, read_query, text
from onthedot.api.http.responses import HttpResponse, bundle_answer
from onthedot.api.operations import operation
from onthedot.api.routes.job_routes import on_job
from onthedot.api.routes.log_stream import LogStream
from onthedot.model.bundle import IncidentBundle
from onthedot.model.run import RunStatus, RunView, TriggerKind
from onthedot.model.run_comparison import RunComparison
from onthedot.model.struct import Strict
from onthedot.store import RunFilter

__all__ = ["JOB_ID", "routes"]

JOB_ID = integer("job_id", "Runs of this job", 1, 2**63 - 1)
OF_A_JOB = (
    choice(
        "status", "Runs with this status; runs that are not due yet are listed only with PENDING", get_args(RunStatus)
    ),
    instant("since", "Runs scheduled for this instant or later"),
    instant("until", "Runs scheduled for this instant or earlier"),
    text("q", "Runs whose error, or whose reason for not being carried out, contains this text", longest=200),
    text("node", "Runs that the node with this ID has, or had last", longest=100),
    choice("trigger", "Runs started by this", get_args(TriggerKind)),
    flag(
        "late", "Whether they started more than one second after they were due, or are overdue by as much", default=None
    ),
    *PAGING,
)
JOB_KEY = text("key", "Runs of the job with this key", longest=200)
FILTERS = (JOB_ID, JOB_KEY, *OF_A_JOB)
COMPARED = (run_named("with", "ID of the run to compare with; default: the last one before it that succeeded"),)
FOLLOW = (flag("follow", "Keep streaming new output as server-sent events"),)


@operation("GET", "/v1/runs", "read", group="Runs", query=FILTERS, answers={200: RunList})
async def list_runs(request: Request) -> HttpResponse:
    """List runs.

    Current and past runs, newest first; runs that are not due yet are listed only with `status=PENDING`. With `q`,
    `node`, `trigger`, `late` or `status=DONE` a page looks at 2,000 runs of each kind and can be short, or even empty,
    and still have a `next`.
    """
    asked = read_query(request.scope["query_string"], FILTERS)
    key = asked.pop("key")
    return page_answer(request, await service_of(request).list_runs(tenant_of(request), RunFilter(**asked), key))


@on_job("GET", "runs", "read", group="Runs", query=OF_A_JOB, answers={200: RunList})
async def list_job_runs(request: Request, job_id: int) -> HttpResponse:
    """List a job's runs.

    The history of a deleted job is available under `/v1/runs?job_id=`.
    """
    service, tenant = service_of(request), tenant_of(request)
    asked = read_query(request.scope["query_string"], OF_A_JOB)
    await service.get_job(tenant, job_id)
    return page_answer(request, await service.list_runs(tenant, RunFilter(job_id=job_id, **asked)))


@operation("GET", "/v1/runs/{run_id}", "read", group="Runs", answers={200: RunView})
async def get_run(request: Request) -> HttpResponse:
    """Read a run.

    Includes its last 20 attempts, and the request and the response of the last one. The request is made of the job as
    it was when the attempt started, with secrets masked; it is null if the run has not started, or if its job was
    deleted.
    """
    return responses.json(await service_of(request).inspect_run(tenant_of(request), run_id_of(request)))


@operation("GET", "/v1/runs/{run_id}/bundle", "read", group="Runs", answers={200: IncidentBundle})
async def bundle_run(request: Request) -> HttpResponse:
    """Download an incident bundle.

    All that is known of the run in one file to hand on: its attempts, request, response and log, the job and its
    versions near the run, why it was fired, incidents and changes around it, its destination, and the nodes. Secrets
    are masked wherever they stand: those of the job, values with a secret name such as `password`, and what looks like
    a credential.
    """
    run_id = run_id_of(request)
    return bundle_answer(await service_of(request).bundle_run(tenant_of(request), run_id), f"run-{run_id}")


@operation("GET", "/v1/runs/{run_id}/compare", "read", group="Runs", query=COMPARED, answers={200: RunComparison})
async def compare_runs(request: Request) -> HttpResponse:
    """Compare two runs.

    The run beside the one that `with` names, or beside the last run of its job before it that succeeded; 404 if there
    is none among the 2,000 before it. `differences` names what differs: results, errors, the job's version, params,
    and what was sent and answered. IDs and times, which differ between any two runs, are left out.
    """
    other = read_query(request.scope["query_string"], COMPARED)["with"]
    return responses.json(await service_of(request).compare_runs(tenant_of(request), run_id_of(request), other))


@operation(
    "GET", "/v1/runs/{run_id}/logs", "read", group="Runs", query=FOLLOW, answers={200: "text/plain"}, problems=(429,)
)
async def run_logs(request: Request) -> HttpResponse | StreamingResponse:
    """Read a run's log.

    The output so far, at most the last 64 KB. With `follow=true` as server-sent events: `log` with each new piece of
    text until the run ends, then `end` with its status.
    """
    service, tenant, run_id = service_of(request), tenant_of(request), run_id_of(request)
    text = await service.run_logs(tenant, run_id) or ""
    if not read_query(request.scope["query_string"], FOLLOW).get("follow"):
        return responses.plain(text)
    context = context_of(request)
    if context.streams.full:
        raise HttpProblem(429, "too many open event streams on this node", {"retry-after": "5"})
    stream = LogStream(service, context.clock, tenant, run_id)
    following = context.streams.serve(stream, may_listen=lambda: still_may_listen(request, tenant))
    return responses.event_stream(following)


@operation(
    "POST",
    "/v1/runs/{run_id}/cancel",
    "write",
    group="Runs",
    body=EmptyBody,
    body_required=False,
    answers={202: RunView},
    problems=(409,),
    idempotent=True,
    conditional=True,
)
async def cancel_run(request: Request) -> HttpResponse:
    """Cancel a run.

    Immediately if it is pending; if it is executing, its node stops it. `If-Match` refers to the version of its job.
    """
    run_id, _ = run_id_of(request), await read_optional_json(request, EmptyBody)
    run = await service_of(request).cancel_run(
        tenant_of(request), run_id, await idempotency_key(request), await version_named(request, job_of_run(run_id))
    )
    return responses.json(run, 202)


class RetryBody(Strict, frozen=True, kw_only=True):
    """`params` override those of the job for this run."""

    params: dict[str, Any] | None = None


@operation(
    "POST",
    "/v1/runs/{run_id}/retry",
    "write",
    group="Runs",
    body=RetryBody,
    body_required=False,
    answers={201: RunView},
    problems=(409,),
    idempotent=True,
    conditional=True,
)
async def retry_run(request: Request) -> HttpResponse:
    """Retry a run.

    Creates a new run of the same slot; the finished run does not change. `params` are those of the new run, instead of
    those of the finished one. `If-Match` refers to the version of its job.
    """
    run_id, asked = run_id_of(request), await read_optional_json(request, RetryBody)
    key, version = await idempotency_key(request), await version_named(request, job_of_run(run_id))
    run = await service_of(request).retry_run(tenant_of(request), run_id, key, version, asked.params)
    return responses.json(run, 201, {"location": f"/v1/runs/{run.id}"})


routes = [list_runs, *list_job_runs, get_run, bundle_run, compare_runs, run_logs, cancel_run, retry_run]
