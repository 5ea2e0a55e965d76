"""How long after an event its message is with the channel: at most five seconds, whichever condition it is, and
whenever it happens between two looks of the node that looks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest

from onthedot.channels.message import AlertMessage
from onthedot.clock import FakeClock
from onthedot.model.alerts import Alerting, AlertRule, JobAlerts
from onthedot.model.duration import Duration
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.policy import Retry
from onthedot.model.run import Outcome
from onthedot.model.schedule import Schedule
from onthedot.model.targets import Target
from onthedot.model.targets.checkin import CheckinTarget
from onthedot.store import CheckIn
from onthedot.targets import Call, Targets
from onthedot.targets.checkin.kind import Checkins
from onthedot.targets.contract import Ended
from tests.engine.cluster import Cluster, Member
from tests.engine.making import FAILED, FUNCTION, OK, FakeSender, spec

MOST = 5_000
"""Milliseconds from the event to the channel."""
PHASES = range(0, 2000, 400)
"""A look is 1.6 to 2 seconds after the one before."""
FIRST, EVERY = 10_000, 30_000
LEASE = 5_000
LIMIT = 2_000


class Channel:
    kind, place = "heard", "here"

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.heard: list[tuple[str, str, str, int]] = []

    async def send(self, message: AlertMessage) -> None:
        for incident in message.incidents:
            self.heard.append((message.event, message.condition or "", incident.title, self._clock.now_ms()))


class Receiver(FakeSender):
    """What the job's params say: its first runs fail, or one does not end before it is let go."""

    def __init__(self, clock: FakeClock, counts: Counter[int], let_go: asyncio.Event) -> None:
        super().__init__(now=clock.now_ms, processes=50)
        self._counts, self._let_go = counts, let_go
        self.targets = Targets([*self.targets._kinds.values(), Checkins()])

    async def send(self, call: Call) -> Outcome | Ended:
        number = self._counts[call.job_id]
        self._counts[call.job_id] += 1
        await super().send(call)
        if number == call.params.get("hangs"):
            await self._let_go.wait()
        return FAILED if number < call.params.get("fails", 0) else OK


class Scene:
    def __init__(self, cluster: Cluster, clock: FakeClock) -> None:
        self.cluster, self.clock, self.channel = cluster, clock, Channel(clock)
        self.start = clock.now_ms()
        self.let_go = asyncio.Event()
        self._counts = Counter[int]()

    async def node(self, name: str, **more: Any) -> Member:
        receiver = Receiver(self.clock, self._counts, self.let_go)
        return await self.cluster.node(sender=receiver, channels={"ops": self.channel}, name=name, **more)

    async def jobs(
        self,
        alerts: dict[str, Any],
        params: dict[str, Any],
        *,
        target: Target = FUNCTION,
        requires: Sequence[str] = (),
        **policy: Any,
    ) -> dict[str, int]:
        """One for each phase."""
        made, told = {}, JobAlerts(channels=["ops"], **alerts)
        for phase in PHASES:
            due = Schedule(every=Duration(EVERY), start=format_instant(self.start + FIRST + phase))
            plain = spec(target, key=f"j{phase}", schedule=due, retry=Retry(attempts=1), **policy)
            full = msgspec.structs.replace(plain, params=params, alerts=told, requires=list(requires))
            view = await self.cluster.create(full)
            made[f"j{phase}"] = view.id
        return made

    def told(self, event: str, condition: str, happened: dict[str, int]) -> None:
        """Each of them was told once, and how long after it had happened."""
        heard = {title: at for *said, title, at in self.channel.heard if said == [event, condition]}
        assert heard.keys() == happened.keys(), self.channel.heard
        assert len(self.channel.heard) == len({each[:3] for each in self.channel.heard}), "something was told twice"
        delays = [heard[title] - at for title, at in happened.items()]
        print(f"{condition} {event}: after {min(delays)} to {max(delays)} ms")
        assert min(delays) >= 0
        assert max(delays) <= MOST

    async def ended(self, jobs: dict[str, int], status: str, number: int = 0) -> dict[str, int]:
        """When that run of each job ended, of those that ended so."""
        found = {}
        for key, job in jobs.items():
            run = [run for run in await self.cluster.runs(job) if run.status == status][number]
            assert run.finished_at is not None
            found[key] = parse_rfc3339(run.finished_at) or 0
        return found

    def due(self, number: int, plus: int = 0) -> dict[str, int]:
        return {f"j{phase}": self.start + FIRST + phase + number * EVERY + plus for phase in PHASES}


@pytest.fixture
async def scene(fake_clock: FakeClock) -> AsyncIterator[Scene]:
    cluster = await Cluster.open(fake_clock)
    yield Scene(cluster, fake_clock)
    await cluster.close()


@pytest.mark.parametrize(("condition", "value"), [("failed", True), ("dead", True), ("in_a_row", 2)])
async def test_runs_that_fail_and_recover(scene: Scene, condition: str, value: Any):
    fails = 1 if value is True else value
    for name in ("a", "b"):
        await scene.node(name)
    jobs = await scene.jobs({condition: value}, {"fails": fails})
    await scene.clock.advance((FIRST + fails * EVERY) / 1000 - 1)
    scene.told("opened", condition, await scene.ended(jobs, "FAILED", fails - 1))
    await scene.clock.advance(EVERY / 1000)
    over = await scene.ended(jobs, "DONE")
    if condition == "dead":  # over when somebody has done away with them
        await scene.cluster.store.driver.transact_slow(lambda tx: tx.sql("DELETE FROM dead_letters"))
        over = dict.fromkeys(jobs, scene.clock.now_ms())
        await scene.clock.advance(MOST / 1000)
    scene.told("recovered", condition, over)


async def test_runs_that_do_not_start(scene: Scene):
    """Each waits for the one before it, which does not end."""
    for name in ("a", "b"):
        await scene.node(name)
    await scene.jobs({"late": Duration(LIMIT)}, {"hangs": 0}, overlap="queue")
    await scene.clock.advance((FIRST + EVERY + LIMIT + MOST) / 1000 + 2)
    scene.told("opened", "late", scene.due(1, LIMIT))
    scene.let_go.set()
    await scene.clock.advance(EVERY / 1000)
    scene.told("recovered", "late", scene.due(2))


async def test_runs_that_start_late(scene: Scene):
    """Nobody was there when they were due. A run that has ended tells by itself."""
    jobs = await scene.jobs({"late": Duration(LIMIT)}, {})
    await scene.clock.advance((FIRST + LIMIT + 4_000) / 1000)
    began = scene.clock.now_ms()
    await scene.node("a")
    await scene.clock.advance(MOST / 1000)
    assert set((await scene.ended(jobs, "DONE")).values()) == {began}
    scene.told("opened", "late", dict.fromkeys(jobs, began))


@pytest.mark.parametrize("own", [False, True])
async def test_runs_that_do_not_end(scene: Scene, own: bool):
    """`own`: against what their job's runs take usually."""
    for name in ("a", "b"):
        await scene.node(name)
    usual, limit = (20, 5_000) if own else (0, LIMIT)
    await scene.jobs({"too_long_p95": True} if own else {"too_long": Duration(LIMIT)}, {"hangs": usual})
    await scene.clock.advance((FIRST + usual * EVERY + limit + MOST) / 1000 + 2)
    scene.told("opened", "too_long", scene.due(usual, limit))
    scene.let_go.set()
    await scene.clock.advance(EVERY / 1000)
    scene.told("recovered", "too_long", scene.due(usual + 1))


async def test_firings_that_are_given_up(scene: Scene):
    """There was nobody for some slots. They are missed at the moment when a node gives them up."""
    jobs = await scene.jobs({"missed": True}, {})
    await scene.clock.advance((FIRST + 3 * EVERY - 8_000) / 1000)
    for name in ("a", "b"):
        await scene.node(name)
    came = dict.fromkeys(jobs, scene.clock.now_ms())
    await scene.clock.advance(MOST / 1000)
    scene.told("opened", "missed", came)
    await scene.clock.advance(MOST / 1000 + 5)
    scene.told("recovered", "missed", scene.due(3))


async def test_check_ins_that_do_not_come(scene: Scene):
    for name in ("a", "b"):
        await scene.node(name)
    jobs = await scene.jobs({"missed": True}, {}, target=CheckinTarget(grace=Duration(LIMIT)))
    await scene.clock.advance((FIRST + LIMIT + MOST) / 1000 + 2)
    scene.told("opened", "missed", scene.due(0, LIMIT))
    await scene.clock.advance((scene.start + FIRST + EVERY + PHASES[-1] + 100 - scene.clock.now_ms()) / 1000)
    came = dict.fromkeys(jobs, scene.clock.now_ms())
    for job in jobs.values():
        await scene.cluster.store.check_in(job, CheckIn(signal="success"))
    await scene.clock.advance(MOST / 1000)
    scene.told("recovered", "missed", came)


async def test_runs_that_no_node_can_take(scene: Scene):
    for name in ("a", "b"):
        await scene.node(name)
    jobs = await scene.jobs({"unroutable": True}, {}, requires=["gpu"])
    await scene.clock.advance((FIRST + MOST) / 1000 + 2)
    scene.told("opened", "unroutable", scene.due(0))
    came = scene.clock.now_ms()
    await scene.node("c", labels=["gpu"])
    await scene.clock.advance(MOST / 1000)
    scene.told("recovered", "unroutable", dict.fromkeys(jobs, came))


async def test_nodes_that_are_lost_and_come_back(scene: Scene):
    """Each of them had looked for all the others: that goes over to another one."""
    rule = AlertRule(name="all", on=frozenset({"node_lost", "recovered"}), channels=("ops",))
    scene.cluster.store.driver.queries.alerting = Alerting(rules=(rule,), channels=frozenset({"ops"}))
    lost, came, killed = dict[str, int](), dict[str, int](), dict[str, int]()
    member = await scene.node("n0")
    for number, phase in enumerate(PHASES):
        following = await scene.node(f"n{number + 1}")
        await scene.clock.advance(10 + phase / 1000)
        member.kill()
        killed[f"node n{number}"] = scene.clock.now_ms()
        await scene.clock.advance(8)
        back = await scene.node(f"n{number}")
        came[f"node n{number}"] = scene.clock.now_ms()
        await scene.clock.advance(MOST / 1000)
        await scene.cluster.finish(back.node.stop())
        member = following
    for row in await scene.cluster.store.driver.read(lambda tx: tx.sql("SELECT name, lost_at FROM nodes")):
        if row["lost_at"] is not None:
            lost[f"node {row['name']}"] = row["lost_at"]
    assert max(lost[name] - killed[name] for name in killed) <= LEASE + 1_000
    scene.told("opened", "node_lost", lost)
    scene.told("recovered", "node_lost", came)


async def test_runs_that_do_not_start_when_the_node_that_looks_dies(scene: Scene):
    """Then another one looks: from the moment on at which the other is lost."""
    for name in ("a", "b"):
        await scene.node(name)
    await scene.jobs({"late": Duration(LIMIT)}, {"hangs": 0}, overlap="queue")
    await scene.clock.advance((FIRST + EVERY + LIMIT) / 1000 - 0.5)
    (leader,) = [node for node in await scene.cluster.store.list_nodes() if node.leader]
    (member,) = [each for each in scene.cluster.members if each.id == leader.id]
    member.kill()
    killed = scene.clock.now_ms()
    await scene.clock.advance(15)
    scene.told("opened", "late", scene.due(1, LIMIT))
    assert max(at for *_, at in scene.channel.heard) <= killed + LEASE + 3_000
