"""What the verdict on real processes adds to the checker, the clock it goes by, the figures and the page."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from onthedot.launcher.launch import fast_loop
from proof.chaos.clock import TrueTime
from proof.chaos.figures import figures_of
from proof.chaos.harm import Harm
from proof.chaos.nodes import NodeProcess
from proof.chaos.record import TIMEOUT, in_trouble, read_received, timeouts_of
from proof.chaos.repeats import repeats_of
from proof.chaos.run import Cluster, Result
from proof.chaos.sizes import SIZES
from proof.chaos.verdict import judge
from proof.chaos.wire import Helper
from proof.checker.events import Changed, Claimed, Crashed, Fault, History, Lost, Made, Received, Recorded, Stepped
from proof.checker.ledger import Entry, Job, Ledger
from proof.checker.story import SLACK
from proof.report import told, write_report
from proof.report.aims import aims_of
from proof.report.timeline import timeline

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
        Claimed(at=at, db=START + at, node=send.node or "", run=send.run, token=send.token)
        for send in sends
        for at in [8000 if send.token == 1 else send.at - 1]
    ]
    records = [Recorded(at=send.at + 50, node=send.node or "", run=send.run, token=send.token) for send in sends[-1:]]
    history: History = [made, *claims, *sends, *records]
    history.sort(key=lambda event: event.at)
    return history, ledger


def send(at: int, token: int = 1, node: str = "a", **fields: Any) -> Received:
    given: dict[str, Any] = {"answer": "ok", "took": 5, **fields}
    return Received(at=at, db=START + at, run="1-1700000010000", job=1, token=token, node=node, **given)


def kinds(history: History, ledger: Ledger, *, alone: bool = False) -> set[str]:
    history = sorted(history, key=lambda event: event.at)
    return {violation.kind for violation in judge(history, ledger, alone=alone)[1]}


def taken_over() -> tuple[History, Ledger]:
    """Sent by a, which is declared lost, then by b."""
    history, ledger = one_run(sends=[send(10_003), send(16_000, 2, "b")])
    return [*history, Lost(at=15_500, node="a", silent=5200)], ledger


def test_a_run_that_went_well() -> None:
    assert kinds(*one_run(sends=[send(10_003)])) == set()


def test_a_process_that_ended_by_itself_is_a_violation() -> None:
    history, ledger = one_run(sends=[send(10_003)])
    assert kinds([*history, Crashed(at=1, node="exec0", error="ended with 1")], ledger) == {"crashed"}


def test_a_repeat_needs_the_loss_of_its_node_and_the_loss_a_fault() -> None:
    history, ledger = one_run(sends=[send(10_003), send(16_000, 2, "b")])
    assert "repeated" in kinds(history, ledger)
    lost, ledger = taken_over()
    assert kinds(lost, ledger) == {"lost_node"}
    assert kinds([*lost, Fault(at=10_010, until=10_010, what="kill", node="a")], ledger) == set()
    assert kinds([*lost, Fault(at=10_010, until=10_010, what="kill", node="c")], ledger) == {"lost_node"}


@pytest.mark.parametrize(
    "harmless", ["sigterm", "cut", "backends", "swallow_commit", "node_clock", "receiver_down", "twin_stopped"]
)
def test_what_makes_nobody_look_dead_explains_no_loss(harmless: str) -> None:
    lost, ledger = taken_over()
    assert kinds([*lost, Fault(at=10_010, until=10_010, what=harmless, node="a")], ledger) == {"lost_node"}


@pytest.mark.parametrize(("what", "found"), [("kill_api", set()), ("freeze", {"lost_node"})])
def test_the_dead_may_be_buried_late_and_the_living_not(what: str, found: set[str]) -> None:
    """Nobody else was there to watch for a lease."""
    history, ledger = one_run(sends=[send(10_003)])
    history += [Fault(at=12_000, until=12_000, what=what, node="z"), Lost(at=32_000, node="z", silent=20_000)]
    assert kinds(history, ledger) == found


def test_who_holds_the_sqlite_file_may_bury_the_dead_at_once() -> None:
    history, ledger = one_run(sends=[send(10_003), send(10_500, 2, "b")])
    history += [Lost(at=10_400, node="a", silent=300)]
    killed = Fault(at=10_010, until=10_010, what="kill_at", node="a")
    assert kinds([*history, killed], ledger) == {"robbed"}
    assert kinds([*history, killed], ledger, alone=True) == set()
    assert kinds(history, ledger, alone=True) == {"lost_node"}
    too_late = Fault(at=10_450, until=10_450, what="kill_at", node="a")
    assert kinds([*history, too_late], ledger, alone=True) == {"lost_node"}


@pytest.mark.parametrize(("frozen_at", "excused"), [(10_010, True), (9000, False)])
def test_after_a_thaw_only_what_was_due_before_the_freeze_is_excused(frozen_at: int, excused: bool) -> None:
    """Frozen at 10.01 s it may have had the request in its hands; frozen at 9 s it started it after its lease."""
    history, ledger = one_run(sends=[send(16_000, 2, "b"), send(20_020, 1, "a")], token=2)
    history += [Lost(at=15_500, node="a", silent=5200), Fault(at=frozen_at, until=20_000, what="freeze", node="a")]
    found = kinds(history, ledger)
    assert ({"zombie", "overtaken"} <= found) != excused
    assert found.isdisjoint({"zombie", "overtaken"}) == excused


def test_after_a_thaw_what_was_claimed_during_the_freeze_is_not_excused() -> None:
    history, ledger = one_run(sends=[send(20_020, 2, "a")])
    history += [Lost(at=15_500, node="a", silent=5200), Fault(at=10_010, until=20_000, what="freeze", node="a")]
    assert "zombie" in kinds(history, ledger)


def test_later_than_a_lease_with_nothing_wrong() -> None:
    assert kinds(*one_run(sends=[send(14_900)])) == set()  # a figure
    assert kinds(*one_run(sends=[send(15_100)])) == {"late"}


def test_a_job_that_nobody_had_been_told_of_is_not_late() -> None:
    history, ledger = one_run(sends=[send(15_100)])
    for known, found in ((16_000, set()), (1000, {"late"})):
        made = [msgspec.structs.replace(e, until=known) if isinstance(e, Made) else e for e in history]
        assert kinds(made, ledger) == found
    history, ledger = one_run(sends=[send(15_100)])
    assert kinds([*history, Fault(at=9000, until=12_000, what="outage")], ledger) == set()


def test_a_slot_that_is_given_up_without_need_is_no_mere_figure() -> None:
    history, ledger = one_run(sends=[])
    every = {"schedule": {"every": "10s"}, "target": {"type": "webhook"}, "policy": {}, "params": {"mark": 1}}
    given_up = msgspec.structs.replace(ledger.entries[0], status="skipped", reason="coalesced", token=0, tries=0)
    ledger = msgspec.structs.replace(ledger, jobs=[Job(id=1, spec=every, state="active")], entries=[given_up])
    history = [Made(at=0, until=5, mark=1, job=1, spec=every, created_at=START)]
    assert "forsaken" in kinds(history, ledger)


def test_an_orderly_stop_is_quick_while_the_database_answers() -> None:
    history, ledger = one_run(sends=[send(10_003)])
    stop = Fault(at=20_000, until=28_900, what="sigterm", node="a")
    assert kinds([*history, stop], ledger) == set()
    slow = Fault(at=20_000, until=29_100, what="sigterm", node="a")
    assert kinds([*history, slow], ledger) == {"slow_stop"}
    assert kinds([*history, slow, Fault(at=20_000, until=29_100, what="stop", node="b")], ledger) == {"slow_stop"}
    assert kinds([*history, slow, Fault(at=20_000, until=29_100, what="stop", node="a")], ledger) == set()


def test_who_could_not_reach_the_database() -> None:
    away = Harm(at=10_000, until=15_000, what="outage")
    mute = Harm(at=10_000, until=15_000, what="silence", pid=7)
    assert in_trouble([away], 1, 14_000, 20_000)
    assert in_trouble([away], 1, 17_000, 20_000)  # the longest backoff
    assert not in_trouble([away], 1, 18_000, 20_000)
    assert not in_trouble([away], 1, 5000, 9999)
    assert (in_trouble([mute], 7, 14_000, 20_000), in_trouble([mute], 8, 14_000, 20_000)) == (True, False)
    for other in ("cut", "backends", "delay", "receiver_down", "kill"):
        assert not in_trouble([Harm(at=10_000, until=15_000, what=other)], 1, 14_000, 20_000)


@pytest.mark.parametrize(("trouble_at", "excused"), [(29_000, True), (9000, False)])
def test_a_node_may_refuse_to_start_only_without_a_database(tmp_path: Path, trouble_at: int, excused: bool) -> None:
    built = Cluster(tmp_path, SIZES["smoke"], seed=1)
    built.twin = NodeProcess("twin", directory=tmp_path, time=built.time, history=built.users)
    built.twin.refused = [31_000]
    built.excuse_refusals([Harm(at=trouble_at, until=trouble_at + 1000, what="outage")])
    assert bool(built.users) != excused


def test_a_word_that_comes_before_a_node_listens_does_not_end_it(tmp_path: Path) -> None:
    """On the loop of the bench, whose children inherit nothing that is ignored."""
    built = Cluster(tmp_path, SIZES["smoke"], seed=1)

    async def told_too_early() -> str:
        zygote = await Helper.start("proof.chaos.zygote")
        node = NodeProcess("early", "--help", directory=tmp_path, time=built.time, history=built.users, zygote=zygote)
        try:
            await node.start()
            node.disarm()
            assert await node.ended(within=60)
        finally:
            await node.bury()
            await zygote.stop()
        return node.log()

    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        assert "Usage" in runner.run(told_too_early())


def test_recorded_as_tried_and_killed_before_the_send() -> None:
    at_most_once = {**POLICY, "delivery": "at_most_once"}
    history, ledger = one_run(sends=[], policy=at_most_once, status="failed", reason="unknown")
    assert kinds(history, ledger) == set()
    history, ledger = one_run(sends=[], policy=at_most_once, status="failed", reason="attempts", tries=3)
    assert kinds(history, ledger) == {"tries"}


def test_a_try_that_never_left_its_node_must_be_a_time_out_in_the_ledger() -> None:
    history, ledger = one_run(sends=[send(14_000, 2)], tries=2)
    assert kinds(history, ledger) == {"tries"}
    run = ledger.entries[0].id
    assert judge(history, ledger, timeouts={(run, 1): (START + 10_000, START + 13_000)})[1] == []
    assert judge(history, ledger, timeouts={(run, 2): (START + 10_000, START + 13_000)})[1] != []


def test_a_try_that_was_cancelled_on_its_way_need_not_have_arrived() -> None:
    def found(**entry: Any) -> set[str]:
        return kinds(*one_run(sends=[], status="cancelled", tries=1, **entry))

    assert "tries" not in found(started_at=START + 10_001)
    assert "tries" in found(started_at=None)  # then it has begun nothing
    assert "tries" in kinds(*one_run(sends=[], status="failed", tries=1, started_at=START + 10_001))


def test_a_run_that_was_never_sent_is_drawn_as_none() -> None:
    """The report came to nothing: a rule that asked for its calls had left an empty list of them behind."""
    history, ledger = one_run(sends=[], status="cancelled", started_at=START + 10_000)
    story, _ = judge(history, ledger)
    assert story.sends == {}
    assert "svg" in timeline(story, [])


def test_after_a_delete_no_clock_is_an_excuse() -> None:
    """What was recorded as begun goes back if its time is far away again."""
    at_most_once = {**POLICY, "delivery": "at_most_once"}
    history, ledger = one_run(sends=[send(40_000)], policy=at_most_once)
    history += [
        Changed(at=12_000, until=12_100, job=1, verb="delete"),
        Stepped(at=9000, by_ms=-20_000, highest=START + 30_000),
    ]
    assert "after_delete" in kinds(history, msgspec.structs.replace(ledger, jobs=[]))


def test_a_time_out_does_not_excuse_tries_that_were_not_made() -> None:
    history, ledger = one_run(sends=[send(10_003)], status="failed", reason="attempts", tries=1)
    timeouts = {(ledger.entries[0].id, 1): (START + 10_000, START + 13_000)}
    assert {violation.kind for violation in judge(history, ledger, timeouts=timeouts)[1]} == {"tries"}


def test_a_time_out_is_believed_only_if_it_lasted_that_long() -> None:
    def attempt(number: int, outcome: str, began: int | None, ended: int) -> dict[str, Any]:
        return {"attempt": number, "outcome": outcome, "started_at": began, "finished_at": ended}

    told = [
        attempt(1, "timeout", 1000, 1000 + TIMEOUT - SLACK),
        attempt(2, "timeout", 1000, 1000 + TIMEOUT - SLACK - 1),
        attempt(3, "error", 1000, 4000),
        attempt(4, "timeout", None, 9000),
    ]
    assert timeouts_of("1-1", told) == {("1-1", 1): (1000, 1000 + TIMEOUT - SLACK)}


def test_the_answer_counts_from_when_it_could_be_heard(tmp_path: Path) -> None:
    clock = TrueTime()
    file = tmp_path / "received.jsonl"
    mono, real = clock.began_mono + 1_000_000, clock.began_real + 1_000_000
    lines = [f'[{mono},{real},"1-1",1,{token},"a","ok",20,null,null]' for token in range(1, 7)]
    lines.append(f'[{mono + 2_000_000},"hung_up","1-1",4]')
    lines.append(f'[{mono + 3_000_000},"answered","1-1",5]')
    lines.append(f'[{mono + 2_000_000},"hung_up","1-1",6]')
    file.write_text("\n".join(lines))
    came = real // 1000
    gave_up = {
        ("1-1", 2): (came - 2990, came + 10),
        ("1-1", 3): (came - 1, came + 3000),
        ("1-1", 4): (came - 1000, came + 2000),
        ("1-1", 5): (came, came + 3001),
    }
    plain, timed_out, heard, hung_up, answered_late, killed = read_received(file, clock, [], gave_up)
    assert (plain.at, plain.took, plain.db) == (1000, 20, real // 1000)
    assert (plain.answer, timed_out.answer, timed_out.took) == ("ok", "cut", 10)
    assert (heard.answer, heard.took) == ("ok", 20)  # it gave up long after it must have heard: no excuse
    assert hung_up.answer == "cut"  # both say so
    assert (answered_late.answer, answered_late.took) == ("cut", 3000)
    assert (killed.answer, killed.took) == (
        "ok",
        20,
    )  # the ledger knows of no time-out: its node's loss must explain it
    frozen = Fault(at=990, until=6000, what="freeze", node="a")
    assert [event.took for event in read_received(file, clock, [frozen], {})] == [5000] * 6


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
    assert (figures.repeats.by_kind, figures.repeats.answered) == ({"kill": 1}, {"kill": 1})
    result = Result(
        seed=3, profile="kill", figures=figures, violations=violations, harms=harms, not_run={}, seconds=60.0
    )
    assert "no violation" in told(result)
    assert {aim.name: aim.reached for aim in aims_of(result, full=True)}["scheduled / faults / kinds"] is False
    assert "MISSED" in told(result, full=True)
    page = write_report(tmp_path / "run", result, story).read_text()
    assert "<svg" in page
    assert "No promise was broken" in page
    assert "<script" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "&lt;exec0&gt;" in page
    assert (tmp_path / "run.json").exists()


def test_each_repeat_is_put_to_one_fault_and_kills_in_an_outage_apart() -> None:
    lost, ledger = taken_over()
    kill = Fault(at=10_010, until=10_010, what="kill", node="a")
    freeze = Fault(at=10_005, until=10_009, what="freeze", node="a")
    story, _ = judge(sorted([*lost, kill, freeze], key=lambda event: event.at), ledger)
    harm = Harm(at=10_010, until=10_010, what="kill", pid=1)
    there = repeats_of(story, [harm])
    assert (there.by_kind, there.kills, there.per_kill, there.kills_apart) == ({"kill": 1}, 1, 1.0, 0)
    assert there.per_kill_answered == 1.0
    apart = repeats_of(story, [harm, Harm(at=9000, until=12_000, what="short_outage")])
    assert (apart.kills, apart.per_kill, apart.kills_apart, apart.per_kill_apart) == (0, 0.0, 1, 1.0)
    slow = repeats_of(story, [harm, Harm(at=5000, until=7000, what="receiver_slow")])
    assert (slow.kills, slow.kills_apart, slow.kills_slow, slow.per_kill_slow) == (0, 0, 1, 1.0)
    quick_again = repeats_of(story, [harm, Harm(at=5000, until=5500, what="receiver_slow")])
    assert (quick_again.kills, quick_again.kills_slow) == (1, 0)


def test_kills_at_a_named_point_are_counted_apart() -> None:
    lost, ledger = taken_over()
    aimed = Fault(at=10_010, until=10_010, what="kill_at", node="a")
    story, _ = judge(sorted([*lost, aimed], key=lambda event: event.at), ledger)
    repeats = repeats_of(story, [Harm(at=10_010, until=10_010, what="kill_at", pid=1)])
    assert (repeats.kills, repeats.aimed, repeats.per_aimed, repeats.per_kill_of_both) == (0, 1, 1.0, 1.0)


def test_a_call_that_was_held_up_is_put_to_the_fault_of_its_own_node() -> None:
    """Frozen right before its send, thawed when another node had long sent and recorded it."""
    history, ledger = one_run(sends=[send(16_000, 2, "b"), send(25_000, 1, "a")])
    history += [
        Fault(at=10_001, until=24_999, what="freeze", node="a"),
        Fault(at=17_000, until=20_000, what="short_outage", node=None),
    ]
    story, _ = judge(sorted(history, key=lambda event: event.at), ledger)
    assert repeats_of(story, []).by_kind == {"freeze": 1}


def test_each_kill_is_told_with_what_it_cost() -> None:
    lost, ledger = taken_over()
    story, _ = judge(
        sorted([*lost, Fault(at=10_010, until=10_010, what="kill", node="a")], key=lambda event: event.at), ledger
    )
    harms = [Harm(at=at, until=at, what="kill", pid=1) for at in (40_000, 10_010)]
    assert repeats_of(story, harms).of_each == [("kill", 10_010, 1), ("kill", 40_000, 0)]


def test_taken_over_counts_from_the_kill_that_led_to_the_loss() -> None:
    lost, ledger = taken_over()
    well = [
        Claimed(at=at, db=START + at, node="c", run=f"1-{START + at}", token=1) for at in (1000, 20_000)
    ]  # a witness
    kill = Fault(at=10_010, until=10_010, what="kill", node="a")
    takeovers = [
        figures_of(judge(sorted([*lost, *well, fault], key=lambda event: event.at), ledger)[0], [], [], {}).takeover_ms
        for fault in (kill, msgspec.structs.replace(kill, at=15_600, until=15_600))
    ]
    assert [spread["n"] for spread in takeovers] == [1, 0]
    assert takeovers[0]["p99"] == 15_999 - 10_010


def test_under_way_is_not_answered() -> None:
    history, ledger = one_run(sends=[send(10_003, took=900), send(16_000, 2, "b")])
    history += [Lost(at=15_500, node="a", silent=5200), Fault(at=10_010, until=10_010, what="kill", node="a")]
    story, _ = judge(sorted(history, key=lambda event: event.at), ledger)
    repeats = repeats_of(story, [Harm(at=10_010, until=10_010, what="kill", pid=1)])
    assert (repeats.per_kill, repeats.per_kill_answered) == (1.0, 0.0)


@pytest.mark.parametrize("what", ["cut", "backends", "sigterm"])
def test_what_explains_no_repeat_is_blamed_all_the_same(what: str) -> None:
    lost, ledger = taken_over()
    story, found = judge(
        sorted([*lost, Fault(at=10_010, until=10_010, what=what, node="a")], key=lambda event: event.at), ledger
    )
    assert repeats_of(story, [Harm(at=10_010, until=10_010, what=what, pid=1)]).by_kind == {what: 1}
    assert found
