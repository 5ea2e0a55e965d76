"""Overlap: what becomes of a run whose job may already have one running."""

from __future__ import annotations

from typing import Literal

from onthedot.model.policy import Overlap
from onthedot.model.run import RunKind

__all__ = ["LaneMove", "on_lane"]

LaneMove = Literal["run", "skip", "wait", "replace"]
"""run: the lane is free. skip: give the slot up, `overlap` in the ledger. wait: park until the lane is released.
replace: order the holder to stop, drop whoever waits, and wait for the lane."""


def on_lane(
    overlap: Overlap, kind: RunKind, *, first: bool, held: bool, waited_for: bool, newer: bool = False
) -> LaneMove:
    """Decided on what runs *now*, under the job's lock.

    first: this run was never claimed before. held: another run of the lane is running. waited_for: a scheduled run
    waits already. newer: one of these is the firing of a later slot. Only a slot's own first firing is subject to the
    policy: what a person asked for (manual, backfill, redrive) and what has begun already (a retry) waits for its turn,
    it is not dropped.
    """
    if not held:
        return "run"
    if overlap == "allow" or kind != "scheduled" or not first:
        return "wait"
    if overlap == "skip":
        return "skip"
    if overlap == "replace":
        return "skip" if newer else "replace"  # the older never takes the lane from the newer
    return "skip" if waited_for else "wait"
