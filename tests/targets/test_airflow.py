"""Workflows on a real Airflow, with its scheduler and its tasks: `AIRFLOW=1 pytest tests/targets/test_airflow.py`.

What it can't be made to do (lose an answer, be another installation's) is tested against a strict fake of it:
test_workflows.py.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from onthedot.model.run import Outcome
from onthedot.model.targets import WorkflowTarget
from onthedot.settings import AwsSetting, WorkflowSetting
from onthedot.targets import Call
from onthedot.targets.contract import Cause, Ended, Handle
from onthedot.targets.workflow.kind import Workflows
from tests.services.airflow import PASSWORD, USER, RealAirflow, running_airflow
from tests.services.waiting import until

pytestmark = [
    pytest.mark.skipif("AIRFLOW" not in os.environ, reason="installs and starts Airflow: AIRFLOW=1 asks for it"),
    pytest.mark.timeout(900),
    pytest.mark.keeps_connections,  # those of the test itself
]
PATIENCE = 180.0
_numbers = itertools.count(time.time_ns())


@pytest.fixture(scope="module")
def airflow() -> Iterator[RealAirflow]:
    with running_airflow() as real:
        yield real


@asynccontextmanager
async def node(airflow: RealAirflow, **setting: Any) -> AsyncIterator[Workflows]:
    login: dict[str, Any] = {"user": USER, "password": PASSWORD} | setting
    kind = Workflows({"it": WorkflowSetting(url=airflow.url, type="airflow", **login)}, AwsSetting(), first_look=0.5)
    kind.belong_to("0123456789abcdef")
    async with kind:
        yield kind


class Started:
    def __init__(self, kind: Workflows, dag: str, run_id: str | None = None, **fields: Any) -> None:
        self.begun: list[float] = []
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self.call = Call(
            run_id=run_id or f"7-{next(_numbers)}",
            job_id=7,
            slot=1_763_234_567_890,
            attempt=1,
            target=WorkflowTarget(engine="it", workflow=dag),
            params={"day": "monday"},
            begun=self.begun.append,
            **fields,
        )
        self.name = f"{self.call.run_id}-{self.call.try_number}"
        self.handle: Handle = kind.start(self.call, time.monotonic(), self.ended.set_result)

    async def outcome(self) -> Outcome:
        outcome = (await asyncio.wait_for(asyncio.shield(self.ended), PATIENCE)).outcome
        assert outcome is not None
        return outcome

    async def stopped(self, cause: Cause) -> Ended:
        self.handle.stop(cause)
        return await asyncio.wait_for(asyncio.shield(self.ended), PATIENCE)

    async def state(self, airflow: RealAirflow) -> object:
        found = (await asyncio.to_thread(airflow.runs, self.call.target.workflow)).get(self.name)  # type: ignore[attr-defined]
        return None if found is None else found["state"]


async def test_it_is_started_and_followed_to_its_end(airflow: RealAirflow):
    async with node(airflow) as kind:
        started = Started(kind, "quick")
        outcome = await started.outcome()
    assert (outcome.kind, outcome.detail["status"]) == ("ok", "success"), outcome
    assert started.name in outcome.detail["link"]
    assert airflow.runs("quick")[started.name]["conf"] == {"day": "monday"}


async def test_one_that_fails_says_which_task(airflow: RealAirflow):
    async with node(airflow) as kind:
        outcome = await Started(kind, "broken").outcome()
    assert (outcome.kind, outcome.retryable) == ("error", True), outcome
    assert outcome.error == "the workflow failed: tasks failed: load"


@pytest.mark.parametrize("cause", ["cancelled", "timeout"])
async def test_a_cancel_and_a_time_out_end_it(airflow: RealAirflow, cause: Cause):
    async with node(airflow) as kind:
        started = Started(kind, "slow")
        await until(lambda: bool(started.begun), "it was started", PATIENCE)
        await until(lambda: _is_running(started, airflow), "it runs", PATIENCE)
        await started.stopped(cause)
    assert await started.state(airflow) == "failed"


async def test_the_next_node_adopts_it(airflow: RealAirflow):
    async with node(airflow) as kind:
        first = Started(kind, "slow")
        await until(lambda: bool(first.begun), "it was started", PATIENCE)
        assert (await first.stopped("gone")).outcome is None
    assert await first.state(airflow) in ("queued", "running")
    async with node(airflow) as kind:
        second = Started(kind, "slow", first.call.run_id, adopted=True)
        await until(lambda: bool(second.begun), "it was found", PATIENCE)
        await second.stopped("cancelled")
    assert await second.state(airflow) == "failed"
    assert [name for name in airflow.runs("slow") if name.startswith(first.call.run_id)] == [first.name]


async def test_what_is_wrong_is_said(airflow: RealAirflow):
    async with node(airflow) as kind:
        outcome = await Started(kind, "unheard-of").outcome()
        (found,) = await kind.diagnose()
    assert (outcome.kind, outcome.retryable) == ("error", False), outcome
    assert "login accepted" in found.found
    async with node(airflow, password="wrong") as kind:
        outcome = await Started(kind, "quick").outcome()
        (found,) = await kind.diagnose()
    assert (outcome.kind, outcome.retryable) == ("error", True), outcome
    assert "HTTP 401" in str(outcome.error)
    assert found.advice is not None


async def _is_running(started: Started, airflow: RealAirflow) -> bool:
    return await started.state(airflow) == "running"
