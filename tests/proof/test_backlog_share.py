"""A retry that came late because the backlog had its share of the slots taken, and one that came late for no reason."""

from __future__ import annotations

import pytest

from proof.checker.backlog import backlog_was_full
from proof.checker.events import Claimed, History, Received, Recorded
from proof.checker.ledger import Entry, Ledger
from proof.checker.story import Story

NOW = 1_700_000_000_000
NODES = ("a", "b", "c")
READY, AGAIN = 10_000, 18_000
"""When the retry might have been claimed, and when it was."""


def attempt(run: str, begin: int, end: int, *, node: str = "a", token: int = 1) -> History:
    asked = {"target": {"type": "function", "function": "work:task"}}
    return [
        Claimed(at=begin, db=NOW + begin, node=node, run=run, token=token),
        Received(
            at=begin + 2, db=NOW + begin + 2, run=run, job=1, token=token, answer="ok", took=900, node=node, asked=asked
        ),
        Recorded(at=end, node=node, run=run, token=token, outcome="timeout"),
    ]


def entry(run: str, late: int, kind: str = "scheduled") -> Entry:
    return Entry(
        id=run,
        job=1,
        slot=NOW - late,
        until=None,
        slots=None,
        kind=kind,
        due_at=NOW - late,
        status="failed",
        reason="attempts",
        token=2,
        tries=2,
        losses=0,
        finished_at=NOW + AGAIN + 800,
    )


def excused(
    *,
    others: int = 120_000,
    own: int = 120_000,
    idle: tuple[int, int] = (0, 0),
    slots: int = 2,
    kind: str = "scheduled",
    sent: bool = True,
) -> bool:
    """Each node has one run after the other that is `others` ms late, but between these two instants."""
    again = attempt("mine", AGAIN, AGAIN + 800, token=2)
    history = [*attempt("mine", 8000, 8800), *(again if sent else again[:1])]
    entries = [entry("mine", own, kind)]
    for node in NODES:
        for begin in range(8000, AGAIN, 850):
            if not idle[0] <= begin < idle[1]:
                run = f"{node}-{begin}"
                history += attempt(run, begin, begin + 800, node=node)
                entries.append(entry(run, others))
    ledger = Ledger(
        at=30_000, now=NOW + 30_000, jobs=[], live=[], entries=entries, whole=True, slots={"function": slots}, nodes=3
    )
    story = Story(sorted(history, key=lambda event: event.at), ledger)
    return backlog_was_full(story, story.lives.turns["mine"][2], READY)


def test_while_each_node_had_one_of_its_two_slots_taken_by_the_backlog():
    assert excused()


@pytest.mark.parametrize("idle", [(10_000, 13_000), (12_000, 15_000), (15_000, 18_000), (0, 18_000)])
def test_not_while_the_share_was_free(idle):
    """A run that is passed over stands out once the others have had their turn."""
    assert not excused(idle=idle)


def test_not_while_there_was_room_for_more():
    assert not excused(slots=8)


def test_what_is_on_time_takes_nothing_from_the_share():
    assert not excused(others=-5000)


def test_a_retry_that_is_not_late_waits_for_no_share():
    assert not excused(own=20_000)


def test_what_is_driven_again_waits_for_the_share_however_fresh_it_is():
    assert excused(own=20_000, kind="redrive")


def test_a_claim_that_was_given_back_before_it_was_sent_is_of_its_runs_kind():
    assert excused(sent=False)
