"""Work that outlives its node: whatever happens to nodes, it goes on, is done once, and its result is recorded once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.nodes import Cluster, alive, post
from tests.cluster.outside import Outside, runs_of
from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def outside(tmp_path: Path, cluster: Cluster) -> Iterator[Outside]:
    """Its end comes before that of the nodes: they are still there to be wrong about it."""
    found = Outside(tmp_path)
    yield found
    cluster.kill()
    found.end()


class Stage:
    """An API that reaches no place, and executors that come and go."""

    def __init__(self, cluster: Cluster, outside: Outside, store: str) -> None:
        self._cluster, self._outside, self._store = cluster, outside, store
        self.api = cluster.start("--store", store, env=outside.env())

    async def executor(self, *places: str, **settings: str) -> NodeProcess:
        before = set(await alive(self.api))
        env = self._outside.env(*(places or ("here",)), **settings)
        node = self._cluster.start("--store", self._store, "--roles", "executor", env=env)

        async def there() -> bool:
            return bool(set(await alive(self.api)) - before)

        await until(there, "the executor is there")
        return node

    async def run(self, run_id: str) -> dict[str, Any]:
        status, run = await ask(self.api, "GET", f"/v1/runs/{run_id}")
        assert status == 200, run
        return dict(run)

    async def ended(self, run_id: str, status: str = "DONE") -> dict[str, Any]:
        run: dict[str, Any] = {}

        async def over() -> bool:
            run.update(await self.run(run_id))
            return run["status"] not in ("PENDING", "EXECUTING")

        await until(over, f"{run_id} has ended")
        assert run["status"] == status, run
        return run

    async def held_by_attempt(self, run_id: str, attempt: int) -> None:
        async def adopted() -> bool:
            run = await self.run(run_id)
            return bool(run["attempt"] >= attempt and run["node"])

        await until(adopted, f"attempt {attempt} of {run_id} has it")

    async def unheld(self, run_id: str) -> None:
        async def nobody() -> bool:
            run = await self.run(run_id)
            return run["status"] == "EXECUTING" and run["node"] is None

        await until(nobody, f"nobody has {run_id}")


@pytest.fixture
async def stage(postgres_url: str, cluster: Cluster, outside: Outside) -> Stage:
    stage = Stage(cluster, outside, postgres_url)
    await stage.api.ready()
    return stage


async def log_of(node: NodeProcess, run_id: str) -> str:
    status, text = await ask(node, "GET", f"/v1/runs/{run_id}/logs")
    assert status == 200, text
    return str(text)


async def test_an_orderly_stop_hands_it_over_at_once(stage, outside):
    first = await stage.executor()
    run_id, work = await outside.create(stage.api)
    pid = work.pid
    assert await first.stop(within=20) == 0, "it waited for its grace of a minute"
    await stage.unheld(run_id)
    assert work.pid == pid
    await stage.executor()
    await stage.held_by_attempt(run_id, 2)
    outside.go()
    run = await stage.ended(run_id)
    assert (run["tries"], run["losses"]) == (1, 0)
    assert [attempt["attempt"] for attempt in run["attempts"]] == [2], "letting go of it is no attempt"
    assert outside.effects == ["began", "ended"]
    assert await log_of(stage.api, run_id) == "hello\ngoodbye\n"


async def test_a_killed_node_does_not_end_it(stage, outside):
    first = await stage.executor()
    run_id, work = await outside.create(stage.api)
    pid = work.pid
    first.kill()
    await stage.executor()
    await stage.held_by_attempt(run_id, 2)
    assert work.pid == pid
    outside.go()
    run = await stage.ended(run_id)
    assert (run["tries"], run["losses"]) == (1, 0)
    assert run["duration_ms"] > 2000, "it counts from when the work began, not from when it was adopted"
    assert outside.effects == ["began", "ended"]


async def test_what_ended_while_nobody_looked_is_the_result(stage, outside):
    first = await stage.executor()
    run_id, work = await outside.create(stage.api)
    first.kill()
    outside.go()
    await until(lambda: work.code == 0, "it has ended")
    await stage.executor()
    await stage.ended(run_id)
    assert outside.effects == ["began", "ended"]
    assert await log_of(stage.api, run_id) == "hello\ngoodbye\n"


async def test_a_frozen_node_does_not_kill_what_another_has_adopted(stage, outside):
    frozen = await stage.executor()
    run_id, work = await outside.create(stage.api, timeout="6s")
    pid = work.pid
    frozen.signal(signal.SIGSTOP)
    await stage.executor()
    await stage.held_by_attempt(run_id, 2)
    before = set(await alive(stage.api))  # of those that are there while it is frozen
    frozen.signal(signal.SIGCONT)

    async def back() -> bool:
        return bool(set(await alive(stage.api)) - before)

    await until(back, "the one that was frozen is there again")
    assert work.pid == pid
    outside.go()
    await stage.ended(run_id)
    assert outside.effects == ["began", "ended"]
    assert await frozen.stop() == 0


async def test_only_who_reaches_the_place_adopts_it_and_its_lane_stays_taken(stage, outside):
    first = await stage.executor("here", "there")
    made = await post(stage.api, "/v1/jobs", outside.job(schedule={"every": "1s"}, overlap="skip"))
    work = await outside.begun()
    (run_id,) = [run["id"] for run in await runs_of(stage.api, made["id"]) if run["status"] == "EXECUTING"]
    first.kill()
    await stage.executor("there")
    await stage.unheld(run_id)
    elsewhere = await post(stage.api, "/v1/jobs", outside.job("there", argv=["true"]))
    (other,) = await until(lambda: runs_of(stage.api, elsewhere["id"]), "it is known")
    await stage.ended(other["id"])
    assert ((await stage.run(run_id))["node"], outside.effects) == (None, ["began"]), "it looked, and left it alone"
    await stage.executor("here")
    await stage.held_by_attempt(run_id, 2)

    async def skipped() -> list[Any]:
        return [run["reason"] for run in await runs_of(stage.api, made["id"]) if run["status"] == "SKIPPED"]

    assert set(await until(skipped, "later slots find the lane taken")) <= {"overlap", "coalesced"}
    assert (outside.effects, work.pid is None) == (["began"], False)
    await post(stage.api, f"/v1/jobs/{made['id']}/pause", expect=200)
    outside.go()
    await stage.ended(run_id)
    assert outside.effects == ["began", "ended"]


async def test_three_deaths_are_no_poison(stage, outside):
    node = await stage.executor()
    run_id, work = await outside.create(stage.api)
    pid = work.pid
    for attempt in (2, 3, 4):
        node.kill()
        node = await stage.executor()
        await stage.held_by_attempt(run_id, attempt)
    assert work.pid == pid
    outside.go()
    run = await stage.ended(run_id)
    assert (run["attempt"], run["tries"], run["losses"]) == (4, 1, 0)
    assert outside.effects == ["began", "ended"]


async def test_a_cancel_kills_it(stage, outside):
    await stage.executor()
    run_id, work = await outside.create(stage.api)
    assert (await ask(stage.api, "POST", f"/v1/runs/{run_id}/cancel"))[0] in (200, 202)
    await stage.ended(run_id, "CANCELLED")
    assert (work.pid, outside.effects) == (None, ["began"])


async def test_a_cancel_while_nobody_has_it_is_carried_out_by_who_adopts_it(stage, outside):
    first = await stage.executor()
    run_id, work = await outside.create(stage.api)
    assert await first.stop() == 0
    await stage.unheld(run_id)
    assert (await ask(stage.api, "POST", f"/v1/runs/{run_id}/cancel"))[0] in (200, 202)
    assert work.pid is not None
    await stage.executor()
    await stage.ended(run_id, "CANCELLED")
    assert (work.pid, outside.effects) == (None, ["began"])


async def test_a_time_out_counts_from_when_the_work_began(stage, outside):
    first = await stage.executor()
    run_id, work = await outside.create(stage.api, timeout="5s", retry={"attempts": 1})
    assert await first.stop() == 0
    await stage.unheld(run_id)
    await stage.executor()
    run = await stage.ended(run_id, "FAILED")
    assert (work.pid, outside.effects) == (None, ["began"])
    assert run["outcome"]["kind"] == "timeout"
    assert 4900 <= run["duration_ms"] < 15_000


async def test_a_node_that_dies_before_it_creates_it_leaves_that_to_the_next(stage, outside):
    outside.dies.touch()
    first = await stage.executor()
    made = await post(stage.api, "/v1/jobs", outside.job())
    await first.exited()
    assert outside.works() == []
    await stage.executor()
    await outside.begun()
    outside.go()
    (run,) = await runs_of(stage.api, made["id"])
    await stage.ended(run["id"])
    assert outside.effects == ["began", "ended"]


async def test_what_a_dead_node_left_of_a_try_that_is_over_is_removed_and_what_lives_is_not(stage, outside):
    """It died between the commit of the result and the removal."""
    first = await stage.executor()
    over, ended = await outside.create(stage.api)
    outside.go()
    await stage.ended(over)
    mark = ended.directory / "recorded"
    await until(mark.exists, "its kind knows that it is recorded")
    made = await post(stage.api, "/v1/jobs", outside.job(argv=["sleep", "600"]))
    living = await outside.begun()
    pid = living.pid
    first.kill()
    mark.unlink()
    await stage.executor()
    await until(lambda: not ended.directory.exists(), "what is over is removed")
    (run,) = await runs_of(stage.api, made["id"])
    await stage.held_by_attempt(run["id"], 2)
    assert living.pid == pid


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_one_node_on_sqlite_finds_it_again(cluster, outside, end):
    node = cluster.start("--store", "sqlite:///jobs.db", env=outside.env("here"))
    await node.ready()
    run_id, work = await outside.create(node)
    pid = work.pid
    if end == "stop":
        assert await node.stop(within=20) == 0
    else:
        node.kill()
    again = cluster.start("--store", "sqlite:///jobs.db", env=outside.env("here"))
    await again.ready()

    async def over() -> bool:
        _, run = await ask(again, "GET", f"/v1/runs/{run_id}")
        if run["attempt"] == 2:
            assert work.pid == pid or outside.effects == ["began", "ended"]
            outside.go()
        return bool(run["status"] == "DONE")

    await until(over, "it is done")
    assert outside.effects == ["began", "ended"]
    assert await again.stop() == 0
