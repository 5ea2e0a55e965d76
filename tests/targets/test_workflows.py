"""Workflows: strict fakes of three engines, which can be restarted; what all of them must do is one test each."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import boto3
import msgspec
import pytest

from onthedot.errors import Invalid, NotAvailable
from onthedot.model.run import Outcome
from onthedot.model.targets import WorkflowTarget
from onthedot.settings import AwsSetting, WorkflowSetting
from onthedot.targets import Call
from onthedot.targets.contract import Cause, Ended, Handle, Stop
from onthedot.targets.workflow import airflow, argo, following, run, step_functions
from onthedot.targets.workflow.kind import Workflows
from onthedot.telemetry import Event, subscribe
from tests.services.fake_aws import KEY, REGION, SECRET, FakeAws
from tests.services.fake_step_functions import MACHINE, FakeStepFunctions
from tests.services.fake_workflow_servers import PASSWORD, TOKEN, USER, FakeAirflow, FakeArgo
from tests.services.simulated import running_sqs
from tests.services.waiting import until

OURS = "0123456789abcdef"
_numbers = itertools.count(1)


class Engine:
    """One of the fakes, as a test needs it, whichever it is."""

    def __init__(self, name: str, workflow: str, server: Any, settings: dict[str, WorkflowSetting], aws: AwsSetting):
        self.name, self.workflow, self.server, self.settings, self.aws = name, workflow, server, settings, aws

    @asynccontextmanager
    async def node(self, installation: str = OURS) -> AsyncIterator[Workflows]:
        kind = Workflows(self.settings, self.aws, first_look=0.02)
        kind.belong_to(installation)
        async with kind:
            yield kind

    @property
    def made(self) -> dict[str, Any]:
        match self.server:
            case FakeAirflow():
                return self.server.runs
            case FakeArgo():
                return self.server.workflows
            case _:
                return self.fake.executions

    @property
    def fake(self) -> FakeStepFunctions:
        found = self.server.services["AWSStepFunctions"]
        assert isinstance(found, FakeStepFunctions)
        return found

    def end(self, name: str) -> None:
        """Well, with a result where there can be one."""
        match self.server:
            case FakeAirflow():
                self.server.end(name)
            case FakeArgo():
                self.server.end(name, outputs={"parameters": [{"name": "rows", "value": "3"}]})
            case _:
                self.fake.end(name, output='{"rows": "3"}')

    def fail(self, name: str) -> None:
        match self.server:
            case FakeAirflow():
                self.server.failed_tasks = ["load"]
                self.server.end(name, "failed")
            case FakeArgo():
                self.server.end(name, "Failed", message="child 'load' failed")
            case _:
                self.fake.end(name, "FAILED", error="States.TaskFailed", cause="load failed")

    def is_stopped(self, name: str) -> bool:
        found = self.made[name]
        return found.get("status", found.get("state")) in ("ABORTED", "failed") or (
            isinstance(found.get("status"), dict) and found["status"]["phase"] == "Failed"
        )

    @property
    def asked(self) -> list[str]:
        return self.fake.asked if self.name == "stepfunctions" else self.server.requests

    def refuse(self, status: int | None, part: str = "") -> None:
        """What is asked about `part`, from now on; None: nothing any more."""
        server = self.fake if self.name == "stepfunctions" else self.server
        server.refuses = None if status is None else (status, part)

    async def asks_on(self, times: int = 3) -> None:
        before = len(self.asked)
        await until(lambda: len(self.asked) >= before + times, "it asks again and again")

    def input_of(self, name: str) -> Any:
        found = self.made[name]
        if "conf" in found:
            return found["conf"]
        if "spec" in found:
            return {each["name"]: each["value"] for each in found["spec"]["arguments"]["parameters"]}
        return json.loads(found["input"])


@pytest.fixture(autouse=True)
def login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(run, "FIRST_PAUSE", 0.02)


@pytest.fixture
def told() -> Iterator[list[Event]]:
    found: list[Event] = []
    stop = subscribe(found.append)
    yield found
    stop()


@pytest.fixture(params=["stepfunctions", "airflow", "airflow1", "argo"])
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    async with started(request.param) as engine:
        yield engine


@asynccontextmanager
async def started(which: str, *, said: bool = True) -> AsyncIterator[Engine]:
    """`said`: whether the settings say what it is."""
    if which == "stepfunctions":
        async with FakeAws() as aws:
            aws.services["AWSStepFunctions"] = FakeStepFunctions()
            yield Engine(which, MACHINE, aws, {}, AwsSetting(region=REGION, endpoint=aws.url))
        return
    server: Any
    async with FakeArgo() if which == "argo" else FakeAirflow(1 if which == "airflow1" else 2) as server:
        if which == "argo":
            setting = WorkflowSetting(url=server.url, type="argo", token=TOKEN, namespace="jobs")
        else:
            setting = WorkflowSetting(url=server.url, type="airflow", user=USER, password=PASSWORD)
        if not said:
            setting = msgspec.structs.replace(setting, type=None)
        yield Engine("it", "report" if which == "argo" else "nightly", server, {"it": setting}, AwsSetting())


def no_time_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STOP_WITHIN", "STOP_AGAIN_FOR"):
        monkeypatch.setattr(run, name, 0.1)


class Watched:
    """One call and all that was told of it."""

    def __init__(self, kind: Workflows, engine: Engine, *, run_id: str | None = None, **fields: Any) -> None:
        self.begun: list[float] = []
        self.said: list[str] = []
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        target = {name: fields.pop(name) for name in WorkflowTarget.__struct_fields__ if name in fields}
        self.call = Call(
            run_id=run_id or f"7-{next(_numbers)}",
            job_id=7,
            slot=1_763_234_567_890,
            attempt=1,
            target=WorkflowTarget(**({"engine": engine.name, "workflow": engine.workflow} | target)),
            params=fields.pop("params", {"day": "monday"}),
            begun=self.begun.append,
            log=self.said.append,
            **fields,
        )
        self.name = f"{self.call.run_id}-{self.call.try_number}"
        self.handle: Handle = kind.start(self.call, time.monotonic(), self.ended.set_result)

    async def outcome(self) -> Outcome:
        outcome = (await asyncio.wait_for(asyncio.shield(self.ended), 30)).outcome
        assert outcome is not None
        return outcome

    async def stopped(self, cause: Cause) -> Ended:
        assert self.handle.stop(cause) is Stop.STOPPING
        return await asyncio.wait_for(asyncio.shield(self.ended), 30)

    async def runs(self, engine: Engine) -> None:
        await until(lambda: (self.name in engine.made and bool(self.begun)) or self.ended.done(), "it was started")
        assert not self.ended.done(), self.ended.result()


async def test_it_is_started_followed_and_its_output_is_the_result(engine: Engine):
    async with engine.node() as kind:
        watched = Watched(kind, engine, input={"id": {"$": "run_id"}, "day": {"$": "params.day"}})
        await watched.runs(engine)
        assert engine.input_of(watched.name) == {"id": watched.call.run_id, "day": "monday"}
        engine.end(watched.name)
        outcome = await watched.outcome()
    assert outcome.kind == "ok", outcome
    assert outcome.detail["status"] in ("SUCCEEDED", "success", "Succeeded")
    assert watched.name in outcome.detail["link"]
    started, ended = watched.said
    assert started.startswith(f"started {watched.name} on ")
    assert ended == f"ended: {outcome.detail['status']}; see {outcome.detail['link']}\n"
    if not isinstance(engine.server, FakeAirflow):
        assert outcome.detail["result"] == {"rows": "3"}


async def test_one_that_fails_says_why(engine: Engine):
    async with engine.node() as kind:
        watched = Watched(kind, engine)
        await watched.runs(engine)
        assert engine.input_of(watched.name) == {"day": "monday"}
        engine.fail(watched.name)
        outcome = await watched.outcome()
    assert (outcome.kind, outcome.retryable) == ("error", True)
    assert str(outcome.error).startswith("the workflow failed: ")
    assert "load" in str(outcome.error)


@pytest.mark.parametrize("cause", ["interrupted", "gone"])
async def test_a_node_that_stops_lets_go_of_it_and_the_next_one_goes_on(engine: Engine, cause: Cause):
    async with engine.node() as kind:
        first = Watched(kind, engine)
        await first.runs(engine)
        ended = await first.stopped(cause)
        assert ended.outcome is None
        assert ended.began is not None
    assert not engine.is_stopped(first.name)
    async with engine.node() as kind:
        second = Watched(kind, engine, run_id=first.call.run_id, adopted=True)
        await second.runs(engine)
        engine.end(second.name)
        assert (await second.outcome()).kind == "ok"
        third = Watched(kind, engine, run_id=first.call.run_id, adopted=True)
        assert (await third.outcome()).kind == "ok", "what has ended is the result, not a reason to run again"
        assert third.said[0].startswith(f"found {first.name} on ")
    assert list(engine.made) == [first.name]


@pytest.mark.parametrize("cause", ["cancelled", "timeout"])
async def test_only_a_cancel_and_a_time_out_stop_it(engine: Engine, cause: Cause):
    async with engine.node() as kind:
        watched = Watched(kind, engine)
        await watched.runs(engine)
        assert (await watched.stopped(cause)).outcome is None
    assert engine.is_stopped(watched.name)


async def test_who_gave_up_waiting_for_a_stop_says_so_and_it_is_asked_for_all_the_same(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    """The engine of the node says after `stop_within` that the work may still be running."""
    monkeypatch.setattr(run, "STOP_WITHIN", 0.1)
    async with engine.node() as kind:
        watched = Watched(kind, engine)
        await watched.runs(engine)
        await engine.server.stop()
        asked = time.monotonic()
        assert watched.handle.stop("cancelled") is Stop.STOPPING
        await until(lambda: time.monotonic() - asked > 0.3, "who waits has given up")
        assert not watched.ended.done()
        await engine.server.start()
        await asyncio.wait_for(watched.ended, 30)
    assert engine.is_stopped(watched.name)
    assert kind.profile.stop_within < run.STOP_WITHIN + run.STOP_AGAIN_FOR


async def test_whose_it_is_and_when_it_ends_by_itself_stand_with_it_where_there_is_room():
    for which in ("airflow", "argo"):
        async with started(which) as engine, engine.node() as kind:
            watched = Watched(kind, engine, timeout=30.0, try_number=2)
            await watched.runs(engine)
            made = engine.made[watched.name]
            if which == "airflow":
                said = f"Started by On the Dot, run {watched.call.run_id}, try 2, tenant 1 ["
                assert made["note"].startswith(said)
            else:
                labels = {name: made["metadata"]["labels"][f"onthedot/{name}"] for name in ("run", "try", "tenant")}
                assert labels == {"run": watched.call.run_id, "try": "2", "tenant": "1"}
                assert made["spec"]["activeDeadlineSeconds"] == 30 + run.GRACE
            await watched.stopped("gone")


async def test_one_that_somebody_removes_is_a_failed_try(engine: Engine):
    async with engine.node() as kind:
        watched = Watched(kind, engine)
        await watched.runs(engine)
        del engine.made[watched.name]
        outcome = await watched.outcome()
    assert (outcome.kind, outcome.retryable) == ("error", True)
    assert outcome.error == "its execution was removed by somebody else before its result was read"


async def test_an_adopted_one_that_is_cancelled_at_once_is_stopped_too(engine: Engine):
    async with engine.node() as kind:
        first = Watched(kind, engine)
        await first.runs(engine)
        await first.stopped("gone")
        second = Watched(kind, engine, run_id=first.call.run_id, adopted=True)
        await second.stopped("cancelled")
    assert engine.is_stopped(first.name)


async def test_one_that_is_gone_is_unknown_where_it_must_not_run_twice(engine: Engine):
    async with engine.node() as kind:
        outcome = await Watched(kind, engine, adopted=True, may_create=False).outcome()
        assert outcome.kind == "unknown"
        again = Watched(kind, engine, adopted=True)
        await again.runs(engine)
        await again.stopped("gone")


async def test_one_of_another_installation_is_not_ours(engine: Engine):
    async with engine.node("another") as other, engine.node() as kind:
        theirs = Watched(other, engine)
        await theirs.runs(engine)
        ours = Watched(kind, engine, run_id=theirs.call.run_id, adopted=True)
        outcome = await ours.outcome()
        assert (outcome.kind, outcome.retryable) == ("error", False)
        assert "not of this installation" in str(outcome.error)
        assert theirs.name in await kind.inventory()
        assert await kind.remove(theirs.name) is False
        assert await other.inventory()
        assert not engine.is_stopped(theirs.name)
        await theirs.stopped("gone")
        assert await other.remove(theirs.name) is True
    assert engine.is_stopped(theirs.name)


async def test_what_never_reached_the_engine_need_not_be_stopped(engine: Engine):
    """Or a time-out would wait for the engine, and say in the end that the work may still be running."""
    async with engine.node() as kind:
        await engine.server.stop()
        late = Watched(kind, engine, timeout=5.0)
        await until(lambda: late.said, "it did not reach the engine, and waits until it tries again")
        gave_up = await asyncio.wait_for(late.stopped("timeout"), run.STOP_WITHIN / 2)
        assert gave_up.outcome is not None
        error = str(gave_up.outcome.error)
        assert error.startswith("not started within 5 s: ")
        assert "does not answer: " in error
        await engine.server.start()


async def test_an_engine_that_is_away_is_waited_for(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    no_time_to_stop(monkeypatch)
    async with engine.node() as kind:
        running = Watched(kind, engine)
        await running.runs(engine)
        await engine.server.stop()
        starting = Watched(kind, engine)
        asked: list[str] = []

        def may_begin() -> bool:
            asked.append("?")
            return True

        late = Watched(kind, engine, timeout=5.0, may_begin=may_begin)
        await until(lambda: len(asked) >= 3, "it tries again and again")
        gave_up = await late.stopped("timeout")
        assert gave_up.outcome is not None
        assert str(gave_up.outcome.error).startswith("not started within 5 s: ")
        assert [text for text in late.said if "does not answer: " in text] == late.said[:1], (
            "the same trouble is told once"
        )
        await engine.server.start()
        await starting.runs(engine)
        engine.end(running.name)
        engine.end(starting.name)
        assert [(await each.outcome()).kind for each in (running, starting)] == ["ok", "ok"]
    assert late.name not in engine.made


REFUSALS = (401, 403, 404)
"""404: somebody else at its address, who has nothing of what is asked for."""


@pytest.mark.parametrize("status", REFUSALS)
async def test_an_adopted_one_is_not_over_because_nobody_may_ask(engine: Engine, status: int, told: list[Event]):
    async with engine.node() as kind:
        first = Watched(kind, engine)
        await first.runs(engine)
        await first.stopped("gone")
        adopted = first
        for may_create in (True, False):
            told.clear()
            engine.refuse(status)
            adopted = Watched(kind, engine, run_id=first.call.run_id, adopted=True, may_create=may_create)
            await engine.asks_on(4)
            assert not adopted.ended.done()
            assert not adopted.begun
            engine.refuse(None)
            await adopted.runs(engine)
            (event,) = [event for event in told if event.name == "workflows.unavailable"]
            assert "as the test wants it" in str(event.fields["error"])
            if may_create:
                await adopted.stopped("gone")
        assert adopted is not first
        engine.end(first.name)
        assert (await adopted.outcome()).kind == "ok"
    assert list(engine.made) == [first.name]


async def test_an_adopted_one_that_nobody_may_ask_about_ends_with_its_time(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    no_time_to_stop(monkeypatch)
    async with engine.node() as kind:
        first = Watched(kind, engine)
        await first.runs(engine)
        await first.stopped("gone")
        engine.refuse(403)
        adopted = Watched(kind, engine, run_id=first.call.run_id, adopted=True)
        await engine.asks_on()
        ended = await adopted.stopped("timeout")
        assert ended.outcome is None, "the engine says that its time is up"
        assert ended.began is not None


@pytest.mark.parametrize("status", REFUSALS)
async def test_one_that_is_followed_is_not_over_because_nobody_may_ask(engine: Engine, status: int, told: list[Event]):
    async with engine.node() as kind:
        watched = [Watched(kind, engine) for _ in range(2 * following.MANY)]
        for each in watched:
            await each.runs(engine)
        engine.refuse(status)
        await engine.asks_on(4 * following.MANY)
        assert not any(each.ended.done() for each in watched)
        engine.refuse(None)
        for each in watched:
            engine.end(each.name)
        assert {(await each.outcome()).kind for each in watched} == {"ok"}
    assert len([event for event in told if event.name == "workflows.unavailable"]) == 1


async def test_one_that_nobody_may_ask_about_does_not_hold_up_the_others(engine: Engine):
    async with engine.node() as kind:
        refused, other = Watched(kind, engine), Watched(kind, engine)
        await refused.runs(engine)
        await other.runs(engine)
        engine.refuse(403, refused.name)  # nobody who begins to be followed now starts the looks anew
        await engine.asks_on()
        engine.end(other.name)
        assert (await other.outcome()).kind == "ok"
        assert not refused.ended.done()
        await refused.stopped("gone")


async def test_a_retry_stops_what_is_left_of_the_try_before(engine: Engine):
    async with engine.node() as kind:
        first = Watched(kind, engine)
        await first.runs(engine)
        await first.stopped("gone")
        second = Watched(kind, engine, run_id=first.call.run_id, try_number=2)
        await second.runs(engine)
        assert engine.is_stopped(first.name)
        await second.stopped("gone")
    assert second.name.endswith("-2")


async def test_a_workflow_that_does_not_exist_is_not_asked_for_again(engine: Engine):
    async with engine.node() as kind:
        outcome = await Watched(kind, engine, workflow=engine.workflow + "x").outcome()
    assert (outcome.kind, outcome.retryable) == ("error", False)
    assert str(outcome.error).startswith("not started: ")


async def test_many_are_followed_by_few_requests(engine: Engine):
    async with engine.node() as kind:
        watched = [Watched(kind, engine) for _ in range(60)]
        for each in watched:
            await each.runs(engine)
        for each in watched[:20]:
            engine.end(each.name)
        assert {(await each.outcome()).kind for each in watched[:20]} == {"ok"}
        asked = engine.asked
        before = len(asked)
        together = ("List", "ListExecutions", "list", "/jobs")
        await until(
            lambda: len(asked) >= before + 3 and all(what.endswith(together) for what in asked[-3:]),
            "those that go on are asked for together",
        )
        for each in watched[20:]:
            await each.stopped("gone")


async def test_those_that_go_on_are_listed_page_by_page(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    for module in (airflow, argo, step_functions):
        monkeypatch.setattr(module, "PAGE", 7)
    async with engine.node() as kind:
        watched = [Watched(kind, engine) for _ in range(20)]
        for each in watched:
            await each.runs(engine)
        assert set(await kind.inventory()) == {each.name for each in watched}
        assert await kind._engines[engine.name].going(engine.workflow) == {each.name for each in watched}
        for each in watched:
            await each.stopped("gone")


async def test_what_doctor_says(engine: Engine):
    (found,) = await Workflows(engine.settings, engine.aws).diagnose()
    assert found.advice is None, found
    assert "is reachable, login accepted" in found.found
    await engine.server.stop()
    (found,) = await Workflows(engine.settings, engine.aws).diagnose()
    assert found.advice is not None


@pytest.mark.parametrize("which", ["airflow", "airflow1", "argo"])
async def test_a_wrong_login_is_said_and_tried_again(which: str):
    async with started(which) as engine:
        for wrong in ({"token": "no", "user": None}, {"token": None, "user": USER, "password": "no"}):
            engine.settings["it"] = WorkflowSetting(
                **({"url": engine.server.url, "type": engine.settings["it"].type, "namespace": "jobs"} | wrong)
            )
            async with engine.node() as kind:
                outcome = await Watched(kind, engine).outcome()
            assert (outcome.kind, outcome.retryable) == ("error", True)
            assert "HTTP 401" in str(outcome.error)


@pytest.mark.parametrize("which", ["airflow", "airflow1", "argo"])
async def test_a_start_whose_answer_is_lost_is_found(which: str):
    async with started(which) as engine, engine.node() as kind:
        engine.server.swallows = 1
        watched = Watched(kind, engine)
        await watched.runs(engine)
        engine.end(watched.name)
        assert (await watched.outcome()).kind == "ok"
        assert list(engine.made) == [watched.name]


@pytest.mark.parametrize("which", ["airflow", "airflow1", "argo"])
async def test_a_start_whose_answer_is_lost_is_found_though_the_login_is_refused_meanwhile(which: str):
    async with started(which) as engine, engine.node() as kind:
        engine.server.swallows = 1

        def may_begin() -> bool:
            if engine.made and engine.server.refuses is None:
                engine.refuse(401)
            return True

        watched = Watched(kind, engine, may_begin=may_begin)
        await until(lambda: engine.server.refuses is not None, "its start was asked for twice")
        await engine.asks_on()
        assert not watched.ended.done()
        watched.call.may_begin = lambda: True
        engine.refuse(None)
        await watched.runs(engine)
        engine.end(watched.name)
        assert (await watched.outcome()).kind == "ok"
        assert list(engine.made) == [watched.name]


async def test_what_a_dead_node_left_behind_is_found_by_who_never_used_the_workflow(engine: Engine):
    async with engine.node() as dead, engine.node("another") as other:
        ours, theirs = Watched(dead, engine), Watched(other, engine)
        for each in (ours, theirs):
            await each.runs(engine)
            await each.stopped("gone")
    async with engine.node() as kind:
        if engine.name == "stepfunctions":
            assert list(await kind.inventory()) == [], "one state machine after the other can't be listed"
            uses = Watched(kind, engine)
            await uses.runs(engine)
            await uses.stopped("gone")
        assert {ours.name, theirs.name} <= set(await kind.inventory())
        assert [await kind.remove(each.name) for each in (ours, theirs)] == [True, False]
    assert engine.is_stopped(ours.name)
    assert not engine.is_stopped(theirs.name)


def _is_decided(watched: Watched) -> bool:
    return bool(watched.begun) or watched.ended.done()


async def test_a_list_that_is_refused_does_not_hide_the_others(told: list[Event]):
    async with started("stepfunctions") as engine, engine.node() as kind:
        started_ones: list[str] = []
        for workflow in (MACHINE, f"{MACHINE}x", MACHINE.replace("report", "secret")):
            watched = Watched(kind, engine, workflow=workflow)
            await until(partial(_is_decided, watched), "it was started or refused")
            if watched.begun:
                started_ones.append(watched.name)
                await watched.stopped("gone")
        engine.refuse(403, "secret")
        assert list(await kind.inventory()) == started_ones[-1:]
    (event,) = [event for event in told if event.name == "leftover.kept"]
    assert "AccessDenied" in str(event.fields["error"])


async def test_the_place_of_a_state_machine_is_its_account_and_region():
    target = WorkflowTarget(engine="stepfunctions", workflow=MACHINE)
    region = f"workflow:stepfunctions@{REGION}"
    async with started("stepfunctions") as engine, engine.node() as kind:
        await kind.inventory()
        assert kind.adopted_by(target) == region, "STS does not answer"
        assert kind.capabilities() == ["workflow:stepfunctions", region]
        engine.server.account = "123456789012"
        await kind.inventory()
        engine.server.account = None
        await kind.inventory()
        assert kind.adopted_by(target) == f"{region}/123456789012"
        assert kind.capabilities() == ["workflow:stepfunctions", f"{region}/123456789012", region]


@pytest.mark.parametrize("which", ["airflow", "airflow1", "argo"])
async def test_what_an_engine_is_is_found_out_where_nobody_says_it(which: str):
    async with started(which, said=False) as engine:
        async with engine.node() as kind:
            await engine.server.stop()
            first = Watched(kind, engine)
            await until(lambda: bool(kind._watches["it"].outages._names), "it was asked in vain")
            await engine.server.start()
            await first.runs(engine)
            await first.stopped("gone")
            other = Watched(kind, engine, workflow="a~b" if which == "argo" else "a/b")
            assert (await other.outcome()).retryable is False
        async with engine.node() as kind:
            assert list(await kind.inventory()) == [first.name], "asked before anything was started"
            adopted = Watched(kind, engine, run_id=first.call.run_id, adopted=True)
            await adopted.runs(engine)
            engine.end(first.name)
            assert (await adopted.outcome()).kind == "ok"
        (found,) = await Workflows(engine.settings, engine.aws).diagnose()
        title = "Argo Workflows" if which == "argo" else "Airflow"
        assert found.found.startswith(f"it: {title} at http://")
        assert found.found.endswith("; recognized, because its type is not set)")


async def test_who_is_neither_is_told_by_doctor_and_what_can_be_neither_is_refused():
    async with FakeAws() as server:
        kind = Workflows({"it": WorkflowSetting(url=server.url)}, AwsSetting())
        (found,) = await kind.diagnose()
    assert "it is neither Airflow nor Argo Workflows" in found.found
    assert found.advice is not None
    for workflow in ("nightly_load", "jobs/report"):
        kind.check(WorkflowTarget(engine="it", workflow=workflow))
    with pytest.raises(Invalid) as raised:
        kind.check(WorkflowTarget(engine="it", workflow="jobs/nightly_load"))
    assert raised.value.problems[0].path == "target.workflow"


@pytest.mark.parametrize("which", ["airflow", "argo"])
async def test_a_wrong_login_does_not_keep_it_from_being_recognized(which: str):
    async with started(which, said=False) as engine:
        engine.settings["it"] = WorkflowSetting(url=engine.server.url, token="no", namespace="jobs")
        (found,) = await Workflows(engine.settings, engine.aws).diagnose()
    assert found.advice is not None
    assert found.found.startswith(f"it: {'Argo Workflows' if which == 'argo' else 'Airflow'} at ")
    assert "HTTP 401" in found.found


async def test_a_token_that_has_expired_is_made_anew():
    async with started("airflow") as engine, engine.node() as kind:
        first = Watched(kind, engine)
        await first.runs(engine)
        engine.server.tokens.clear()
        engine.end(first.name)
        assert (await first.outcome()).kind == "ok"


def test_what_is_not_there_is_refused_with_the_remedy():
    kind = Workflows({"it": WorkflowSetting(url="http://x", type="argo")}, AwsSetting())
    with pytest.raises(Invalid) as raised:
        kind.check(WorkflowTarget(engine="other", workflow="a"))
    assert "it, stepfunctions" in str(raised.value.problems[0].accepted)
    with pytest.raises(NotAvailable):
        kind.check(WorkflowTarget(engine="stepfunctions", workflow=MACHINE))
    with pytest.raises(Invalid) as raised:
        kind.check(WorkflowTarget(engine="it", workflow="A B"))
    assert raised.value.problems[0].path == "target.workflow"
    assert kind.capabilities() == ["workflow:it", "workflow:it@x"]
    assert kind.adopted_by(WorkflowTarget(engine="it", workflow="a")) == "workflow:it@x"
    regional = Workflows({}, AwsSetting(region="eu-central-1"))
    with pytest.raises(Invalid, match="another region"):
        regional.check(WorkflowTarget(engine="stepfunctions", workflow=MACHINE))
    assert WorkflowTarget.timeout_by(None) == 86_400.0
    assert following.LONGEST == 32.0


def test_with_moto():
    """Executions there never end by themselves. What is sent is read by code that is not ours."""

    async def cancelled(endpoint: str, machine: str) -> tuple[str, Ended]:
        engine = Engine("stepfunctions", machine, None, {}, AwsSetting(region=REGION, endpoint=endpoint))
        async with engine.node() as kind:
            watched = Watched(kind, engine)
            await until(lambda: bool(watched.begun) or watched.ended.done(), "it was started")
            second = Watched(kind, engine, run_id=watched.call.run_id, adopted=True)
            await until(lambda: bool(second.begun) or second.ended.done(), "it was found")
            await second.stopped("gone")
            return watched.name, await watched.stopped("cancelled")

    with running_sqs() as server:
        endpoint = f"http://127.0.0.1:{server.port}"
        client = boto3.client("stepfunctions", region_name=REGION, endpoint_url=endpoint)
        definition = json.dumps({"StartAt": "it", "States": {"it": {"Type": "Pass", "End": True}}})
        role = "arn:aws:iam::123456789012:role/it"
        machine = client.create_state_machine(name="report", definition=definition, roleArn=role)["stateMachineArn"]
        name, ended = asyncio.run(cancelled(endpoint, machine))
        (found,) = client.list_executions(stateMachineArn=machine)["executions"]
        client.close()
    assert ended.outcome is None
    assert (found["name"], found["status"]) == (name, "ABORTED")
