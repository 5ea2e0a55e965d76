"""Jobs kept in a file: create, update and remove the jobs of one source to match it, all or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated, Any

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_body
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import MIB, operation
from onthedot.errors import FieldProblem, Invalid, TooLarge, Unreadable
from onthedot.model.decoding import convert, decode_json, decode_loose
from onthedot.model.job import JobSpec
from onthedot.model.portions import check_values, object_parts
from onthedot.model.struct import Strict
from onthedot.service.aside import SMALL_BYTES, Aside
from onthedot.store import SyncReport

__all__ = ["routes"]

NAMED_MOST = 100  # problems that one answer names
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
        specs = list(_specs(asked.jobs))
    else:
        asked, items = await _taken_apart(raw, aside)
        specs = await aside.collect(_specs(items))
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


async def _taken_apart(raw: bytes, aside: Aside) -> tuple[_Envelope, list[bytes]]:
    """What stands beside the jobs, and each of them as it is written."""
    parts = await aside.collect(islice(object_parts(raw, b'"jobs"'), MOST_JOBS + 10))
    items = [value for name, value in parts if name is None]
    if len(items) > MOST_JOBS:
        raise TooLarge(f"a sync can have at most {MOST_JOBS} jobs")
    fields = [name + b":" + value for name, value in parts if name is not None]
    return decode_json(b"{" + b",".join(fields) + b"}", _Envelope), items


def _specs(items: Iterable[Any]) -> Iterator[JobSpec]:
    """As written, or decoded already. Stops when there are enough problems to name."""
    problems: list[FieldProblem] = []
    for place, item in enumerate(items):
        try:
            loose = item
            if isinstance(item, bytes):
                check_values(item)
                loose = decode_loose(item)
            spec = convert(loose, JobSpec, path=f"jobs[{place}]")
            if not problems:
                yield spec
        except Invalid as invalid:
            problems.extend(invalid.problems)
        except TooLarge as error:
            problems.append(FieldProblem(path=f"jobs[{place}]", message=str(error), accepted="a smaller job"))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise Unreadable(f"the body is not valid JSON: {error} (in jobs[{place}])") from None
        if len(problems) >= NAMED_MOST:
            break
    if problems:
        raise Invalid(problems[:NAMED_MOST])


routes = [sync_jobs]
