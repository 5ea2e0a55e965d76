"""What the verdict on real processes adds to the checker, the clock it goes by, the figures and the page."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from proof.chaos.clock import TrueTime
from proof.chaos.figures import figures_of
from proof.chaos.nemesis import Harm
from proof.chaos.record import read_received
from proof.chaos.run import Result
from proof.chaos.verdict import judge
from proof.checker.events import Claimed, Crashed, Fault, History, Lost, Made, Received, Recorded
from proof.checker.ledger import Entry, Job, Ledger
from proof.report import told, write_report

START = 1_700_000_000_000
POLICY = {"timeout": "3s", "retry": {"attempts": 3}}


def one_run(*, sends: list[Received], policy: dict[str, Any] | None = None, **entry: Any) -> tuple[History, Ledger]:
    """A one-off job due at 10 s whose run ended as told."""
    spec = {
        "schedule": {"at": "2023-11-14T22:13:30Z"},
        "target": {"type": "webhook"},
        "policy": policy or POLICY,
        "params": {"mark": 1},
    }
    made = Made(at=0, until=5, mark=1, job=1, spec=spec, created_at=START)
    row: dict[str, Any] = {"status": "done", "reason": None, "token": sends[-1].token if sends else 1, "tries": 1}
    row |= entry
    ended = Entry(
        id="1-1700000010000",
        job=1,
        slot=START + 10_000,
        until=None,
        slots=None,
        kind="scheduled",
        due_at=START + 10_000,
        losses=0,
        finished_at=START + 11_000,
        **row,
    )
    ledger = Ledger(at=60_000, now=START + 60_000, jobs=[Job(id=1, spec=spec, state="ended")], live=[], entries=[ended])
    claims = [
        Claimed(at=send.at - 1, db=send.db - 1, node=send.node or "", run=send.run, token=send.token) for send in sends
    ]
    records = [Recorded(at=send.at + 50, node=send.node or "", run=send.run, token=send.token) for send in sends[-1:]]
    history: History = [made, *claims, *sends, *records]
    history.sort(key=lambda event: event.at)
    return history, ledger


def send(at: int, token: int = 1, node: str = "a", **fields: Any) -> Received:
    given: dict[str, Any] = {"answer": "ok", "took": 5, **fields}
    return Received(at=at, db=START + at, run="1-1700000010000", job=1, token=token, node=node, **given)


def kinds(history: History, ledger: Ledger, *, alone: bool = False) -> set[str]:
    return {violation.kind for violation in judge(history, ledger, alone=alone)[1]}


def test_a_run_that_went_well() -> None:
    assert kinds(*one_run(sends=[send(10_003)])) == set()


def test_a_process_that_ended_by_itself_is_a_violation() -> None:
    history, ledger = one_run(sends=[send(10_003)])
    assert kinds([*history, Crashed(at=1, node="exec0", error="ended with 1")], ledger) == {"crashed"}


def test_a_repeat_needs_the_loss_of_its_node_and_the_loss_a_fault() -> None:
    history, ledger = one_run(sends=[send(10_003), send(16_000, 2, "b")])
    assert "repeated" in kinds(history, ledger)
    lost = [*history, Lost(at=15_500, node="a", silent=5200)]
    assert kinds(lost, ledger) == {"lost_node"}
    assert kinds([*lost, Fault(at=10_010, until=10_010, what="kill", node="a")], ledger) == set()
    assert kinds([*lost, Fault(at=10_010, until=10_010, what="kill", node="c")], ledger) == {"lost_node"}
    assert kinds([*lost, Fault(at=10_010, until=10_010, what="sigterm", node="a")], ledger) == {"lost_node"}


def test_who_holds_the_sqlite_file_may_bury_the_others_at_once() -> None:
    history, ledger = one_run(sends=[send(10_003), send(10_500, 2, "b")])
    history += [Lost(at=10_400, node="a", silent=300), Fault(at=10_010, until=10_010, what="kill_at", node="a")]
    assert kinds(history, ledger) == {"robbed"}
    assert kinds(history, ledger, alone=True) == set()


@pytest.mark.parametrize(("frozen_at", "excused"), [(10_010, True), (9000, False)])
def test_after_a_thaw_only_what_was_due_before_the_freeze_is_excused(frozen_at: int, excused: bool) -> None:
    """Frozen at 10.01 s it may have had the request in its hands; frozen at 9 s it started it after its lease."""
    history, ledger = one_run(sends=[send(16_000, 2, "b"), send(20_020, 1, "a")], token=2)
    history += [Lost(at=15_500, node="a", silent=5200), Fault(at=frozen_at, until=20_000, what="freeze", node="a")]
    found = kinds(history, ledger)
    assert ("zombie" in found) != excused


def test_recorded_as_tried_and_killed_before_the_send() -> None:
    at_most_once = {**POLICY, "delivery": "at_most_once"}
    history, ledger = one_run(sends=[], policy=at_most_once, status="failed", reason="unknown")
    assert kinds(history, ledger) == set()
    history, ledger = one_run(sends=[], policy=at_most_once, status="failed", reason="attempts", tries=3)
    assert kinds(history, ledger) == {"tries"}


def test_a_try_that_never_left_its_node_must_be_a_time_out_in_the_ledger() -> None:
    history, ledger = one_run(sends=[send(16_000, 2)], tries=2)
    assert kinds(history, ledger) == {"tries"}
    run = ledger.entries[0].id
    assert judge(history, ledger, timeouts={(run, 1): (START + 10_000, START + 13_000)})[1] == []
    assert judge(history, ledger, timeouts={(run, 2): (START + 10_000, START + 13_000)})[1] != []


def test_the_answer_counts_from_when_it_could_be_heard(tmp_path: Path) -> None:
    clock = TrueTime()
    file = tmp_path / "received.jsonl"
    mono, real = clock.began_mono + 1_000_000, clock.began_real + 1_000_000
    lines = [f'[{mono},{real},"1-1",1,{token},"a","ok",20]' for token in (1, 2, 3, 4)]
    file.write_text("\n".join(lines))
    came = real // 1000
    gave_up = {
        ("1-1", 2): (came, came + 10),
        ("1-1", 3): (came - 1, came + 5000),
        ("1-1", 4): (came - 900, came + 2100),
    }
    plain, timed_out, later, overwhelmed = read_received(file, clock, [], gave_up)
    assert (plain.at, plain.took, plain.db) == (1000, 20, real // 1000)
    assert (plain.answer, timed_out.answer, timed_out.took) == ("ok", "cut", 10)
    assert (later.answer, later.took) == ("ok", 20)  # it gave up long after it must have heard: no excuse
    assert (overwhelmed.answer, overwhelmed.took) == ("cut", 20)
    frozen = Fault(at=990, until=6000, what="freeze", node="a")
    assert [event.took for event in read_received(file, clock, [frozen], {})] == [5000] * 4


def test_the_databases_clock_is_followed_through_its_steps() -> None:
    clock = TrueTime()
    clock.began_mono -= 10_000_000  # it began ten seconds ago
    clock.began_real = time.time_ns() // 1000 - 10_000_000
    clock.step(-4000)
    assert clock.offset(clock.now + 1) == -4000
    assert clock.stepped[0].by_ms == -4000
    real = clock.began_real
    assert clock.at(real + 2_000_000, 0) == 2000
    assert abs(clock.at(real + 8_000_000, 7900) - 8000) <= 1  # seen before the step …
    assert abs(clock.at(real + 8_000_000, 11_900) - 12_000) <= 1  # … and the same reading after it
    assert abs(clock.db_now() - (time.time_ns() // 1_000_000 - 4000)) < 50


def test_figures_and_page(tmp_path: Path) -> None:
    history, ledger = one_run(sends=[send(10_003), send(16_000, 2, "b")])
    history += [Lost(at=15_500, node="a", silent=5200), Fault(at=10_010, until=10_010, what="kill", node="a")]
    story, violations = judge(history, ledger)
    harms = [Harm(at=10_010, until=10_010, what="kill", pid=1, name="<exec0>")]
    figures = figures_of(story, violations, harms, {"asked": 1})
    assert (figures.scheduled, figures.received, figures.faults) == (1, 2, 1)
    assert (figures.repeats, figures.answered, figures.repeats_each) == ({"kill": 1}, {"kill": 1}, {"kill": 1.0})
    result = Result(
        seed=3, profile="kill", figures=figures, violations=violations, harms=harms, not_run={}, seconds=60.0
    )
    assert "no violation" in told(result)
    page = write_report(tmp_path / "run", result, story).read_text()
    assert "<svg" in page
    assert "No promise was broken" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "&lt;exec0&gt;" in page
    assert (tmp_path / "run.json").exists()
