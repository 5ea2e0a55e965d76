"""Dead letters: runs that failed permanently. They are listed, grouped by cause, redriven or discarded."""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import read_json, read_optional_json
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.paging import PAGING, page_answer
from onthedot.api.http.path_ids import RUN_ID_PATTERN
from onthedot.api.http.query_params import choice, flag, instant, read_query, text
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.api.routes.job_verbs import NewRuns
from onthedot.api.routes.runs import JOB_ID
from onthedot.errors import Invalid
from onthedot.model.bulk import BulkOperation, Note
from onthedot.model.dead import DeadFilter, DeadGroups, DeadLetterView, DiscardedLetters
from onthedot.model.duration import DAY, HOUR
from onthedot.model.struct import Strict
from onthedot.service.dead_letters import bulk_redrive
from onthedot.store import LetterFilter

__all__ = ["routes"]

SELECTED = (
    JOB_ID,
    text("cause", "Dead letters with exactly this cause", longest=200),
    instant("since", "Dead letters that failed at this instant or later"),
    instant("until", "Dead letters that failed at this instant or earlier"),
)
WINDOWS = {"hour": HOUR, "day": DAY}
GROUPED = (*SELECTED, choice("window", "Group by the time of the failure, too", ("hour", "day")))
FILTERS = (*SELECTED, flag("discarded", "Those that were discarded, instead of those that are open"), *PAGING)
RunId = Annotated[
    str, msgspec.Meta(pattern=f"^{RUN_ID_PATTERN}$", description="the ID of a run, such as 12-1763234567890")
]
Few = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class DeadLetterList(msgspec.Struct, frozen=True):
    """`next` is the URL of the next page, null on the last page."""

    items: list[DeadLetterView]
    next: str | None


class Redrive(Strict, frozen=True, kw_only=True):
    """Which dead letters: those with these ids, those that match `filter`, those of one job, or all; up to `limit`.
    With `first`, `rate` or `stop_at_failures` it is a bulk operation, which has no limit."""

    ids: Annotated[list[RunId], msgspec.Meta(max_length=1000)] | None = None
    job_id: Annotated[int, msgspec.Meta(ge=1)] | None = None
    filter: DeadFilter | None = None
    limit: Few = 1000
    first: Few | None = None
    rate: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    stop_at_failures: Few | None = None

    @property
    def in_background(self) -> bool:
        return not (self.first is None and self.rate is None and self.stop_at_failures is None)


class Discard(Strict, frozen=True, kw_only=True):
    """Which dead letters: those with these ids, or those that match `filter`, up to `limit`. `note`: why."""

    ids: Annotated[list[RunId], msgspec.Meta(max_length=1000)] | None = None
    filter: DeadFilter | None = None
    note: Note | None = None
    limit: Few = 1000


@operation("GET", "/v1/dead", "read", group="Dead letters", query=FILTERS, answers={200: DeadLetterList})
async def list_dead(request: Request) -> HttpResponse:
    """List dead letters."""
    asked = read_query(request.scope["query_string"], FILTERS)
    wanted = LetterFilter(**{param.name: asked.pop(param.name, None) for param in SELECTED})
    return page_answer(request, await service_of(request).list_dead(tenant_of(request), wanted, **asked))


@operation("GET", "/v1/dead/groups", "read", group="Dead letters", query=GROUPED, answers={200: DeadGroups})
async def group_dead(request: Request) -> HttpResponse:
    """Group dead letters by cause.

    With `window` also by the hour or day in which they failed. The group that failed last comes first. The last 10,000
    dead letters are counted.
    """
    asked = read_query(request.scope["query_string"], GROUPED)
    window = WINDOWS.get(asked.pop("window"))
    return responses.json(await service_of(request).group_dead(tenant_of(request), LetterFilter(**asked), window))


@operation(
    "POST",
    "/v1/dead/redrive",
    "write",
    group="Dead letters",
    body=Redrive,
    body_required=False,
    answers={201: NewRuns, 202: BulkOperation},
    problems=(409,),
    idempotent=True,
    example={"job_id": 1},
)
async def redrive(request: Request) -> HttpResponse:
    """Redrive dead letters.

    Creates a new run for each. With `first`, `rate` or `stop_at_failures` the response is 202 with a bulk operation:
    it redrives `first` of them and waits for their results, then the rest at `rate` per second, and stops when
    `stop_at_failures` runs have failed again.
    """
    asked = await read_optional_json(request, Redrive)
    service, tenant, key = service_of(request), tenant_of(request), await idempotency_key(request)
    wanted = _filter(asked.ids, asked.filter, asked.job_id)
    if not asked.in_background:
        made = await service.redrive(tenant, asked.ids, wanted, asked.limit, key)
        return responses.json(NewRuns(made), 201)
    if asked.ids == []:
        raise Invalid.one("ids", "is empty", given=[], accepted="at least one run ID, or filter")
    bulk = bulk_redrive(asked.ids, wanted, first=asked.first, rate=asked.rate, stop_at_failures=asked.stop_at_failures)
    started = await service.start_operation(tenant, bulk, key)
    return responses.json(started, 202, {"location": f"/v1/operations/{started.id}"})


@operation(
    "POST",
    "/v1/dead/discard",
    "write",
    group="Dead letters",
    body=Discard,
    answers={200: DiscardedLetters},
    idempotent=True,
    example={"ids": ["7-1774656000000"], "note": "the customer has left"},
)
async def discard(request: Request) -> HttpResponse:
    """Discard dead letters.

    They leave the list with a note; the runs stay in the history as they are. `GET /v1/dead?discarded=true` lists them.
    """
    asked = await read_json(request, Discard)
    if asked.ids is None and asked.filter is None:
        accepted = "either filter or ids; an empty filter selects everything"
        raise Invalid.one("filter", "is required", given=None, accepted=accepted)
    wanted = _filter(asked.ids, asked.filter, None)
    closed = await service_of(request).discard(
        tenant_of(request), asked.ids, wanted, asked.note, asked.limit, await idempotency_key(request)
    )
    return responses.json(DiscardedLetters(discarded=closed))


def _filter(ids: list[str] | None, given: DeadFilter | None, job_id: int | None) -> DeadFilter:
    if given is None:
        return DeadFilter(job_id=job_id)
    if ids is not None or job_id is not None:
        other = "ids" if ids is not None else "job_id"
        raise Invalid.one(
            "filter", f"can't be combined with {other}", given=None, accepted="one of filter, ids, job_id"
        )
    return given


routes = [list_dead, group_dead, redrive, discard]
