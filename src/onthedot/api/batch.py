"""Many jobs in one request: one durable answer per item, in order; a wrong item does not stop the others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from litestar.response.base import ASGIResponse

from onthedot.api import answers
from onthedot.api.bodies import NDJSON_MEDIA, media_of, read_body
from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.idempotency import idempotency_key
from onthedot.api.operations import MIB, Req, operation
from onthedot.api.problems import fields_of
from onthedot.clock import Clock
from onthedot.errors import FieldProblem, Invalid, OnTheDotError, TooLarge, Unreadable
from onthedot.model.decoding import decode_json
from onthedot.model.job import JobSpec, JobView
from onthedot.service import BATCH_LIMIT

__all__ = ["routes"]

BREATH = 100  # items between two looks at the rest of the world: the beat shares this loop


class BatchAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """201 with the job's id, or the status and errors that the item alone would have got."""

    status: int
    id: int | msgspec.UnsetType = msgspec.UNSET
    key: str | msgspec.UnsetType | None = msgspec.UNSET  # null for a job without one
    detail: str | None = None
    errors: list[FieldProblem] = msgspec.field(default_factory=list)


@operation(
    "POST",
    "/v1/jobs/batch",
    "write",
    group="Jobs",
    body=list[JobSpec],
    media=("application/json", *NDJSON_MEDIA),
    answers={200: list[BatchAnswer]},
    idempotent=True,
    limit=16 * MIB,
)
async def create_jobs(request: Req) -> ASGIResponse:
    """Create many jobs.

    Up to 5,000 at once, as a JSON array or as one JSON object per line (NDJSON).
    The answer has one entry per item, in the same order. Each item stands for itself.
    """
    clock, raw = context_of(request).clock, await read_body(request)
    media, _ = media_of(request.headers.get("content-type", ""))
    items = _lines(raw) if media in NDJSON_MEDIA else _array(raw)
    if len(items) > BATCH_LIMIT:
        raise TooLarge(f"a batch has at most {BATCH_LIMIT} jobs, this one has {len(items)}")
    specs = [spec async for spec in _decode(items, clock)]
    done = await service_of(request).create_many(tenant_of(request), specs, await idempotency_key(request))
    return answers.json([_answer(item) for item in done])


def _array(raw: bytes) -> list[Any]:
    """The items, still as text: whatever is wrong inside one stays inside it."""
    try:
        return msgspec.json.decode(raw, type=list[msgspec.Raw])
    except msgspec.ValidationError:
        decode_json(raw, Any)  # no JSON at all is another mistake than no list
        accepted = "a list of jobs, or one job per line as application/x-ndjson"
        raise Invalid.one("$", "not a list", accepted=accepted) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Unreadable(f"the body is not valid JSON: {error}") from None


def _lines(raw: bytes) -> list[Any]:
    return [line for line in raw.split(b"\n") if line.strip()]


async def _decode(items: list[Any], clock: Clock) -> AsyncIterator[JobSpec | OnTheDotError]:
    for place, item in enumerate(items):
        try:
            yield decode_json(item, JobSpec)
        except (Invalid, Unreadable) as error:
            yield error
        if place % BREATH == 0:
            await clock.sleep(0)


def _answer(done: JobView | OnTheDotError) -> BatchAnswer:
    if isinstance(done, OnTheDotError):
        return BatchAnswer(**fields_of(done))
    return BatchAnswer(status=201, id=done.id, key=done.key)


routes = [create_jobs]
