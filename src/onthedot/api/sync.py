"""Jobs kept in a file: make those of one source what the file says, all of it or nothing."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar.response.base import ASGIResponse

from onthedot.api import answers
from onthedot.api.batch import BREATH
from onthedot.api.bodies import read_json
from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.idempotency import idempotency_key
from onthedot.api.operations import MIB, Req, operation
from onthedot.clock import Clock
from onthedot.errors import FieldProblem, Invalid
from onthedot.model.decoding import convert
from onthedot.model.job import JobSpec
from onthedot.model.struct import Strict
from onthedot.store import SyncReport

__all__ = ["routes"]

NAMED_MOST = 100  # problems that one answer names


class Sync(Strict, frozen=True, kw_only=True):
    """`source` names the file; `prune` removes its jobs that are no longer in it; `dry_run` only tells.

    `adopt` takes over jobs of these keys that are another file's, or were made by hand. `former` is a name that the
    file had before: its jobs under that one are taken over. `file` says which file it is (`host:/path`), where the
    source is only its name: another may have that, too, so that only what came from this very file is removed from
    PostgreSQL; `kept` in the answer names the rest.
    """

    source: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    jobs: Annotated[list[JobSpec], msgspec.Meta(max_length=10_000)]
    prune: bool = False
    dry_run: bool = False
    adopt: bool = False
    file: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)] | None = None
    former: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


class _Envelope(Strict, frozen=True, kw_only=True):
    """The same with its jobs still undecoded."""

    source: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    jobs: Annotated[list[Any], msgspec.Meta(max_length=10_000)]
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
async def sync_jobs(request: Req) -> ASGIResponse:
    """Make the jobs of a file what the file says.

    The same again changes nothing; a changed job keeps its history. One wrong job, and nothing is applied.
    """
    asked = await read_json(request, _Envelope)
    specs = await _decode(asked.jobs, context_of(request).clock)
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
    return answers.json(report)


async def _decode(items: list[Any], clock: Clock) -> list[JobSpec]:
    """One by one, with a look at the rest of the world in between: 10,000 wrong jobs held the loop for seconds."""
    specs: list[JobSpec] = []
    problems: list[FieldProblem] = []
    for place, item in enumerate(items):
        try:
            specs.append(convert(item, JobSpec, path=f"jobs[{place}]"))
        except Invalid as invalid:
            problems.extend(invalid.problems)
        if len(problems) >= NAMED_MOST:
            break
        if place % BREATH == 0:
            await clock.sleep(0)
    if problems:
        raise Invalid(problems[:NAMED_MOST])
    return specs


routes = [sync_jobs]
