"""Rows of `runs` and `history` → RunView, as people see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from onthedot.model.destination import read_waiting
from onthedot.model.group import MAX_RUNNING, read_group
from onthedot.model.instant import format_instant
from onthedot.model.labels import NodeOffer, missing_labels, read_requires, type_of
from onthedot.model.result import read_result
from onthedot.model.run import Attempt, AttemptView, RecentRun, RefusedResult, RunStatus, RunView, trigger_of
from onthedot.model.targets.registry import find_spec
from onthedot.store.driver import Row
from onthedot.store.runs.row import CALLBACK, OPEN, decode_attempts

__all__ = [
    "asks_for_nodes",
    "decode_params",
    "history_view",
    "live_status",
    "live_view",
    "recent_run",
    "refused_result",
]

CHECK_IN = "check-in"
TAKEN_WITHIN = 1000
"""ms in which a run that is due is usually taken: what asks for no labels is not looked for among the nodes before."""
REASON = 200
"""Characters of the reason that a list shows."""


def live_status(row: Row, now: int) -> RunStatus:
    """A claimed run is shown as PENDING until it is due or begun: a node holds it ahead, nothing has happened yet."""
    if row["state"] == "running" and (row["begun_at"] is not None or row["due_at"] <= now):
        return "EXECUTING"
    return "PENDING"


class _Wait(NamedTuple):
    """What a run waits for, which one of these, and since when: in ms; None: not known."""

    what: str | None = None
    which: str | None = None
    since: int | None = None


_NOTHING = _Wait()


def asks_for_nodes(row: Row, now: int) -> bool:
    """Whether it may wait for a node: one that can take it, or one that reaches the work that goes on without any."""
    if row["open"] == OPEN:
        return True
    if row["state"] != "pending" or row["parked"]:
        return False
    return _since(row) <= (now if "+" in row["requires"] else now - TAKEN_WITHIN)


def _since(row: Row) -> int:
    """When it was due; what is to be retried, or was put back, is due later."""
    return max(int(row["due_at"]), int(row["ready_at"]))


def live_view(row: Row, now: int, *, nodes: Sequence[NodeOffer] = ()) -> RunView:
    """`nodes`: those that live, where the run asks for them."""
    attempts = decode_attempts(row["attempts"])
    last = attempts[-1] if attempts else None
    running = row["state"] == "running"
    waiting = _wait_of(row, now, nodes)
    return RunView(
        id=row["id"],
        job_id=row["job_id"],
        key=row["key"],
        kind=row["kind"],
        scheduled_for=format_instant(row["slot"]),
        due_at=format_instant(row["due_at"]),
        status=live_status(row, now),
        reason=row["parked"],
        attempt=row["token"],
        tries=row["tries"],
        losses=row["losses"],
        node=row["node"] if running else None,
        started_at=_instant(row["begun_at"]) if running else None,
        finished_at=None,
        lateness_ms=None,
        duration_ms=None,
        outcome=None if last is None else {"kind": last.outcome},
        error=None if last is None else last.error,
        attempts=[_attempt_view(attempt) for attempt in attempts],
        params=decode_params(row["params"]),
        trigger=trigger_of(row["kind"], row["parent"], row["asked_by"]),
        waiting=waiting.what,
        waiting_since=_instant(waiting.since),
        waiting_for=waiting.which,
        progress=None if row["progress"] is None else msgspec.json.decode(row["progress"]),
        result=None,
        claimed_at=_instant(row["claimed_at"]) if running else None,
        next_attempt_at=_instant(row["ready_at"]) if attempts and not running and row["ready_at"] > now else None,
    )


def _open_for(row: Row) -> str | None:
    """What an open run waits for. One whose job has reported its start is at work."""
    kind = find_spec(type_of(read_requires(row["requires"]).capability))
    if kind is None or not kind.reports:
        return CALLBACK
    return CHECK_IN if row["progress"] is None else None


def _wait_of(row: Row, now: int, nodes: Sequence[NodeOffer]) -> _Wait:
    if row["open"] == CALLBACK:
        return _Wait(what, since=row["begun_at"]) if (what := _open_for(row)) else _NOTHING
    if row["state"] == "pending":
        return _for_a_node(row, now, nodes) or _in_the_store(row)
    if row["open"] != OPEN or any(row["requires"] in node.capabilities for node in nodes):
        return _NOTHING
    return _Wait("place", row["requires"])


def _for_a_node(row: Row, now: int, nodes: Sequence[NodeOffer]) -> _Wait | None:
    """None: a live node can take it, or it is not looked for."""
    needed = read_requires(row["requires"])
    missing = missing_labels(needed, nodes) if asks_for_nodes(row, now) else None
    if missing is None:
        return None
    if missing:
        return _Wait("label", ", ".join(missing), _since(row))
    return _Wait("capability", needed.capability, _since(row))


def _in_the_store(row: Row) -> _Wait:
    """What a due run waits for by what its row says."""
    what = row["waiting"]
    if what == "group":
        if row["parked"] not in (None, "group") or row["group_key"] is None:
            return _NOTHING
        _, name, _ = read_group(row["group_key"])
        return _Wait(what, MAX_RUNNING if name is None else name, row["waiting_since"])
    place = read_waiting(row["requires"]) if what and not row["parked"] else None
    if place is None:
        return _NOTHING
    if what == "destination" and (kind := find_spec(type_of(row["requires"]))) is not None:
        what = kind.waits_for
    return _Wait(what, place.destination, row["waiting_since"])


def history_view(row: Row, *, full: bool = False) -> RunView:
    """`full`: with its result, also a large one, which a list leaves out."""
    outcome = None if row["outcome"] is None else msgspec.json.decode(row["outcome"])
    result = None if outcome is None else read_result(outcome, row["result"] if full else None)
    left_out = not full and row["large_result"]
    return RunView(
        id=row["id"],
        job_id=row["job_id"],
        key=row["key"],
        kind=row["kind"],
        scheduled_for=format_instant(row["slot"]),
        due_at=format_instant(row["due_at"]),
        status=row["status"].upper(),
        reason=row["reason"],
        attempt=row["token"],
        tries=row["tries"],
        losses=row["losses"],
        node=row["node"],
        started_at=_instant(row["started_at"]),
        finished_at=format_instant(row["finished_at"]),
        lateness_ms=row["lateness_ms"],
        duration_ms=row["duration_ms"],
        outcome=outcome,
        error=row["error"],
        attempts=_history_attempts(row),
        until=_instant(row["until_slot"]),
        slots=row["slots"],
        params=decode_params(row["params"]),
        trigger=trigger_of(row["kind"], row["parent"], row["asked_by"]),
        result=msgspec.UNSET if left_out else result,
    )


def recent_run(row: Row) -> RecentRun:
    """A row of `recent_runs`."""
    return RecentRun(
        id=row["id"],
        status=row["status"].upper(),
        scheduled_for=format_instant(row["slot"]),
        duration_ms=row["duration_ms"],
        lateness_ms=row["lateness_ms"],
        reason=_in_one_line(row["error"] or row["reason"]),
    )


def _in_one_line(text: str | None) -> str | None:
    """The first line that says something, cut: the whole text is in the run."""
    line = next((line.strip() for line in (text or "").splitlines() if line.strip()), None)
    return line if line is None or len(line) <= REASON else line[: REASON - 1] + "…"


def _history_attempts(row: Row) -> list[AttemptView]:
    """A run that ended at its first attempt does not keep it twice: the row itself says all of it."""
    if row["attempts"] is not None:
        kept = decode_attempts(row["attempts"])
        # that of the last attempt stands in its own column: who wrote its JSON had not read the run's row
        return [_attempt_view(each, row["claimed_at"] if each.attempt == row["token"] else None) for each in kept]
    if not row["token"] or row["outcome"] is None or row["status"] == "skipped":
        return []
    outcome: dict[str, Any] = msgspec.json.decode(row["outcome"])
    return [
        AttemptView(
            attempt=row["token"],
            node=row["node"] or "",
            started_at=_instant(row["started_at"]),
            finished_at=format_instant(row["finished_at"]),
            outcome=str(outcome.get("kind")),
            error=row["error"],
            claimed_at=_instant(row["claimed_at"]),
        )
    ]


def refused_result(row: Row) -> RefusedResult:
    return RefusedResult(
        attempt=row["token"],
        node=row["node"],
        started_at=_instant(row["started_at"]),
        finished_at=format_instant(row["finished_at"]),
        outcome=row["outcome"],
        error=row["error"],
        refused_at=format_instant(row["refused_at"]),
    )


def _attempt_view(attempt: Attempt, claimed_at: int | None = None) -> AttemptView:
    return AttemptView(
        attempt=attempt.attempt,
        node=attempt.node,
        started_at=_instant(attempt.started_at),
        finished_at=format_instant(attempt.finished_at),
        outcome=attempt.outcome,
        error=attempt.error,
        claimed_at=_instant(attempt.claimed_at if claimed_at is None else claimed_at),
    )


def decode_params(text: str | None) -> dict[str, Any] | None:
    return None if text is None else msgspec.json.decode(text, type=dict[str, Any])


def _instant(ms: int | None) -> str | None:
    return None if ms is None else format_instant(ms)
