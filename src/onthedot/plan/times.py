"""From a slot to the instant it is due, and to the instant it may be claimed."""

from __future__ import annotations

import zlib

from msgspec import UNSET

from onthedot.model.decoding import encode_json
from onthedot.model.instant import NEVER
from onthedot.model.job import JobSpec, JobView
from onthedot.model.policy import Policy
from onthedot.timing import Timetable, compile_schedule

__all__ = ["LOOKAHEAD_MS", "due_at", "laned", "ready_at", "seed_of", "timetable_of"]

LOOKAHEAD_MS = 2000
"""How early a run may be claimed, so that a node can fire it from its heap exactly at its instant."""


def seed_of(spec: JobSpec | JobView) -> str:
    """What `H` in a cron expression hashes: the key; for a job without one its target (it has no id yet)."""
    return spec.key or encode_json(spec.target).decode()


def timetable_of(spec: JobSpec, anchor_at: int) -> Timetable:
    return compile_schedule(spec.schedule, anchor=anchor_at, seed=seed_of(spec))


def laned(policy: Policy) -> bool:
    """Whether a run of the job must know of others before it may run: of its job if they may not overlap, of its
    concurrency group."""
    return policy.overlap != "allow" or policy.concurrency is not UNSET or policy.max_running is not UNSET


def due_at(slot: int, run_id: str, jitter: int) -> int:
    """The instant to fire: the slot, or up to `jitter` later. Derived from the id, so that every node and every retry
    of a transaction says the same; never earlier than the slot."""
    return slot + zlib.crc32(run_id.encode()) % jitter if jitter else slot


def ready_at(due: int, *, lane: bool, lookahead: int = LOOKAHEAD_MS, parked: bool = False) -> int:
    """The instant from which a run may be claimed.

    A laned run is not claimed ahead: whether it may fire depends on what runs at its instant. A parked one never is.
    """
    if parked:
        return NEVER
    return due if lane else due - lookahead
