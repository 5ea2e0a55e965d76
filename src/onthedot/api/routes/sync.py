"""Jobs kept in a file: create, update and remove the jobs of one source to match it, all or nothing."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_body
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.job_lists import job_specs, taken_apart
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import MIB, operation
from onthedot.model.decoding import decode_json
from onthedot.model.job import JobSpec
from onthedot.model.struct import Strict
from onthedot.service.aside import SMALL_BYTES
from onthedot.store import SyncReport

__all__ = ["routes"]

MOST_JOBS = 10_000


class Sync(Strict, frozen=True, kw_only=True):
    """`source` names the file. `prune` removes jobs of the source that are no longer in the file. `dry_run` changes
    nothing and returns what would change.

    `adopt` takes over jobs with these keys that belong to another source or to none. `former` is a previous name of the
    source: its jobs are taken over. `file` identifies the file (`host:/path`) if `source` is only its name, which
    another file may have too: then PostgreSQL removes only jobs that came from this file, and `kept` in the response
    names the others. At most 10,000 jobs (413).
    """

    source: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    jobs: list[JobSpec]
    prune: bool = False
    dry_run: bool = False
    adopt: bool = False
    file: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None
    former: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


class _Envelope(Strict, frozen=True, kw_only=True):
    """The same with its jobs still undecoded."""

    source: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    jobs: Annotated[list[Any], msgspec.Meta(max_length=MOST_JOBS)]
    prune: bool = False
    dry_run: bool = False
    adopt: bool = False
    file: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None
    former: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


@operation(
    "POST",
    "/v1/jobs/sync",
    "write",
    group="Jobs",
    body=Sync,
    answers={200: SyncReport},
    problems=(409,),
    idempotent=True,
    limit=16 * MIB,
    example={
        "source": "jobs.json",
        "jobs": [
            {"key": "ping", "schedule": {"every": "1m"}, "target": {"type": "webhook", "url": "https://example.com"}}
        ],
    },
)
async def sync_jobs(request: Request) -> HttpResponse:
    """Sync jobs with a file.

    Repeating it changes nothing; a changed job keeps its history. If one job is invalid, nothing is applied.
    """
    raw, aside = await read_body(request), service_of(request).aside
    if len(raw) <= SMALL_BYTES:
        asked = decode_json(raw, _Envelope)
        specs = list(job_specs(asked.jobs))
    else:
        asked, items = await taken_apart(raw, aside, _Envelope, most=MOST_JOBS)
        specs = await aside.collect(job_specs(items))
        del items
    del raw
    report = await service_of(request).sync(
        tenant_of(request),
        asked.source,
        specs,
        asked.prune,
        asked.dry_run,
        await idempotency_key(request),
        file=asked.file,
        others="adopt" if asked.adopt else "refuse",
        former=asked.former,
    )
    return responses.json(report)


routes = [sync_jobs]
