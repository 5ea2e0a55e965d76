"""Rows of `runs` and `history` → RunView, as people see them."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.model.destination import read_waiting
from onthedot.model.instant import format_instant
from onthedot.model.result import read_result
from onthedot.model.run import Attempt, AttemptView, RunStatus, RunView
from onthedot.store.driver import Row
from onthedot.store.runs.row import CALLBACK, decode_attempts

__all__ = ["history_view", "live_status", "live_view"]


def live_status(row: Row, now: int) -> RunStatus:
    """A claimed run is shown as PENDING until it is due or begun: a node holds it ahead, nothing has happened yet."""
    if row["state"] == "running" and (row["begun_at"] is not None or row["due_at"] <= now):
        return "EXECUTING"
    return "PENDING"


def live_view(row: Row, now: int, *, full: bool = False) -> RunView:
    attempts = decode_attempts(row["attempts"])
    last = attempts[-1] if attempts else None
    running = row["state"] == "running"
    waiting = None if running or row["parked"] or not row["waiting"] else read_waiting(row["requires"])
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
        params=_params(row),
        waiting=CALLBACK if row["open"] == CALLBACK else None if waiting is None else row["waiting"],
        waiting_since=None if waiting is None else _instant(row["waiting_since"]),
        waiting_for=None if waiting is None else waiting.destination,
        progress=None if row["progress"] is None else msgspec.json.decode(row["progress"]),
        result=None if full else msgspec.UNSET,
    )


def history_view(row: Row, *, full: bool = False) -> RunView:
    """`full`: with its result, which a list leaves out."""
    outcome = None if row["outcome"] is None else msgspec.json.decode(row["outcome"])
    result = None if outcome is None else read_result(outcome, row["result"] if full else None)
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
        params=_params(row),
        result=result if full else msgspec.UNSET,
    )


def _history_attempts(row: Row) -> list[AttemptView]:
    """A run that ended at its first attempt does not keep it twice: the row itself says all of it."""
    if row["attempts"] is not None:
        return [_attempt_view(attempt) for attempt in decode_attempts(row["attempts"])]
    if not row["token"] or row["outcome"] is None:
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
        )
    ]


def _attempt_view(attempt: Attempt) -> AttemptView:
    return AttemptView(
        attempt=attempt.attempt,
        node=attempt.node,
        started_at=_instant(attempt.started_at),
        finished_at=format_instant(attempt.finished_at),
        outcome=attempt.outcome,
        error=attempt.error,
    )


def _params(row: Row) -> dict[str, Any] | None:
    text = row["params"]
    return None if text is None else msgspec.json.decode(text, type=dict[str, Any])


def _instant(ms: int | None) -> str | None:
    return None if ms is None else format_instant(ms)
