"""Many jobs in one request: one durable result per item, in order; an invalid item does not affect the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http import responses
from onthedot.api.http.bodies import NDJSON_MEDIA, decode_large, media_of, read_body
from onthedot.api.http.idempotency import idempotency_key
from onthedot.api.http.problems import fields_of
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import MIB, operation
from onthedot.errors import FieldProblem, Invalid, OnTheDotError, TooLarge, Unreadable
from onthedot.model.decoding import decode_json, encode_json
from onthedot.model.job import JobSpec, JobView
from onthedot.model.portions import WINDOW, after_list, array_items, line_items, refuse_depth
from onthedot.service import BATCH_LIMIT
from onthedot.service.aside import SMALL_BYTES

__all__ = ["routes"]

FEW = 20  # items that are worked on right away
NAMED_MOST = 20  # problems of one item that the answer names


class BatchAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """201 with the id of the job, or the status and errors that this item would get in a request of its own."""

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
async def create_jobs(request: Request) -> HttpResponse:
    """Create many jobs.

    Up to 5,000 jobs per request, as a JSON array or as one JSON object per line (NDJSON).
    The response has one entry per item, in the same order. An invalid item does not affect the others.
    """
    raw, aside = await read_body(request), service_of(request).aside
    media, _ = media_of(request.headers.get("content-type", ""))
    if len(raw) <= SMALL_BYTES:
        specs = list(_specs(raw, media))
    else:
        specs = await aside.collect(_specs(raw, media))
    del raw
    done = await service_of(request).create_many(tenant_of(request), specs, await idempotency_key(request))
    if len(done) <= FEW:
        return responses.json([_answer(item) for item in done])
    # Written one by one: thousands of refusals in one call would keep everybody waiting.
    return responses.json(await aside.collect(msgspec.Raw(encode_json(_answer(item))) for item in done))


def _specs(raw: bytes, media: str) -> Iterator[JobSpec | OnTheDotError]:
    """Whatever is wrong inside an item stays inside it."""
    items = line_items(raw) if media in NDJSON_MEDIA else _array(raw)
    for place, item in enumerate(items):
        if place == BATCH_LIMIT:
            raise TooLarge(f"a batch can have at most {BATCH_LIMIT} jobs")
        try:
            yield decode_large(item, JobSpec)
        except (Invalid, Unreadable, TooLarge) as error:
            error.__traceback__ = error.__context__ = error.__cause__ = None  # freeing 5,000 took the loop for 30 ms
            yield error


def _array(raw: bytes) -> Iterator[bytes]:
    accepted = "a list of jobs, or one job per line as application/x-ndjson"
    if len(raw) > SMALL_BYTES:
        if raw[:WINDOW].lstrip()[:1] in (b"{", b'"'):
            refuse_depth(raw)
            raise Invalid.one("$", "must be a list", accepted=accepted)
        ends: list[int] = []
        yield from array_items(raw, 0, ends.append)
        after_list(raw, ends[0])
        return
    try:
        yield from map(bytes, msgspec.json.decode(raw, type=list[msgspec.Raw]))
    except msgspec.ValidationError:
        decode_json(raw, Any)  # no JSON at all is another mistake than no list
        raise Invalid.one("$", "must be a list", accepted=accepted) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Unreadable(f"the body is not valid JSON: {error}") from None


def _answer(done: JobView | OnTheDotError) -> BatchAnswer:
    if isinstance(done, OnTheDotError):
        fields = fields_of(done)
        fields["errors"] = fields.get("errors", [])[:NAMED_MOST]
        return BatchAnswer(**fields)
    return BatchAnswer(status=201, id=done.id, key=done.key)


routes = [create_jobs]
