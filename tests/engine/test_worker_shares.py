"""Shares of workers in the engine: one job or tenant never has all of them, and what goes beyond waits in the store."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from onthedot.clock import FakeClock, SystemClock
from onthedot.engine import EngineSettings, Node
from onthedot.engine.messages import Claimed
from onthedot.engine.tuning import CLAIM_AGAIN
from onthedot.model.duration import Duration
from onthedot.model.run import ClaimedRun, RunStatus
from onthedot.model.schedule import Schedule
from onthedot.model.targets import FunctionTarget
from onthedot.store import NewJob, Order, RunFilter, TurnedAway, open_store
from onthedot.targets import Targets
from onthedot.targets.contract import Profile
from onthedot.targets.function.kind import Functions
from tests.engine.making import FUNCTION, Desk, FakeSender, spec
from tests.engine.test_dispatcher import Bench
from tests.services.waiting import until

JOB = "function:reports@job:"


class Workers(Desk):
    """Functions end when the test says so."""

    brief = False

    def __init__(self, sender: FakeSender) -> None:
        profile = Profile(capacity=4, shares_workers=True)
        super().__init__(sender, FunctionTarget, begins=True, profile=profile)

    def is_brief(self, target: FunctionTarget) -> bool:
        return self.brief

    def end(self, run_id: str) -> None:
        (started,) = [each for each in self.calls if each.call.run_id == run_id and each._done is not None]
        started.tell()


class Factory(Bench):
    """A node of four workers."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock, next_job_count=200)
        self.store.script("claim", *[self.claim() for _ in range(99)])

    def furnish(self) -> None:
        self.workers = Workers(self.sender)

    def of(self, job: int, *slots: int, tenant: int = 1, **more: Any) -> list[ClaimedRun]:
        runs = [self.run(f"{job}-{slot}", target=FUNCTION, **more) for slot in slots]
        return [msgspec.structs.replace(run, tenant=tenant) for run in runs]

    def bring(self, *runs: ClaimedRun, requires: str = "function", limit: int = 100, left: bool = False) -> None:
        """A claim brought these. `left`: there are more."""
        for run in runs:
            self.wiring.owned.add(run.id, run.token)
        claim = self.claim(*runs, next_ready=self.now if left else None)
        self.dispatcher.handle(Claimed([(requires, limit, claim)]))

    def away(self) -> list[str]:
        """Who was sent to wait in the store, and what it requires."""
        found = [item for item in self.written if isinstance(item, TurnedAway)]
        assert all(item.waiting == "slot" for item in found)
        for item in found:
            self.wiring.shares.waits(item.requires)
        return [f"{item.run_id} {item.requires}" for item in found]

    async def asked(self) -> list[tuple[list[str], int]]:
        """What the next claim asks for, of functions."""
        before = len(self.store.asked_for("claim"))
        await self.look()
        return [each for each in self.store.asked_for("claim")[before:] if each[0] != ["webhook"]]


@pytest.fixture
def factory(fake_clock: FakeClock) -> Factory:
    return Factory(fake_clock)


async def test_one_job_never_has_all_workers_and_another_starts_at_once(factory: Factory):
    factory.bring(*factory.of(1, 1, 2, 3, 4, 5))
    assert factory.workers.names == ["1-1", "1-2", "1-3"]
    assert factory.away() == [f"1-4 {JOB}1", f"1-5 {JOB}1"]
    assert (factory.slots.held, factory.slots.running) == (0, 3), "what waits holds no slot"
    factory.bring(*factory.of(2, 1, 2))
    assert factory.workers.names[3:] == ["2-1"]


async def test_half_of_them_it_has_whoever_has_the_others(factory: Factory):
    factory.bring(*factory.of(1, 1, 2), *factory.of(2, 1))
    factory.bring(*factory.of(1, 3))
    assert factory.away() == [f"1-3 {JOB}1"]
    factory.bring(*factory.of(2, 2))
    assert factory.workers.names == ["1-1", "1-2", "2-1", "2-2"]


async def test_what_has_ended_leaves_its_place_in_the_half(factory: Factory):
    factory.bring(*factory.of(1, 1, 2), *factory.of(2, 1))
    factory.bring(*factory.of(2, 2))
    factory.workers.end("1-1")
    factory.bring(*factory.of(1, 3))
    assert (factory.workers.names[-1], factory.away()) == ("1-3", [])


async def test_what_waits_is_claimed_when_its_share_has_room_and_only_then(factory: Factory):
    factory.bring(*factory.of(1, 1, 2, 3, 4, 5))
    factory.away()
    assert [JOB + "1"] not in [offers for offers, _ in await factory.asked()]
    factory.workers.end("1-1")
    assert ([JOB + "1"], 1) in await factory.asked()
    factory.wiring.shares.waits(JOB + "1")  # the scripted store had none
    factory.bring(*factory.of(1, 4), requires=JOB + "1", limit=1, left=True)
    assert factory.workers.names[-1] == "1-4"
    factory.workers.end("1-2")
    factory.bring(*factory.of(1, 6))
    assert factory.away() == [f"1-6 {JOB}1"], "what comes new leaves the place to those that wait"
    factory.bring(*factory.of(1, 5), requires=JOB + "1", limit=2)
    assert factory.workers.names[-1] == "1-5"
    factory.workers.end("1-3")
    factory.bring(*factory.of(1, 7))
    assert factory.workers.names[-1] == "1-7", "nobody waits any more"


async def test_behind_those_that_wait_for_their_lanes_are_others(factory: Factory, fake_clock: FakeClock):
    """A claim that brought none and says that there is more: the next one is not left to the poll."""
    look_times, now = factory.wiring.look_times, fake_clock.monotonic()
    factory.wiring.shares.waits(JOB + "1")
    look_times.looked(now, None, gap=1.0)
    factory.wiring.shares.brought(JOB + "1", 1, factory.claim(next_ready=factory.claim().now))
    assert look_times.latest <= now + CLAIM_AGAIN
    look_times.looked(now, None, gap=1.0)
    factory.wiring.shares.brought(JOB + "1", 1, factory.claim())
    assert look_times.latest == now + 1.0, "that was all"


async def test_others_behind_a_long_line_of_one_job_are_seen_soon(factory: Factory):
    factory.bring(*factory.of(1, 1, 2, 3, 4), left=True)
    factory.away()
    asked, *_ = [limit for offers, limit in await factory.asked() if offers == ["function:reports"]]
    assert asked > 60, "more than could start: most are of the job that has its share"
    factory.bring(*factory.of(2, 1), left=True)
    factory.workers.end("2-1")
    asked, *_ = [limit for offers, limit in await factory.asked() if offers == ["function:reports"]]
    assert asked <= 2, "nobody was turned away: as many as can start"


async def test_brief_functions_are_not_limited(factory: Factory):
    factory.workers.brief = True
    factory.bring(*factory.of(1, 1, 2, 3, 4))
    assert factory.workers.names == ["1-1", "1-2", "1-3", "1-4"]
    factory.bring(*factory.of(1, 5))
    assert factory.away() == []


async def test_a_tenant_leaves_workers_to_others_once_there_are_several(factory: Factory):
    factory.bring(*factory.of(1, 1), *factory.of(2, 1), *factory.of(3, 1), *factory.of(4, 1))
    assert len(factory.workers.names) == 4, "alone, it has them all"
    for job in range(1, 5):
        factory.workers.end(f"{job}-1")
    factory.bring(*factory.of(9, 1, tenant=2))
    factory.workers.end("9-1")
    factory.bring(*(run for job in range(5, 9) for run in factory.of(job, 1)))
    assert factory.away() == ["8-1 function:reports@tenant:1"]
    factory.bring(*factory.of(9, 2, tenant=2))
    assert factory.workers.names[-1] == "9-2"


async def test_a_run_that_is_due_later_is_looked_at_when_it_is_due(factory: Factory, fake_clock: FakeClock):
    factory.bring(*factory.of(1, 1, 2, 3), *factory.of(1, 4, due_in=500))
    assert factory.away() == []
    await fake_clock.advance(0.5)
    factory.beat()
    factory.dispatcher.tick()
    assert factory.away() == [f"1-4 {JOB}1"]
    assert factory.slots.held == 0


async def test_at_most_once_waits_before_it_is_recorded_as_begun(factory: Factory):
    factory.bring(*factory.of(1, 1, 2, 3, 4, delivery="at_most_once"))
    assert len(factory.wiring.gate.mailbox) == 3
    assert factory.away() == [f"1-4 {JOB}1"]


async def test_who_waits_for_a_slot_here_is_looked_at_again_when_one_is_free(factory: Factory):
    """All were busy when it came due; then its own job got the share."""
    factory.bring(*factory.of(1, 1), *factory.of(2, 1, 2), *factory.of(3, 1))
    factory.bring(*factory.of(1, 2, 3))
    assert factory.slots.held == 2
    factory.workers.end("3-1")
    assert factory.workers.names[-1] == "1-2"
    factory.workers.end("2-1")
    assert factory.away() == [f"1-3 {JOB}1"]
    assert factory.slots.held == 0


async def test_a_stopped_run_gives_its_part_back(factory: Factory):
    factory.bring(*factory.of(1, 1, 2, 3))
    factory.dispatcher._obey(Order(run_id="1-2", token=1, what="cancel", by=None))
    factory.bring(*factory.of(1, 4))
    assert factory.workers.names[-1] == "1-4"


# real processes, real stores

MODULE = """
import os, time

def wait(until):
    while not os.path.exists(until):
        time.sleep(0.01)

def note():
    pass
"""


class Work:
    """A node with four workers, and jobs that call functions of MODULE."""

    def __init__(self, store: Any, functions: Functions) -> None:
        self.store, self.functions = store, functions

    async def job(self, function: str, seconds: float) -> int:
        target = FunctionTarget(function=f"shared_work:{function}")
        new = spec(target, schedule=Schedule(in_=Duration(round(seconds * 1000))))
        (view,) = await self.store.create_jobs([NewJob(tenant=1, spec=new)])
        await self.store.notify("due")
        return view.id  # type: ignore[no-any-return]

    async def call(self, job_id: int, over: Path, times: int = 1) -> None:
        for _ in range(times):
            await self.store.run_job(1, job_id, params={"until": str(over)})
        await self.store.notify("due")

    async def brief_job(self, over: Path) -> int:
        """One whose calls have ended at once, 40 times."""
        over.touch()
        job_id = await self.job("wait", 3600)
        await self.call(job_id, over, 40)

        async def known() -> bool:
            return len(await self.runs(job_id, "DONE")) == 40

        await until(known, "it is known to be brief")
        return job_id

    async def runs(self, job_id: int, status: RunStatus) -> list[Any]:
        return list((await self.store.list_runs(1, RunFilter(job_id=job_id, status=status, limit=100))).items)

    async def waiting(self, job_id: int) -> list[Any]:
        return [run for run in await self.runs(job_id, "PENDING") if run.waiting == "slot"]

    async def starts_on_time(self) -> None:
        """Another job does."""
        quick = await self.job("note", 0.3)
        (done,) = await until(lambda: self.runs(quick, "DONE"))
        assert done.lateness_ms is not None
        assert done.lateness_ms < 1000


@asynccontextmanager
async def working(url: str, directory: Path) -> AsyncIterator[Work]:
    (directory / "shared_work.py").write_text(MODULE)
    store = await open_store(url)
    functions = Functions(["shared_work"], processes=4, import_paths=[str(directory)])
    targets = Targets([functions])
    try:
        clock, rng = SystemClock(), random.Random(1)
        async with targets, Node(store=store, targets=targets, clock=clock, rng=rng, settings=EngineSettings()) as node:
            await until(lambda: node.ready)
            yield Work(store, functions)
    finally:
        await store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/s.db" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


async def test_slow_functions_of_one_job_make_no_other_late(url: str, tmp_path: Path):
    over = tmp_path / "over"
    async with working(url, tmp_path) as work:
        try:
            slow = await work.job("wait", 3600)
            await work.call(slow, over, 20)

            async def all_others_wait() -> bool:
                return len(await work.waiting(slow)) == 17

            await until(all_others_wait, "all but three wait for a slot")
            (one, *_) = await work.waiting(slow)
            assert (one.waiting_for, one.attempts, one.waiting_since is None) == (f"job:{slow}", [], False)
            assert len(await work.runs(slow, "EXECUTING")) == 3
            await work.starts_on_time()
            assert len(await work.runs(slow, "EXECUTING")) == 3
        finally:
            over.touch()

        async def through() -> bool:
            return len(await work.runs(slow, "DONE")) == 20

        await until(through, "each of them had its turn")
        assert all(len(run.attempts) <= 1 for run in await work.runs(slow, "DONE"))


async def test_a_brief_function_that_hangs_takes_no_more_than_its_share(url: str, tmp_path: Path):
    over = tmp_path / "over"
    async with working(url, tmp_path) as work:
        try:
            brief = await work.brief_job(over)
            over.unlink()
            await work.call(brief, over)
            await until(lambda: not work.functions.is_brief(FunctionTarget(function="shared_work:wait")), "it hangs")
            await work.call(brief, over, 4)

            async def two_wait() -> bool:
                return len(await work.waiting(brief)) == 2

            await until(two_wait, "all but three wait for a slot")
            assert len(await work.runs(brief, "EXECUTING")) == 3
            await work.starts_on_time()
        finally:
            over.touch()

        async def through() -> bool:
            return len(await work.runs(brief, "DONE")) == 45

        await until(through, "each of them had its turn")


async def test_calls_of_a_brief_function_that_all_hang_at_once_leave_a_worker(url: str, tmp_path: Path):
    """They are known to be brief when they begin, and none of them hangs yet: the pool keeps them from the last one."""
    over = tmp_path / "over"
    async with working(url, tmp_path) as work:
        try:
            brief = await work.brief_job(over)
            over.unlink()
            await work.call(brief, over, 12)
            await work.starts_on_time()

            async def nine_wait() -> bool:
                return len(await work.waiting(brief)) == 9

            await until(nine_wait, "all but three wait for a slot")
            assert len(await work.runs(brief, "EXECUTING")) == 3
            await work.starts_on_time()
        finally:
            over.touch()

        async def through() -> bool:
            return len(await work.runs(brief, "DONE")) == 52

        await until(through, "each of them had its turn")
        assert all(len(run.attempts) <= 1 for run in await work.runs(brief, "DONE"))
