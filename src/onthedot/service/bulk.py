"""Bulk operations: one verb for all that match, with progress; started, counted, listed, paused, resumed, aborted."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.errors import FieldProblem, Invalid
from onthedot.model.bulk import (
    DEAD_VERBS,
    BackfillParams,
    BulkCount,
    BulkFilter,
    BulkOperation,
    BulkRequest,
    BulkVerb,
    DiscardParams,
    NoParams,
    PauseParams,
    RedriveParams,
    RunParams,
    TagParams,
)
from onthedot.model.decoding import convert, to_builtins
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.schedule import SCHEDULE_KINDS
from onthedot.model.struct import Strict
from onthedot.model.targets.registry import target_types
from onthedot.service.base import ServiceBase
from onthedot.service.repeats import IdempotencyKey, idempotency
from onthedot.store import Page
from onthedot.store.abandoned_requests import acting
from onthedot.store.runs.row import is_run_id

__all__ = ["BulkVerbs"]

_PARAMS: dict[BulkVerb, type[Strict]] = {
    "pause": PauseParams,
    "resume": NoParams,
    "run": RunParams,
    "delete": NoParams,
    "tag": TagParams,
    "backfill": BackfillParams,
    "redrive": RedriveParams,
    "discard": DiscardParams,
}
_OF_LETTERS = ("job_id", "cause", "since", "until")
_INSTANTS = ("next_before", "next_after", "since", "until")
_RFC_3339 = "RFC 3339, such as 2026-03-01T00:00:00Z"


class BulkVerbs(ServiceBase):
    async def count_operation(self, tenant: int, asked: BulkRequest) -> BulkCount:
        """How many match now, and the first of them. Changes nothing."""
        return await self.store.count_operation(tenant, _checked(asked, await self.time.now()))

    async def start_operation(
        self, tenant: int, asked: BulkRequest, idempotency_key: IdempotencyKey | None = None
    ) -> BulkOperation:
        checked = _checked(asked, await self.time.now())
        repeat = idempotency("operation", idempotency_key, body=asked)
        started = await self.store.start_operation(tenant, checked, actor=acting().name, idempotency=repeat)
        await self.store.notify("operations")
        return started

    async def get_operation(self, tenant: int, operation_id: int) -> BulkOperation:
        return await self.store.get_operation(tenant, operation_id)

    async def list_operations(self, tenant: int, limit: int = 50, cursor: str | None = None) -> Page[BulkOperation]:
        return await self.store.list_operations(tenant, limit=limit, cursor=cursor)

    async def abort_operation(
        self, tenant: int, operation_id: int, idempotency_key: IdempotencyKey | None = None
    ) -> BulkOperation:
        repeat = idempotency("abort", idempotency_key, operation_id)
        return await self.store.abort_operation(tenant, operation_id, idempotency=repeat)

    async def pause_operation(
        self, tenant: int, operation_id: int, idempotency_key: IdempotencyKey | None = None
    ) -> BulkOperation:
        repeat = idempotency("pause_operation", idempotency_key, operation_id)
        return await self.store.pause_operation(tenant, operation_id, idempotency=repeat)

    async def resume_operation(
        self, tenant: int, operation_id: int, idempotency_key: IdempotencyKey | None = None
    ) -> BulkOperation:
        repeat = idempotency("resume_operation", idempotency_key, operation_id)
        resumed = await self.store.resume_operation(tenant, operation_id, idempotency=repeat)
        await self.store.notify("operations")
        return resumed


def _checked(asked: BulkRequest, now: int) -> BulkRequest:
    """With its params as they are kept, or Invalid with all that is wrong."""
    problems = [*_wrong_selection(asked)]
    params: dict[str, Any] = {}
    try:
        given = convert(asked.params or {}, _PARAMS[asked.verb], path="params")
    except Invalid as invalid:
        problems += invalid.problems
    else:
        problems += _wrong_params(given, now)
        if isinstance(given, BackfillParams) and given.by_slot and len(set(asked.ids or ())) != 1:
            accepted = "ids with one job"
            problems.append(
                FieldProblem(path="ids", message="by_slot requires a single job", given=None, accepted=accepted)
            )
        params = {name: value for name, value in to_builtins(_filled_in(given)).items() if value is not None}
    if problems:
        raise Invalid(problems)
    return msgspec.structs.replace(asked, params=params)


def _wrong_selection(asked: BulkRequest) -> list[FieldProblem]:
    if (asked.filter is None) == (asked.ids is None):
        what = "is required" if asked.filter is None else "can't be combined with ids"
        accepted = "either filter or ids; an empty filter selects everything"
        return [FieldProblem(path="filter", message=what, given=None, accepted=accepted)]
    if asked.filter is not None:
        return _wrong_filter(asked.verb, asked.filter)
    letters, problems = asked.verb in DEAD_VERBS, list[FieldProblem]()
    for place, each in enumerate(asked.ids or ()):
        fits = is_run_id(each) if letters else isinstance(each, int) and 1 <= each < 2**63
        if not fits:
            accepted = "run IDs of dead letters" if letters else "job IDs (positive integers)"
            problems.append(FieldProblem(path=f"ids[{place}]", message="not valid", given=each, accepted=accepted))
    return problems[:20]


def _wrong_filter(verb: BulkVerb, wanted: BulkFilter) -> list[FieldProblem]:
    said = {name: value for name in wanted.__struct_fields__ if (value := getattr(wanted, name)) is not None}
    letters, problems = verb in DEAD_VERBS, list[FieldProblem]()
    known = [name for name in wanted.__struct_fields__ if (name in _OF_LETTERS) == letters]
    for name, value in said.items():
        if name not in known:
            message = f"does not apply to {verb}"
            problems.append(
                FieldProblem(path=f"filter.{name}", message=message, given=value, accepted=", ".join(known))
            )
        elif name in _INSTANTS and parse_rfc3339(value) is None:
            problems.append(_no_instant(f"filter.{name}", value))
    for name, words in (("target", target_types()), ("schedule", SCHEDULE_KINDS)):
        if name in said and said[name] not in words:
            problems.append(
                FieldProblem(path=f"filter.{name}", message="unknown", given=said[name], accepted=", ".join(words))
            )
    return problems


def _wrong_params(given: Strict, now: int) -> list[FieldProblem]:
    if isinstance(given, PauseParams) and given.until is not None:
        until = parse_rfc3339(given.until)
        if until is None:
            return [_no_instant("params.until", given.until)]
        if until <= now:
            after = f"a time after {format_instant(now)}"
            return [FieldProblem(path="params.until", message="is in the past", given=given.until, accepted=after)]
    if isinstance(given, TagParams) and not (given.add or given.remove):
        accepted = "at least one tag in add or remove"
        return [FieldProblem(path="params", message="has no tag", given=None, accepted=accepted)]
    if isinstance(given, TagParams) and (both := sorted(set(given.add) & set(given.remove))):
        return [FieldProblem(path="params.remove", message="is also in add", given=both, accepted="tags not in add")]
    if isinstance(given, BackfillParams):
        instants = {name: parse_rfc3339(getattr(given, name)) for name in ("start", "end")}
        wrong = [_no_instant(f"params.{name}", getattr(given, name)) for name, at in instants.items() if at is None]
        if not wrong and (instants["end"] or 0) < (instants["start"] or 0):
            accepted = f"a timestamp after {given.start}"
            wrong = [FieldProblem(path="params.end", message="is before start", given=given.end, accepted=accepted)]
        return wrong
    return []


def _filled_in(given: Strict) -> Strict:
    """Who waits for the first results wants them to count."""
    if isinstance(given, RedriveParams) and given.first is not None and given.stop_at_failures is None:
        return msgspec.structs.replace(given, stop_at_failures=given.first)
    return given


def _no_instant(path: str, given: str) -> FieldProblem:
    return FieldProblem(path=path, message="not a valid timestamp", given=given, accepted=_RFC_3339)
