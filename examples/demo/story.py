"""How the past runs of a job went: how long they took, how often and why they failed."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from onthedot.model.duration import DAY, HOUR, MINUTE
from onthedot.model.run import Attempt, run_id

__all__ = ["CAUSES", "Cause", "PastRun", "Story", "past_runs"]

NODES = ("anvil-1", "anvil-2", "basalt-1")


class Cause(msgspec.Struct, frozen=True):
    """Why an attempt failed, in the words of the product. `tried_again`: whether that helps with such a failure."""

    outcome: dict[str, Any]
    error: str
    took_ms: int
    tried_again: bool = True


CAUSES: dict[str, Cause] = {
    "unavailable": Cause(
        {"kind": "error", "status_code": 503, "response": '{"error": "maintenance, try again later"}'},
        "the receiver returned 503 Service Unavailable",
        40,
    ),
    "internal": Cause(
        {"kind": "error", "status_code": 500, "response": '{"error": "deadlock detected in table orders"}'},
        "the receiver returned 500 Internal Server Error",
        120,
    ),
    "unprocessable": Cause(
        {"kind": "error", "status_code": 422, "response": '{"error": "unknown warehouse LEJ-2"}'},
        "the receiver returned 422 Unprocessable Content",
        25,
        tried_again=False,
    ),
    "timeout": Cause({"kind": "timeout"}, "timed out after 3 s", 3000),
    "refused": Cause({"kind": "error"}, "can't connect: Connection refused (127.0.0.1, port {port})", 2),
    "mismatch": Cause(
        {"kind": "error", "exception": "ValueError"},
        "ValueError: ledger main: 2 payments without an invoice (DE-20418, DE-20433)",
        400,
        tried_again=False,
    ),
    "diverged": Cause(
        {"kind": "error", "exception": "RuntimeError"},
        "RuntimeError: the model did not converge after 200 iterations",
        1800,
    ),
    "missed": Cause({"kind": "error", "missed": True}, "missed: no check-in within 10m", 600_000, tried_again=False),
    "exit": Cause({"kind": "error", "exit_code": 1}, "exit code 1", 300),
}


class Story(msgspec.Struct, frozen=True, kw_only=True):
    takes_ms: int = 40
    spread: float = 0.35
    fails: float = 0.002  # of first attempts
    causes: tuple[str, ...] = ("internal", "timeout")
    attempts: int = 3
    late_ms: int = 0
    outage: str | None = None  # the cause for which all attempts fail in the outage of three days ago
    broken_for: int = 0  # ms: since then every run has failed
    since: int = 14 * DAY
    log: str | None = None
    result: dict[str, Any] | None = None


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the ledger, and what belongs to it elsewhere."""

    id: str
    slot: int
    status: str
    reason: str | None
    token: int
    tries: int
    node: str
    started_at: int
    finished_at: int
    lateness_ms: int
    duration_ms: int
    outcome: str
    error: str | None
    attempts: str | None
    log: str | None


def past_runs(story: Story, job_id: int, slots: list[int], now: int, port: int) -> list[PastRun]:
    """`port`: of what it calls."""
    dice = random.Random(job_id)  # the same company each time
    return [_run(story, job_id, slot, now, port, dice) for slot in slots]


def _run(story: Story, job_id: int, slot: int, now: int, port: int, dice: random.Random) -> PastRun:
    outage = story.outage if 0 <= slot - (now - now % DAY - 3 * DAY + 14 * HOUR) < 45 * MINUTE else None
    broken = now - slot < story.broken_for
    lateness = _lateness(story, dice) + (dice.randint(2_000, 40_000) if outage and dice.random() < 0.3 else 0)
    node = NODES[dice.randrange(len(NODES))]
    attempts: list[Attempt] = []
    at = slot + lateness
    while True:
        cause = None
        if outage or broken or dice.random() < (story.fails if not attempts else 0.4):
            cause = CAUSES[outage or story.causes[dice.randrange(len(story.causes))]]
        took = max(
            1, round((story.takes_ms if cause is None else cause.took_ms) * dice.lognormvariate(0, story.spread))
        )
        took = max(1, min(took, now - at))  # what takes minutes may have begun just now
        attempts.append(
            Attempt(
                attempt=len(attempts) + 1,
                node=node,
                started_at=at,
                finished_at=at + took,
                outcome="ok" if cause is None else cause.outcome["kind"],
                error=None if cause is None else cause.error.replace("{port}", str(port)),
            )
        )
        if cause is None or not cause.tried_again or len(attempts) >= story.attempts:
            break
        at += took + 1000 * 2 ** (len(attempts) - 1)
    outcome = {"kind": "ok", **({"result": story.result} if story.result else {})} if cause is None else cause.outcome
    return PastRun(
        id=run_id(job_id, slot),
        slot=slot,
        status="done" if cause is None else "failed",
        reason=None if cause is None else "attempts" if cause.tried_again else "not_retryable",
        token=len(attempts),
        tries=len(attempts),
        node=node,
        started_at=at,
        finished_at=at + took,
        lateness_ms=lateness,
        duration_ms=took,
        outcome=msgspec.json.encode(outcome).decode(),
        error=attempts[-1].error,
        attempts=msgspec.json.encode(attempts).decode() if len(attempts) > 1 else None,
        log=story.log,
    )


def _lateness(story: Story, dice: random.Random) -> int:
    if story.late_ms:
        return round(story.late_ms * dice.lognormvariate(0, 0.5))
    return min(round(dice.lognormvariate(0.3, 0.8)), 400)
