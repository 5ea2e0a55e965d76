"""Runs that are overdue in the end because their job had its share of the workers, and those that are stuck."""

from __future__ import annotations

import pytest

from proof.checker.events import Claimed, History, Received, Recorded, Waited, WaitingRow
from proof.checker.ledger import Ledger, Live
from proof.checker.story import Story
from proof.checker.worker_share import had_its_share

NOW = 1_700_000_000_000
END = 60_000
NODES = ("a", "b", "c")


def call(node: str, begin: int, *, job: int = 1) -> History:
    run = f"{job}-{node}-{begin}"
    asked = {"target": {"type": "function", "function": "work:task"}}
    at, db = begin + 5, NOW + begin + 5
    return [
        Claimed(at=begin, db=NOW + begin, node=node, run=run, token=1),
        Received(at=at, db=db, run=run, job=job, token=1, answer="ok", took=900, node=node, asked=asked),
        Recorded(at=begin + 980, node=node, run=run, token=1, outcome="ok"),
    ]


def excused(
    *, nodes: tuple[str, ...] = NODES, job: int = 1, idle: range = range(0), workers: int = 2, turned_away: bool = True
) -> bool:
    """Each of these nodes has one call of this job after the other, but for those that would begin in `idle`."""
    row = WaitingRow(token=1, due=NOW + 20_000, tries=0)
    history: History = []
    if turned_away:
        waited = Waited(at=20_010, db=NOW + 20_010, node="a", run="1-waits", token=1, host="job:1", before=row, now=row)
        history.append(waited)
    for node in nodes:
        for begin in range(20_000, END, 1000):
            if begin not in idle:
                history += call(node, begin, job=job)
    live = Live(
        id="1-waits",
        job=1,
        slot=NOW + 20_000,
        kind="scheduled",
        cursor=False,
        state="pending",
        due_at=NOW + 20_000,
        ready_at=NOW + 20_000,
        parked=None,
        token=1,
        node=None,
    )
    ledger = Ledger(at=END, now=NOW + END, jobs=[], live=[live], entries=[], slots={"function": workers}, nodes=3)
    story = Story(sorted(history, key=lambda event: event.at), ledger)
    return had_its_share(story, live, since=END - 15_000)


def test_a_job_that_had_its_share_of_each_node_to_the_end():
    assert excused()


@pytest.mark.parametrize("idle", [range(45_000, 47_000), range(50_000, 52_000), range(58_000, END), range(END)])
def test_a_job_whose_share_was_free_for_two_seconds(idle):
    assert not excused(idle=idle)


def test_a_job_that_one_node_did_nothing_for():
    assert not excused(nodes=("a", "b"))


def test_a_job_that_might_have_had_more_workers():
    assert not excused(workers=4)


def test_workers_that_another_job_had():
    assert not excused(job=2)


def test_a_run_that_was_never_turned_away():
    assert not excused(turned_away=False)
