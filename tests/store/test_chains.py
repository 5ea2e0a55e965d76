"""Chains: the end of a run starts the jobs that its job names, once, whatever happens in between."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import msgspec
import pytest

from onthedot import telemetry
from onthedot.errors import Conflict, Invalid, StoreUnavailable
from onthedot.model.chains import LONGEST_CHAIN
from onthedot.model.duration import Duration
from onthedot.model.instant import NEVER
from onthedot.model.job import JobSpec, JobView
from onthedot.model.policy import Retry
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.plan import chain_number
from onthedot.store import LetterFilter, NewJob, Store
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, OK, REFUSED, Hands, at, every, node_info, spec

MINUTE = 60_000
FAR = at(START + 365 * 86_400_000)
GIVEN = Outcome(kind="ok", detail={"status_code": 200, "result": {"rows": 3}})


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


@pytest.fixture
def said():
    events: list[tuple[str, dict[str, Any]]] = []
    stop = telemetry.subscribe(lambda event: events.append((event.name, event.fields)))
    yield events
    stop()


def chained(key: str | None, schedule: Any = FAR, *, policy: dict[str, Any] | None = None, **edges: Any) -> JobSpec:
    return msgspec.structs.replace(spec(schedule, key=key, **(policy or {})), **edges)


async def carry_out(hands: Hands) -> list[str]:
    """All notes; the runs that were started."""
    started, after = [], 0
    for _ in range(100):
        carried = await hands.store.carry_out_notes(after)
        if carried is None:
            break
        after = max(after, carried.passed)
        started += [each.run_id for each in carried.started]
    return started


async def notes(hands: Hands) -> list[str]:
    return [row["run_id"] for row in await hands.sql("SELECT * FROM notes ORDER BY id")]


async def a_run(hands: Hands, times: Times, key: str = "a", **more: Any) -> ClaimedRun:
    """Of a job that starts the jobs done, dead and any."""
    await hands.create(*(chained(name) for name in ("done", "dead", "any")))
    edges: dict[str, Any] = {"on_success": ["done"], "on_failure": ["dead"], "on_finish": ["any"]}
    await hands.create(chained(key, every(MINUTE), **edges, **more))
    await times.advance(MINUTE)
    return await hands.one()


async def keys_of(hands: Hands, runs: list[str]) -> list[str | None]:
    return [(await hands.store.get_run(1, run)).key for run in runs]


@pytest.mark.parametrize(
    ("outcome", "status", "followed"),
    [(GIVEN, "DONE", ["done", "any"]), (OK, "DONE", ["done", "any"]), (REFUSED, "FAILED", ["dead", "any"])],
)
async def test_the_end_of_a_run_starts_the_jobs_that_follow_it(
    hands: Hands, times: Times, said, outcome: Outcome, status: str, followed: list[str]
):
    run = await a_run(hands, times)
    report = await hands.finish(run, outcome=outcome)
    assert (report.recorded, report.noted) == (1, True)
    started = await carry_out(hands)
    assert await keys_of(hands, started) == followed
    assert await notes(hands) == []
    ended = await hands.store.get_run(1, run.id)
    assert ended.followers == sorted(started)
    trigger = {
        "job_key": "a",
        "job_id": run.job_id,
        "run_id": run.id,
        "status": status,
        "result": ended.result,
        "error": ended.error,
    }
    for view in [await hands.store.get_run(1, each) for each in started]:
        assert (view.kind, view.status, view.params) == ("chain", "PENDING", {"trigger": trigger})
        assert (view.trigger.kind, view.trigger.run_id) == ("chain", run.id)
        assert view.id == f"{view.job_id}-{times.now}-c{chain_number(run.id)}"
    claimed = (await hands.claim()).runs
    assert {each.id: each.params for each in claimed} == {each: {"trigger": trigger} for each in started}
    assert [fields["parent"] for name, fields in said if name == "chain.started"] == [run.id] * 2
    await hands.finish(*claimed)
    await hands.check()


async def test_a_failed_try_starts_nobody_and_the_last_one_does(hands: Hands, times: Times):
    run = await a_run(hands, times, policy={"retry": Retry(attempts=2, backoff=Duration(1000))})
    assert not (await hands.finish(run, outcome=FAILED)).noted
    await times.advance(2000)
    again = await hands.one()
    assert again.id == run.id
    await hands.finish(again, outcome=FAILED)
    assert await keys_of(hands, await carry_out(hands)) == ["dead", "any"]


async def test_a_redriven_dead_letter_that_goes_well_starts_what_follows_success(hands: Hands, times: Times):
    run = await a_run(hands, times)
    await hands.finish(run, outcome=REFUSED)
    (dead, _) = await carry_out(hands)
    (again,) = await hands.store.redrive(1, LetterFilter(ids=[run.id]))
    driven = next(each for each in (await hands.claim()).runs if each.id == again)
    await hands.finish(driven)
    started = await carry_out(hands)
    assert await keys_of(hands, started) == ["done", "any"]
    assert (await hands.store.get_run(1, again)).trigger.run_id == run.id
    assert (await hands.store.get_run(1, run.id)).followers is not None
    assert dead not in started


async def test_a_driven_run_of_a_chain_keeps_its_trigger(hands: Hands, times: Times):
    run = await a_run(hands, times)
    await hands.finish(run)
    started = await carry_out(hands)
    first = next(each for each in (await hands.claim()).runs if each.id == started[0])
    await hands.finish(first, outcome=REFUSED)
    (again,) = await hands.store.redrive(1, LetterFilter(ids=[first.id]))
    view = await hands.store.get_run(1, again)
    assert view.params == (await hands.store.get_run(1, first.id)).params
    assert (view.trigger.kind, view.trigger.run_id) == ("retry", first.id)
    assert (await hands.store.get_run(1, run.id)).followers == sorted(started)


@pytest.mark.parametrize("how", ["cancelled", "replaced", "deleted", "late"])
async def test_what_is_cancelled_replaced_or_skipped_starts_nobody(hands: Hands, times: Times, how: str):
    run = await a_run(hands, times, policy={"expires_in": Duration(1000)} if how == "late" else {})
    if how == "cancelled":
        await hands.store.cancel_run(1, run.id)
        await hands.finish(run, outcome=Outcome(kind="cancelled", error="cancelled by a user"))
    elif how == "replaced":
        await hands.finish(run, outcome=Outcome(kind="cancelled", detail={"replaced_by": "1-2"}))
    elif how == "late":
        await hands.finish(run, outcome=Outcome(kind="expired"))
    else:
        await hands.store.delete_job(1, run.job_id)
        await hands.finish(run)
    (entry,) = [row for row in await hands.ledger(run.job_id) if row["id"] == run.id]
    assert entry["status"] == {"late": "skipped", "deleted": "done"}.get(how, "cancelled")
    assert await notes(hands) == []
    assert await carry_out(hands) == []


async def test_a_cancelled_run_that_waits_starts_nobody(hands: Hands, times: Times):
    run = await a_run(hands, times, policy={"retry": Retry(attempts=9, backoff=Duration(5000))})
    await hands.finish(run, outcome=FAILED)
    await hands.store.cancel_run(1, run.id)
    assert await notes(hands) == []


async def test_a_lost_node_and_a_dead_letter_by_it(hands: Hands, times: Times):
    """At most once, sent, and then its node was gone: a dead letter, without anybody who finished it."""
    run = await a_run(hands, times, policy={"delivery": "at_most_once"})
    assert await hands.store.begin("n1", [(run.id, run.token)]) == {run.id}
    await hands.store.register(node_info("n2"))
    assert await hands.store.reclaim() == 1
    started = await carry_out(hands)
    assert await keys_of(hands, started) == ["dead", "any"]
    params = (await hands.store.get_run(1, started[0])).params
    assert params is not None
    assert params["trigger"]["error"] == "the node was lost after the run was sent"


@pytest.mark.parametrize(
    ("outcome", "followed"), [(GIVEN, ["done", "any"]), (REFUSED, ["dead", "any"]), (None, ["dead", "any"])]
)
async def test_what_a_callback_or_its_absence_ends(
    hands: Hands, times: Times, outcome: Outcome | None, followed: list[str]
):
    policy = {"completion": "callback", "completion_timeout": Duration(5000), "retry": Retry(attempts=1)}
    run = await a_run(hands, times, policy=policy)
    assert not (await hands.finish(run)).noted  # accepted: it has not ended
    assert await notes(hands) == []
    if outcome is None:
        await times.advance(6000)
        assert await hands.store.reclaim() == 1
    else:
        await hands.store.complete(run.id, 1, outcome)
    assert await keys_of(hands, await carry_out(hands)) == followed


async def test_of_a_paused_job_it_waits_for_the_resume(hands: Hands, times: Times):
    run = await a_run(hands, times)
    done = await hands.store.get_job_by_key(1, "done")
    await hands.store.pause_job(1, done.id)
    await hands.finish(run)
    started = await carry_out(hands)
    (row,) = [row for row in await hands.live(done.id) if row["kind"] == "chain"]
    assert (row["id"], row["parked"], row["ready_at"]) == (started[0], "paused", NEVER)
    await hands.store.resume_job(1, done.id)
    assert started[0] in [each.id for each in (await hands.claim()).runs]
    await hands.check()


async def test_a_job_that_has_ended_runs_once_more_and_one_that_waits_does_not_end_by_it(hands: Hands, times: Times):
    over, waits = await hands.create(chained("over", at(START + 1000)), chained("waits"))
    await times.advance(1000)
    await hands.finish(await hands.one())
    assert (await hands.store.get_job(1, over.id)).state == "ended"
    (view,) = await hands.create(chained(None, every(MINUTE), on_success=["over", "waits"]))
    await times.advance(MINUTE)
    run = await hands.one()
    assert run.job_id == view.id
    await hands.finish(run)
    started = await carry_out(hands)
    claimed = [each for each in (await hands.claim()).runs if each.id in started]
    assert len(claimed) == 2
    await hands.finish(*claimed)
    assert (await hands.store.get_job(1, waits.id)).state == "active"
    assert (await hands.store.get_job(1, waits.id)).next_run is not None
    trigger = (claimed[0].params or {})["trigger"]
    assert (trigger["job_key"], trigger["job_id"]) == (None, view.id)


async def test_where_runs_may_not_overlap_it_waits_for_its_turn(hands: Hands, times: Times):
    await hands.create(chained("lane", every(MINUTE), policy={"overlap": "skip"}))
    (view,) = await hands.create(chained("a", at(START + MINUTE), on_success=["lane"]))
    await times.advance(MINUTE)
    holder, run = sorted((await hands.claim()).runs, key=lambda each: each.job_id == view.id)
    await hands.finish(run)
    (started,) = await carry_out(hands)
    assert (await hands.claim()).runs == []
    await hands.finish(holder)
    assert [each.id for each in (await hands.claim()).runs] == [started]
    await hands.check()


async def test_what_is_changed_after_the_end_does_not_count(hands: Hands, times: Times):
    run = await a_run(hands, times)
    await hands.finish(run)
    unchain = {"on_success": msgspec.UNSET, "on_failure": msgspec.UNSET, "on_finish": msgspec.UNSET}
    await hands.store.update_job(1, run.job_id, lambda old: msgspec.structs.replace(old, **unchain))
    assert await keys_of(hands, await carry_out(hands)) == ["done", "any"]


async def test_a_job_that_was_deleted_meanwhile_is_told_of(hands: Hands, times: Times, said):
    run = await a_run(hands, times)
    await hands.finish(run)
    await hands.store.update_job(1, run.job_id, lambda old: msgspec.structs.replace(old, on_success=msgspec.UNSET))
    done = await hands.store.get_job_by_key(1, "done")
    await hands.store.delete_job(1, done.id)
    assert await keys_of(hands, await carry_out(hands)) == ["any"]
    (told,) = [fields for name, fields in said if name == "chain.not_started"]
    assert (told["key"], told["parent"], told["reason"]) == ("done", run.id, "deleted")


# names


@pytest.mark.parametrize("field", ["on_success", "on_failure", "on_finish"])
async def test_an_unknown_key_is_refused_by_every_way_in(hands: Hands, field: str):
    edges: dict[str, Any] = {field: ["nobody"]}
    bad = chained("a", **edges)
    (refused,) = await hands.store.create_jobs([NewJob(tenant=1, spec=bad)])
    assert isinstance(refused, Invalid)
    (problem,) = refused.problems
    assert (problem.path, problem.given, problem.message) == (f"{field}[0]", "nobody", "no job has this key")
    with pytest.raises(Invalid, match="no job has this key"):
        await hands.store.put_job(1, "a", lambda old: bad)
    (view,) = await hands.create(chained("a"))
    with pytest.raises(Invalid, match="no job has this key"):
        await hands.store.update_job(1, view.id, lambda old: bad)
    with pytest.raises(Invalid) as caught:
        await hands.store.sync_jobs(1, "f.json", [bad], prune=False, others="adopt")
    assert caught.value.problems[0].path == f"jobs[0].{field}[0]"
    assert (await hands.store.get_job(1, view.id)).version == 1


async def test_jobs_of_one_group_name_each_other_in_any_order(hands: Hands):
    specs = [chained("a", on_success=["b"]), chained("b", on_finish=["c"]), chained("c")]
    assert [view.key for view in await hands.create(*specs)] == ["a", "b", "c"]
    assert (await hands.store.get_job_by_key(1, "a")).on_success == ["b"]
    rows = await hands.sql("SELECT source_key, edge, target_key FROM job_chains ORDER BY job_id")
    assert [tuple(row) for row in rows] == [("a", "on_success", "b"), ("b", "on_finish", "c")]


async def test_a_wrong_item_takes_with_it_only_those_that_name_it(hands: Hands):
    specs = [
        chained("a", on_success=["b"]),
        chained("b", on_success=["nobody"]),
        chained("c", on_success=["d"]),
        chained("d"),
        chained("x", on_success=["y"]),
        chained("y", on_failure=["x"]),
    ]
    answers = await hands.store.create_jobs([NewJob(tenant=1, spec=each) for each in specs])
    assert [isinstance(answer, JobView) for answer in answers] == [False, False, True, True, False, False]
    assert "x → y → x" in str(answers[4])
    assert [row["key"] for row in await hands.sql("SELECT key FROM jobs ORDER BY id")] == ["c", "d"]


async def test_a_cycle_is_refused_and_said(hands: Hands):
    a, b, c = await hands.create(chained("a"), chained("b", on_success=["a"]), chained("c", on_failure=["b"]))
    with pytest.raises(Invalid, match="a → c → b → a") as caught:
        await hands.store.update_job(1, a.id, lambda old: msgspec.structs.replace(old, on_finish=["c"]))
    assert (caught.value.problems[0].path, caught.value.problems[0].given) == ("on_finish[0]", "c")
    with pytest.raises(Invalid, match="b → b"):
        await hands.store.update_job(1, b.id, lambda old: msgspec.structs.replace(old, on_failure=["b"]))
    with pytest.raises(Invalid, match="a → c → b → a"):
        await hands.store.sync_jobs(1, "f", [chained("a", on_success=["c"])], prune=False, others="adopt")
    assert [(await hands.store.get_job(1, job.id)).version for job in (a, b, c)] == [1, 1, 1]


async def test_two_who_each_close_half_of_a_cycle_take_turns(hands: Hands):
    specs = [chained("a"), chained("b", on_success=["c"]), chained("c"), chained("d", on_success=["a"])]
    a, _, c, _ = await hands.create(*specs)
    done = await asyncio.gather(
        hands.store.update_job(1, a.id, lambda old: msgspec.structs.replace(old, on_success=["b"])),
        hands.store.update_job(1, c.id, lambda old: msgspec.structs.replace(old, on_success=["d"])),
        return_exceptions=True,
    )
    assert sorted(type(each).__name__ for each in done) == ["Invalid", "JobView"]


async def test_a_chain_has_an_end(hands: Hands):
    keys = [f"j{number}" for number in range(LONGEST_CHAIN + 1)]
    specs = [chained(key, on_success=[after]) for key, after in itertools.pairwise(keys)]
    await hands.create(*specs[1:], chained(keys[-1]))
    (refused,) = await hands.store.create_jobs([NewJob(tenant=1, spec=specs[0])])
    assert isinstance(refused, Invalid)
    assert refused.problems[0].message == f"this job would be in a chain of {LONGEST_CHAIN + 1} jobs"
    with pytest.raises(Invalid, match="in a chain of 33 jobs"):  # also where it gets longer in the middle
        await hands.store.put_job(1, "first", lambda old: chained("first", on_success=[keys[1]]))


async def test_a_chain_that_was_made_longer_while_it_ran_ends_with_a_row_that_says_so(hands: Hands, times: Times, said):
    run = await a_run(hands, times)
    await hands.sql(
        "INSERT INTO run_params (run_id, tenant, params, created_at, depth) "
        f"VALUES ('{run.id}', 1, '{{}}', 1, {LONGEST_CHAIN})"
    )
    await hands.finish(run)
    assert await carry_out(hands) == []
    done = await hands.store.get_job_by_key(1, "done")
    (row,) = await hands.ledger(done.id)
    assert (row["status"], row["reason"], row["kind"], row["parent"]) == ("skipped", "chain_too_long", "chain", run.id)
    assert [fields["reason"] for name, fields in said if name == "chain.not_started"] == ["chain_too_long"] * 2
    await hands.check()


async def test_a_job_that_is_named_is_not_deleted_renamed_or_pruned(hands: Hands, times: Times):
    (b,) = await hands.create(chained("b", at(START + 1000)))
    (a,) = await hands.create(chained("a", on_failure=["b"]))
    with pytest.raises(Conflict, match=rf"can't delete job {b.id}: on_failure of job {a.id} \('a'\) names 'b'"):
        await hands.store.delete_job(1, b.id)
    with pytest.raises(Conflict, match=f"can't change the key 'b' of job {b.id}"):
        await hands.store.update_job(1, b.id, lambda old: msgspec.structs.replace(old, key="c"))
    await times.advance(1000)
    await hands.finish(await hands.one())
    await times.advance(86_400_000 * 40)
    await hands.store.prune(times.now)
    assert (await hands.store.get_job_by_key(1, "b")).state == "ended"
    await hands.store.delete_job(1, a.id)
    await hands.store.delete_job(1, b.id)
    assert await hands.sql("SELECT * FROM job_chains") == []


async def test_a_file_removes_what_its_own_jobs_no_longer_name(hands: Hands):
    both = [chained("a", on_success=["b"]), chained("b")]
    assert (await hands.store.sync_jobs(1, "f", both, prune=True)).created == ["a", "b"]
    assert (await hands.store.sync_jobs(1, "f", both, prune=True)).unchanged == ["a", "b"]
    with pytest.raises(Invalid, match="no job has this key"):
        await hands.store.sync_jobs(1, "f", both[:1], prune=True)
    (other,) = await hands.create(chained("other", on_finish=["b"]))
    with pytest.raises(Conflict, match=rf"on_finish of job {other.id} \('other'\) names 'b'"):
        await hands.store.sync_jobs(1, "f", [chained("a")], prune=True)
    with pytest.raises(Conflict, match="on_finish"):
        await hands.store.sync_jobs(1, "f", [chained("a")], prune=True, dry_run=True)
    await hands.store.delete_job(1, other.id)
    assert (await hands.store.sync_jobs(1, "f", [chained("a")], prune=True)).removed == ["b"]
    assert await hands.sql("SELECT * FROM job_chains") == []


async def test_keys_are_those_of_the_tenant(hands: Hands, times: Times):
    await hands.sql("INSERT INTO tenants (id, name, created_at) VALUES (7, 'other', 0)")
    await hands.store.create_jobs([NewJob(tenant=7, spec=chained("b"))])
    (refused,) = await hands.store.create_jobs([NewJob(tenant=1, spec=chained("a", on_success=["b"]))])
    assert isinstance(refused, Invalid)
    mine, (theirs,) = (
        await hands.create(chained("b")),
        await hands.store.create_jobs([NewJob(tenant=7, spec=chained("a", every(MINUTE), on_success=["b"]))]),
    )
    assert isinstance(theirs, JobView)
    await hands.store.delete_job(1, mine[0].id)  # it is another tenant's that is named
    await times.advance(MINUTE)
    await hands.finish(await hands.one())
    (started,) = await carry_out(hands)
    assert (await hands.store.get_run(7, started)).key == "b"


# whoever dies


async def lose_the_answer(store: Store, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The next transaction is committed, and whoever asked for it never learns of it."""
    once = getattr(store.driver, name)

    async def lost(*args: Any, **named: Any) -> Any:
        monkeypatch.setattr(store.driver, name, once)
        await once(*args, **named)
        raise StoreUnavailable("the answer was lost")

    monkeypatch.setattr(store.driver, name, lost)


async def test_who_dies_after_the_end_or_after_the_start_loses_and_doubles_nothing(
    hands: Hands, times: Times, monkeypatch: pytest.MonkeyPatch
):
    run = await a_run(hands, times)
    await lose_the_answer(hands.store, monkeypatch, "transact")
    with pytest.raises(StoreUnavailable):
        await hands.finish(run)
    again = await hands.finish(run)
    assert (again.recorded, again.repeated) == (0, [run.id])
    assert await notes(hands) == [run.id]
    await lose_the_answer(hands.store, monkeypatch, "transact_slow")
    with pytest.raises(StoreUnavailable):
        await hands.store.carry_out_notes()
    assert await carry_out(hands) == []
    assert [row["parent"] for row in await hands.live() if row["kind"] == "chain"] == [run.id] * 2


async def test_the_same_note_twice_starts_a_job_once(hands: Hands, times: Times):
    run = await a_run(hands, times)
    await hands.finish(run)
    columns = "kind, tenant, job_id, run_id, said, created_at"
    await hands.sql(f"INSERT INTO notes ({columns}) SELECT {columns} FROM notes")
    await carry_out(hands)
    assert len([row for row in await hands.live() if row["kind"] == "chain"]) == 2
    assert await notes(hands) == []


async def test_all_nodes_at_once_start_each_job_once(hands: Hands, times: Times):
    await hands.create(chained("b"))
    await hands.create(*(chained(f"a{n}", every(MINUTE), on_success=["b"]) for n in range(8)))
    await times.advance(MINUTE)
    await hands.finish(*(await hands.claim()).runs)
    found = await asyncio.gather(*(hands.store.carry_out_notes() for _ in range(10)))
    started = [each.run_id for carried in found if carried is not None for each in carried.started]
    assert len(started) == len(set(started)) == 8
    assert await notes(hands) == []


async def test_one_that_can_not_be_read_keeps_no_other_waiting(hands: Hands, times: Times, said):
    run = await a_run(hands, times)
    await hands.sql(
        "INSERT INTO notes (kind, tenant, job_id, run_id, said, created_at) "
        f"VALUES ('chain', 1, {run.job_id}, 'x', 'not JSON', 1)"
    )
    await hands.finish(run)
    assert await keys_of(hands, await carry_out(hands)) == ["done", "any"]
    assert "note.failed" in [name for name, _ in said]
    assert await notes(hands) == ["x"]


async def test_an_older_node_leaves_them_alone(hands: Hands, times: Times):
    run = await a_run(hands, times)
    await hands.finish(run)
    started = await carry_out(hands)
    assert (await hands.claim(level=3)).runs == []
    assert {each.id for each in (await hands.claim()).runs} == set(started)
    (row,) = await hands.sql(f"SELECT spec, level FROM jobs WHERE id = {run.job_id}")
    assert row["level"] == 4
    plain = json.loads((await hands.sql("SELECT spec FROM jobs WHERE key = 'done'"))[0]["spec"])
    assert not {"on_success", "on_failure", "on_finish"} & set(plain)


async def test_a_job_knows_its_neighbours(store: Store) -> None:
    specs = [chained("b"), chained("a", on_finish=["b"])]
    b, a = await store.create_jobs([NewJob(tenant=1, spec=each) for each in specs])
    assert isinstance(a, JobView)
    assert isinstance(b, JobView)
    found = await store.chain_of(1, a.id)
    assert ([(each.on, each.id, each.key) for each in found.followers], found.follows) == (
        [("on_finish", b.id, "b")],
        [],
    )
    assert [(each.on, each.id, each.key) for each in (await store.chain_of(1, b.id)).follows] == [
        ("on_finish", a.id, "a")
    ]
