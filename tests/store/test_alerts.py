"""Incidents and their messages: opened once, counted, told again, closed, delivered at least once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from onthedot.model.alerts import Alerting, AlertRule, AlertWay, JobAlerts
from onthedot.model.duration import Duration
from onthedot.model.incident import IncidentView, Trouble, job_subject
from onthedot.model.job import JobSpec
from onthedot.model.policy import Retry
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.model.work import Work
from onthedot.plan import Done
from onthedot.store import IncidentFilter, StartedWork, Store
from onthedot.store.alerts.incidents import ClosedIncident, close_incidents, open_incidents
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, OK, Hands, at, every, node_info, spec

MINUTE = 60_000
ONCE = Retry(attempts=1)
OPS = Alerting(channels=frozenset({"ops"}))


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


def install(store: Store, *on: str, **more: Any) -> None:
    rule = AlertRule(name="all", on=frozenset(on), channels=("ops",), **more)
    store.driver.queries.alerting = Alerting(rules=(rule,), channels=frozenset({"ops"}))


def watched(schedule: Any = None, key: str | None = None, **alerts: Any) -> JobSpec:
    plain = spec(schedule or every(MINUTE), key=key, retry=ONCE)
    return msgspec.structs.replace(plain, alerts=JobAlerts(channels=["ops"], **alerts))


async def carry_out(store: Store) -> None:
    for _ in range(100):
        if await store.carry_out_notes() is None:
            return
    raise AssertionError("notes without end")


async def incidents(store: Store, **wanted: Any) -> list[IncidentView]:
    return (await store.list_incidents(1, IncidentFilter(**wanted))).items


async def events(hands: Hands) -> list[str]:
    rows = await hands.sql("SELECT event, channel FROM alert_deliveries ORDER BY id")
    return [f"{row['event']} {row['channel']}" for row in rows]


async def run_once(hands: Hands, times: Times, outcome: Any = FAILED, **more: Any) -> ClaimedRun:
    await times.advance(MINUTE)
    run = await hands.one()
    await hands.finish(run, outcome=outcome, **more)
    await carry_out(hands.store)
    return run


async def test_a_failure_opens_one_incident_that_the_next_success_closes(hands: Hands, times: Times, store: Store):
    (job,) = await hands.create(watched(failed=True, key="report"))
    first = await run_once(hands, times, log="hello\nTraceback: boom\n")
    (found,) = await incidents(store)
    assert (found.state, found.condition, found.job_id, found.title) == ("open", "failed", job.id, "report")
    assert (found.run_id, found.count, found.reason) == (first.id, 1, "a run failed: boom")
    assert found.output is not None
    assert "Traceback: boom" in found.output
    second = await run_once(hands, times)
    (found,) = await incidents(store)
    assert (found.run_id, found.count) == (second.id, 2)
    assert await events(hands) == ["opened ops"]
    await store.watch_alerts()
    assert len(await incidents(store, state="open")) == 1
    await run_once(hands, times, OK)
    assert await store.watch_alerts()
    (found,) = await incidents(store)
    assert found.state == "closed"
    assert await events(hands) == ["opened ops", "recovered ops"]
    await run_once(hands, times)
    assert [each.state for each in await incidents(store)] == ["open", "closed"]
    assert await events(hands) == ["opened ops", "recovered ops", "opened ops"]


async def test_a_job_without_any_rule_writes_no_note(hands: Hands, times: Times, store: Store):
    await hands.job(every(MINUTE), retry=ONCE)
    await times.advance(MINUTE)
    report = await hands.finish(await hands.one(), outcome=FAILED)
    assert not report.noted
    assert await incidents(store) == []


async def test_the_incident_is_written_down_in_the_transaction_that_ends_the_run(hands: Hands, times: Times):
    await hands.create(watched(failed=True))
    await times.advance(MINUTE)
    report = await hands.finish(await hands.one(), outcome=FAILED)
    assert report.noted
    assert [row["kind"] for row in await hands.sql("SELECT kind FROM notes")] == ["alert"]


@pytest.mark.parametrize(
    ("match", "count"),
    [({}, 1), ({"tag": "x"}, 0), ({"target": "webhook"}, 1), ({"target": "queue"}, 0), ({"owner": "ann"}, 0)],
)
async def test_rules_of_the_installation_apply_to_jobs_they_match(
    hands: Hands, times: Times, store: Store, match: dict[str, str], count: int
):
    install(store, "failed", "recovered", **match)
    await hands.job(every(MINUTE), retry=ONCE)
    await run_once(hands, times)
    assert len(await incidents(store)) == count


async def test_a_jobs_own_alerts_replace_the_rules(hands: Hands, times: Times, store: Store):
    install(store, "failed")
    await hands.create(watched(in_a_row=2))
    await run_once(hands, times)
    assert await incidents(store) == []
    await run_once(hands, times)
    assert [each.condition for each in await incidents(store)] == ["in_a_row"]


async def test_in_a_row_begins_anew_after_a_success(hands: Hands, times: Times, store: Store):
    await hands.create(watched(in_a_row=2))
    for outcome in (FAILED, OK, FAILED):
        await run_once(hands, times, outcome)
    assert await incidents(store) == []


async def test_a_run_that_went_well_but_took_too_long_or_began_late(hands: Hands, times: Times, store: Store):
    await hands.create(watched(late=Duration(30_000), too_long=Duration(10_000)))
    await run_once(hands, times, OK, lateness_ms=29_000, duration_ms=9_000)
    assert await incidents(store) == []
    await run_once(hands, times, OK, lateness_ms=31_000, duration_ms=11_000)
    found = await incidents(store)
    assert sorted(each.condition for each in found) == ["late", "too_long"]
    await run_once(hands, times, OK, lateness_ms=5, duration_ms=5)
    await store.watch_alerts()
    assert {each.state for each in await incidents(store)} == {"closed"}


@pytest.mark.parametrize("own", [True, False])
async def test_the_duty_finds_a_run_that_has_not_started(hands: Hands, times: Times, store: Store, own: bool):
    if own:
        await hands.create(watched(late=Duration(30_000)))
    else:
        install(store, "late", "recovered", late=30_000)
        await hands.job(every(MINUTE))
    await times.advance(MINUTE + 29_000)
    assert not await store.watch_alerts()
    await times.advance(2_000)
    assert await store.watch_alerts()
    assert not await store.watch_alerts()
    (found,) = await incidents(store)
    assert (found.condition, found.count) == ("late", 1)
    run = await hands.one()
    await hands.finish(run, lateness_ms=31_000)
    await carry_out(store)
    await store.watch_alerts()
    assert [each.state for each in await incidents(store)] == ["open"]
    await times.advance(MINUTE)
    await hands.finish(await hands.one(), lateness_ms=3)
    await store.watch_alerts()
    assert [(each.state, each.count) for each in await incidents(store)] == [("closed", 1)]
    assert await events(hands) == ["opened ops", "recovered ops"]


async def test_the_duty_finds_a_run_that_does_not_end(hands: Hands, times: Times, store: Store):
    await hands.create(watched(too_long=Duration(10_000)))
    await times.advance(MINUTE)
    run = await hands.one()
    await times.advance(9_000)
    assert not await store.watch_alerts()
    await times.advance(2_000)
    assert await store.watch_alerts()
    (found,) = await incidents(store)
    assert (found.condition, found.run_id) == ("too_long", run.id)
    await hands.finish(run, duration_ms=12_000)
    await carry_out(store)
    assert [each.count for each in await incidents(store)] == [1]


async def test_too_long_against_its_own_p95(hands: Hands, times: Times, store: Store):
    await hands.create(watched(too_long_p95=True))
    for _ in range(20):
        await run_once(hands, times, OK, duration_ms=4_000)
    await times.advance(MINUTE)
    await hands.one()
    await times.advance(7_900)
    assert not await store.watch_alerts()
    await times.advance(200)
    assert await store.watch_alerts()
    assert [each.condition for each in await incidents(store)] == ["too_long"]


@pytest.mark.parametrize("own", [True, False])
async def test_too_long_against_its_own_p95_between_two_looks(hands: Hands, times: Times, store: Store, own: bool):
    """Nobody looked while it ran: its end tells."""
    if not own:
        install(store, "too_long", "recovered")
    await hands.create(watched(too_long_p95=True) if own else spec(every(MINUTE), retry=ONCE))
    for took in (6_000, *[4_000] * 19):
        await run_once(hands, times, OK, duration_ms=took)
    for took in (7_900, 8_000):
        await run_once(hands, times, OK, duration_ms=took)
    assert await incidents(store) == []
    run = await run_once(hands, times, OK, duration_ms=17_000)
    (found,) = await incidents(store)
    assert (found.condition, found.run_id, found.count) == ("too_long", run.id, 1)
    assert found.reason == "a run took 17 s; the limit is 15.8 s"
    await run_once(hands, times, OK, duration_ms=4_000)
    await store.watch_alerts()
    assert [each.state for each in await incidents(store)] == ["closed"]


FIXED, USUAL = {"too_long": Duration(2_000)}, {"too_long_p95": True}


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(("limit", "took"), [(FIXED, 2_001), (USUAL, 8_001)])
@pytest.mark.parametrize("end", ["went well", "failed", "timed out", "retried", "cancelled"])
async def test_every_end_between_two_looks_tells_of_a_run_that_took_too_long(
    hands: Hands, times: Times, store: Store, own: bool, limit: dict[str, Any], took: int, end: str
):
    """Over a limit that is given, or over its own p95: whatever became of it, and whoever wants to hear of it."""
    if not own:
        more = {"too_long": int(limit["too_long"])} if "too_long" in limit else {}
        install(store, "too_long", "recovered", **more)
    attempts = Retry(attempts=2 if end == "retried" else 1)
    job = spec(every(MINUTE), retry=attempts)
    await hands.create(msgspec.structs.replace(job, alerts=JobAlerts(channels=["ops"], **limit)) if own else job)
    for _ in range(20):
        await run_once(hands, times, OK, duration_ms=min(4_000, took - 1))
    quick = min(took - 1, 2_000)
    await run_once(hands, times, OK, duration_ms=quick)
    await store.watch_alerts()
    await hands.sql("DELETE FROM incidents")
    await hands.sql("DELETE FROM alert_deliveries")
    outcomes = {
        "went well": OK,
        "timed out": Outcome(kind="timeout", error="took too long"),
        "cancelled": Outcome(kind="cancelled", error="cancelled"),
    }
    decided: dict[str, Any] = {}
    if end == "cancelled":
        decided["decision"] = Done(status="cancelled", tries=1, losses=0, reason="replaced")
    run = await run_once(hands, times, outcomes.get(end, FAILED), duration_ms=took, **decided)
    (found,) = await incidents(store)
    assert (found.condition, found.state, found.run_id, found.count) == ("too_long", "open", run.id, 1)
    assert "a run took" in found.reason
    assert await events(hands) == ["opened ops"]
    if end == "retried":
        assert [row["id"] for row in await hands.live() if row["tries"] == 1] == [run.id]
        await store.watch_alerts()
        assert len(await incidents(store, state="open")) == 1, "the run goes on"


async def test_an_attempt_that_began_late_and_is_made_again_is_told(hands: Hands, times: Times, store: Store):
    plain = spec(every(MINUTE), retry=Retry(attempts=3))
    await hands.create(
        msgspec.structs.replace(plain, alerts=JobAlerts(channels=["ops"], late=Duration(30_000), failed=True))
    )
    await run_once(hands, times, lateness_ms=30_001)
    assert [each.condition for each in await incidents(store)] == ["late"], "it has not failed yet"


def rules(*given: AlertRule) -> Alerting:
    return Alerting(rules=given, channels=frozenset(name for rule in given for name in rule.channels))


def long_rule(channel: str, too_long: int | None) -> AlertRule:
    return AlertRule(name=channel, on=frozenset({"too_long", "recovered"}), channels=(channel,), too_long=too_long)


async def test_the_channel_of_each_rule_is_told_when_its_own_limit_is_exceeded(
    hands: Hands, times: Times, store: Store
):
    store.driver.queries.alerting = rules(long_rule("ops", 10_000), long_rule("pager", 60_000))
    await hands.job(every(10 * MINUTE), retry=ONCE)
    await times.advance(10 * MINUTE)
    run = await hands.one()
    await times.advance(11_000)
    assert await store.watch_alerts()
    assert await events(hands) == ["opened ops"]
    await times.advance(50_000)
    for _ in range(2):
        await store.watch_alerts()
    assert await events(hands) == ["opened ops", "opened pager"]
    (found,) = await incidents(store)
    assert found.reason == "a run has been running for 1 min 1 s; the limit is 10 s"
    await hands.finish(run, duration_ms=61_000)
    await carry_out(store)
    await times.advance(9 * MINUTE)
    await hands.finish(await hands.one(), duration_ms=5)
    await store.watch_alerts()
    assert await events(hands) == ["opened ops", "opened pager", "recovered ops", "recovered pager"]


@pytest.mark.parametrize("seen", [True, False])
async def test_one_end_over_a_limit_that_is_given_and_over_the_usual_one(
    hands: Hands, times: Times, store: Store, seen: bool
):
    """Also if a look had found one of them while it ran."""
    store.driver.queries.alerting = rules(long_rule("ops", 10_000), long_rule("pager", None))
    await hands.job(every(MINUTE), retry=ONCE)
    for _ in range(20):
        await run_once(hands, times, OK, duration_ms=6_000)
    await times.advance(MINUTE)
    run = await hands.one()
    if seen:
        await times.advance(10_500)
        await store.watch_alerts()
        assert await events(hands) == ["opened ops"]
    await hands.finish(run, duration_ms=12_500)
    await carry_out(store)
    assert sorted(await events(hands)) == ["opened ops", "opened pager"]
    assert [each.count for each in await incidents(store)] == [1]


async def test_a_rule_for_more_failures_in_a_row_is_told_later(hands: Hands, times: Times, store: Store):
    few = AlertRule(name="few", on=frozenset({"in_a_row"}), channels=("ops",), in_a_row=2)
    many = AlertRule(name="many", on=frozenset({"in_a_row"}), channels=("pager",), in_a_row=4)
    store.driver.queries.alerting = rules(few, many)
    await hands.job(every(MINUTE), retry=ONCE)
    told = []
    for _ in range(5):
        await run_once(hands, times)
        told.append(await events(hands))
    both = ["opened ops", "opened pager"]
    assert told == [[], ["opened ops"], ["opened ops"], both, both]
    (found,) = await incidents(store)
    assert (found.count, found.reason) == (4, "4 runs in a row failed, the last one: boom")


async def test_runs_that_nobody_asked_for_do_not_hide_a_long_one(
    hands: Hands, times: Times, store: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("onthedot.store.cluster.alert_watch.LONG_RUNS_AT_ONCE", 2)
    for _ in range(3):
        await hands.job(every(MINUTE), retry=ONCE)
    await times.advance(MINUTE)
    assert len((await hands.claim()).runs) == 3
    await hands.create(watched(too_long=Duration(10_000)))
    await times.advance(MINUTE)
    (run,) = [each for each in (await hands.claim()).runs if each.spec.alerts is not msgspec.UNSET]
    await times.advance(11_000)
    assert any([await store.watch_alerts() for _ in range(4)])  # seven runs, two at once
    assert [each.run_id for each in await incidents(store)] == [run.id]


async def test_a_firing_that_was_given_up_is_missed(hands: Hands, times: Times, store: Store):
    await hands.create(
        msgspec.structs.replace(watched(missed=True), policy=spec(every(MINUTE), catch_up="skip").policy)
    )
    await times.advance(30 * MINUTE)
    await hands.claim()
    await carry_out(store)
    (found,) = await incidents(store)
    assert found.condition == "missed"
    assert "missed" in found.reason
    run = await store.get_run(1, found.run_id or "")  # many firings are one row: the alert leads to it
    assert run.status == "SKIPPED"


@pytest.mark.parametrize("own", [True, False])
async def test_firings_that_an_edit_gives_up_are_missed(hands: Hands, times: Times, store: Store, own: bool):
    """They were due and no node had taken them when the job got another schedule."""
    if not own:
        install(store, "missed", "recovered")
    before = watched(missed=True, key="report") if own else spec(every(MINUTE), key="report", retry=ONCE)
    (job,) = await hands.create(before)
    await times.advance(5 * MINUTE)
    await store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, schedule=every(2 * MINUTE)))
    assert [row["kind"] for row in await hands.sql("SELECT kind FROM notes")] == ["alert"], "in one transaction with it"
    await carry_out(store)
    (found,) = await incidents(store)
    assert (found.condition, found.state, found.job_id, found.title) == ("missed", "open", job.id, "report")
    assert (found.count, found.reason) == (1, "5 firings were missed: too late")
    assert (await store.get_run(1, found.run_id or "")).status == "SKIPPED"
    await times.advance(6 * MINUTE)  # given up by an edit or by a claim: it is the same incident
    await store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, schedule=every(MINUTE)))
    await times.advance(5 * MINUTE)
    await hands.claim()
    await carry_out(store)
    assert [(each.state, each.count) for each in await incidents(store)] == [("open", 3)]
    assert await events(hands) == ["opened ops"]


async def test_firings_that_are_given_up_when_a_quarantined_job_is_mended(hands: Hands, times: Times, store: Store):
    (job,) = await hands.create(watched(missed=True))
    await hands.sql(f"UPDATE jobs SET state = 'quarantined', reason = 'x' WHERE id = {job.id}")
    await times.advance(3 * MINUTE)
    await store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, name="mended"))
    await carry_out(store)
    (found,) = await incidents(store)
    assert (found.condition, found.reason) == ("missed", "3 firings were missed: too late")


async def test_what_passed_while_it_was_paused_or_everything_was_is_not_missed(
    hands: Hands, times: Times, store: Store
):
    (job,) = await hands.create(watched(missed=True))
    await store.pause_job(1, job.id)
    await times.advance(5 * MINUTE)
    await store.resume_job(1, job.id)
    await store.pause_job(1, job.id)
    await times.advance(5 * MINUTE)
    await store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, schedule=every(2 * MINUTE)))
    await store.resume_job(1, job.id)
    await store.freeze(1, "maintenance")
    await times.advance(5 * MINUTE)
    await store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, schedule=every(3 * MINUTE)))
    await carry_out(store)
    assert {row["reason"] for row in await hands.ledger(job.id)} == {"paused"}
    assert await incidents(store) == []


async def test_a_check_in_that_did_not_come_is_missed(hands: Hands, times: Times, store: Store):
    await hands.create(watched(missed=True))
    await run_once(hands, times, Outcome(kind="timeout", error="missed: no ping within 5m", detail={"missed": True}))
    (found,) = await incidents(store)
    assert (found.condition, found.reason) == ("missed", "missed: no ping within 5m")
    await run_once(hands, times, OK)
    await store.watch_alerts()
    assert [each.state for each in await incidents(store)] == ["closed"]


async def test_no_node_can_run_it(hands: Hands, times: Times, store: Store):
    install(store, "unroutable", "recovered")
    await store.register(node_info("n1", offers=["queue:x"]))
    job = await hands.job(every(MINUTE))
    await times.advance(MINUTE)
    assert await store.watch_alerts()
    (found,) = await incidents(store)
    assert (found.condition, found.job_id, found.cause) == ("unroutable", job, "webhook")
    await store.register(node_info("n2"))
    assert await store.watch_alerts()
    assert [each.state for each in await incidents(store)] == ["closed"]


async def test_nobody_reaches_its_work(hands: Hands, times: Times, store: Store):
    install(store, "unroutable", "recovered")
    place = "webhook@here"
    await store.register(node_info("n1", offers=["webhook", place]))
    (job,) = await hands.create(spec(at(START + MINUTE)))
    await times.advance(MINUTE)
    run = await hands.one()
    work = Work(target={"type": "webhook"}, try_number=1, place="here")
    started = StartedWork(run_id=run.id, token=run.token, work=work, capability=place, within_ms=None)
    await store.begin_work("n1", [started])
    await store.detach("n1", [(run.id, run.token, None)])
    assert not await store.watch_alerts(), "a node reaches it"
    await store.register(node_info("n2"))
    for node, following in (("n1", "n3"), ("n3", "n4")):
        await store.declare_lost(node, 0)
        assert not await store.watch_alerts()
        await times.advance(MINUTE - 1)
        assert not await store.watch_alerts(), "it may be started anew"
        await times.advance(1)
        assert await store.watch_alerts()
        assert not await store.watch_alerts(), "it is told once"
        found = (await incidents(store))[0]
        assert (found.state, found.condition, found.job_id, found.cause) == ("open", "unroutable", job.id, place)
        assert (found.run_id, found.reason) == (run.id, f"its work goes on at {place}, which no live node reaches")
        await store.register(node_info(following, offers=["webhook", place]))
        assert await store.watch_alerts()
        assert {each.state for each in await incidents(store)} == {"closed"}
        await times.advance(1)


async def test_a_lost_node_is_told_once_and_comes_back(hands: Hands, times: Times, store: Store):
    install(store, "node_lost", "recovered")
    await store.register(node_info("n1", name="web-1"))
    assert await store.declare_lost("n1", 0)
    (found,) = await incidents(store)
    assert (found.condition, found.title, found.job_id) == ("node_lost", "node web-1", None)
    await store.watch_alerts()
    assert await events(hands) == ["opened ops"]
    await times.advance(1000)
    await store.register(node_info("n2", name="web-1"))
    await store.watch_alerts()
    await store.watch_alerts()
    assert [each.state for each in await incidents(store)] == ["closed"]
    assert await events(hands) == ["opened ops", "recovered ops"]


async def test_dead_letters_are_over_when_they_are_gone(hands: Hands, times: Times, store: Store):
    await hands.create(watched(dead=True))
    run = await run_once(hands, times)
    await run_once(hands, times, OK)
    await store.watch_alerts()
    assert [each.state for each in await incidents(store)] == ["open"]
    await hands.sql(f"DELETE FROM dead_letters WHERE run_id = '{run.id}'")
    await store.watch_alerts()
    assert [each.state for each in await incidents(store)] == ["closed"]


async def test_a_one_off_job_is_over_when_a_run_went_well(hands: Hands, times: Times, store: Store):
    await hands.create(watched(at(START + 1000), failed=True))
    await run_once(hands, times)
    await store.watch_alerts()
    assert [each.state for each in await incidents(store)] == ["open"]


async def test_an_incident_of_a_deleted_job_is_closed_in_silence(hands: Hands, times: Times, store: Store):
    (job,) = await hands.create(watched(failed=True))
    await run_once(hands, times)
    await store.delete_job(1, job.id)
    await store.watch_alerts()
    assert [each.state for each in await incidents(store)] == ["closed"]
    assert await events(hands) == ["opened ops"]


async def test_it_is_told_again_while_it_lasts(hands: Hands, times: Times, store: Store):
    await hands.create(watched(failed=True, repeat=Duration(10 * MINUTE)))
    await run_once(hands, times)
    await times.advance(9 * MINUTE)
    assert not await store.watch_alerts()
    await times.advance(MINUTE)
    assert await store.watch_alerts()
    assert not await store.watch_alerts()
    assert await events(hands) == ["opened ops", "repeated ops"]


async def test_quiet_hours_hold_it_back_and_what_is_over_by_then_is_not_told(hands: Hands, times: Times, store: Store):
    await hands.create(watched(failed=True, quiet="22:00-07:00"))  # START is 22:13 UTC
    await run_once(hands, times)
    assert await store.alerts_due(["ops"]) == []
    await run_once(hands, times, OK)
    await store.watch_alerts()
    assert await events(hands) == []
    await run_once(hands, times)
    await times.advance(9 * 60 * MINUTE)
    assert await store.alerts_due(["ops"]) == ["ops"]


def trouble(now: int, **more: Any) -> Trouble:
    facts = {"tenant": 1, "subject": job_subject(7), "condition": "missed", "reason": "no ping", "cause": "missed"}
    return Trouble(**{**facts, "at": now, "job_id": 7, "ways": [AlertWay(channel="ops", recovered=True)], **more})


async def opened(store: Store, *troubles: Trouble) -> None:
    await store.driver.transact_slow(lambda tx: open_incidents(tx, troubles))


async def test_others_can_open_and_close_one(hands: Hands, times: Times, store: Store):
    """What is found again changes nothing, and what was found before the end does not open it anew."""
    (opening,) = await store.driver.transact_slow(lambda tx: open_incidents(tx, [trouble(START)]))
    again = await store.driver.transact_slow(lambda tx: open_incidents(tx, [trouble(START + 5)]))
    assert again == []
    over = [ClosedIncident(id=opening.id, at=START + 9)]
    assert await store.driver.transact_slow(lambda tx: close_incidents(tx, over)) == 1
    stale = await store.driver.transact_slow(lambda tx: open_incidents(tx, [trouble(START + 8)]))
    assert stale == []
    assert await events(hands) == ["opened ops", "recovered ops"]


async def test_what_was_found_again_since_somebody_looked_is_not_over(hands: Hands, times: Times, store: Store):
    """A run went well, the look saw it, and before it wrote so the next run failed."""
    await opened(store, trouble(START))
    (found,) = await incidents(store)
    await opened(store, trouble(START + 5, occurrence="7-5"))
    over = [ClosedIncident(id=found.id, at=START + 3)]
    assert await store.driver.transact_slow(lambda tx: close_incidents(tx, over)) == 0
    assert [each.state for each in await incidents(store)] == ["open"]
    assert await events(hands) == ["opened ops"]


async def test_messages_are_taken_by_one_node_and_by_another_when_that_dies(hands: Hands, times: Times, store: Store):
    for node in ("n1", "n2"):
        await store.register(node_info(node))
    await store.driver.transact_slow(lambda tx: open_incidents(tx, [trouble(START)]))
    (taken,), sent = await store.take_alerts("n1", "ops")
    assert (taken.event, taken.tries, sent) == ("opened", 1, 0)
    assert await store.take_alerts("n2", "ops") == ([], 0)
    assert await store.alerts_due(["ops"]) == []
    await store.declare_lost("n1", 0)
    assert await store.alerts_due(["ops", "else"]) == ["ops"]
    (again,), _ = await store.take_alerts("n2", "ops")
    assert (again.id, again.tries) == (taken.id, 2)
    await store.alerts_sent([again.id])
    assert await store.take_alerts("n2", "ops") == ([], 1)
    (found,) = await incidents(store)
    assert [(each.channel, each.state, each.tries) for each in found.deliveries] == [("ops", "sent", 2)]


async def test_what_is_not_delivered_is_tried_again_and_given_up_in_the_end(hands: Hands, times: Times, store: Store):
    await store.register(node_info("n1"))
    await store.driver.transact_slow(lambda tx: open_incidents(tx, [trouble(START)]))
    for number in range(1, 21):
        (taken,), _ = await store.take_alerts("n1", "ops")
        assert taken.tries == number
        await store.alerts_not_sent([taken.id], "away", 5_000)
        assert await store.alerts_due(["ops"]) == []
        await times.advance(5_000)
    assert await store.take_alerts("n1", "ops") == ([], 0)
    (found,) = await incidents(store)
    assert [(each.state, each.error) for each in found.deliveries] == [("failed", "away")]


async def test_put_off_counts_as_no_try(hands: Hands, times: Times, store: Store):
    await store.register(node_info("n1"))
    await store.driver.transact_slow(lambda tx: open_incidents(tx, [trouble(START)]))
    (taken,), _ = await store.take_alerts("n1", "ops")
    await store.alerts_not_sent([taken.id], None, 1000)
    await times.advance(1000)
    (taken,), _ = await store.take_alerts("n1", "ops")
    assert taken.tries == 1


async def test_pages_of_incidents(hands: Hands, times: Times, store: Store):
    for number in range(5):
        one = trouble(START + number, subject=job_subject(number), job_id=number)
        await opened(store, one)
        await times.advance(1)
    page = await store.list_incidents(1, IncidentFilter(limit=2))
    assert [each.job_id for each in page.items] == [4, 3]
    page = await store.list_incidents(1, IncidentFilter(limit=2, cursor=page.next))
    assert [each.job_id for each in page.items] == [2, 1]
    assert [each.job_id for each in await incidents(store, job_id=3)] == [3]
    assert await incidents(store, condition="late") == []
    assert await incidents(store, state="closed") == []
    assert (await store.list_incidents(2, IncidentFilter())).items == []
    assert await store.count_open_incidents(1) == 5


async def test_old_incidents_go_with_their_messages(hands: Hands, times: Times, store: Store):
    (opening,) = await store.driver.transact_slow(lambda tx: open_incidents(tx, [trouble(START)]))
    over = [ClosedIncident(id=opening.id, at=START + 9)]
    await store.driver.transact_slow(lambda tx: close_incidents(tx, over))
    await times.advance(MINUTE)
    await store.prune(times.now)
    assert await incidents(store) == []
    assert await events(hands) == []
