"""The registry: one door to every kind."""

from __future__ import annotations

import asyncio
from typing import Any, Self

import pytest

from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.targets import CommandTarget, FunctionTarget, WebhookTarget
from onthedot.model.targets.registry import BUILT_IN, built_in_specs, load
from onthedot.settings import CommandSetting, Settings
from onthedot.targets import Call, InProcessFunctions, Targets, build_targets
from onthedot.targets.coroutine import CoroutineKind
from tests.targets.conftest import MakeCall
from tests.targets.sending import send


class Scripted(CoroutineKind):
    """A kind that does as the test says, and remembers when it was open."""

    def __init__(self, answer: Any, spec: type[Any], events: list[str] | None = None, name: str = "kind") -> None:
        self.answer, self.events, self.name = answer, [] if events is None else events, name
        self.spec = spec

    def capabilities(self) -> list[str]:
        return [self.name]

    def check(self, target: Any, tenant: int = 1) -> None:
        self.events.append(f"check {self.name}")

    async def send(self, call: Call) -> Outcome:
        if isinstance(self.answer, BaseException):
            raise self.answer
        assert isinstance(self.answer, Outcome)
        return self.answer

    async def __aenter__(self) -> Self:
        if self.answer == "can't open":
            raise OSError("can't open")
        self.events.append(f"open {self.name}")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.events.append(f"close {self.name}")


WEBHOOK = WebhookTarget(url="http://example.com/")


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_line_of_a_built_in_kind_leads_to_its_two_classes(name: str):
    spec = built_in_specs()[name]
    assert (spec.__struct_config__.tag, load("onthedot.targets", BUILT_IN[name].kind).spec) == (name, spec)


async def test_each_type_goes_to_its_kind(make_call: MakeCall):
    targets = Targets([Scripted(Outcome(kind="ok"), WebhookTarget), Scripted(Outcome(kind="timeout"), CommandTarget)])
    assert (await send(targets, make_call(WEBHOOK))).kind == "ok"
    assert (await send(targets, make_call(CommandTarget(command="x")))).kind == "timeout"


async def test_a_type_that_is_not_there(make_call: MakeCall):
    targets = Targets([Scripted(None, WebhookTarget)])
    assert await send(targets, make_call(CommandTarget(command="x"))) == Outcome(
        kind="refused", error="this node does not support command targets"
    )
    with pytest.raises(Invalid) as caught:
        targets.check(CommandTarget(command="x"))
    assert caught.value.problems[0].path == "target.type"


@pytest.mark.parametrize("error", [RuntimeError("odd"), KeyError("k"), OSError(5, "disk"), AssertionError()])
async def test_nothing_is_raised_but_a_failed_try(make_call: MakeCall, error: Exception):
    outcome = await send(Targets([Scripted(error, WebhookTarget)]), make_call(WEBHOOK))
    assert outcome.kind == "error"
    assert outcome.retryable
    assert (outcome.error or "").startswith(type(error).__name__)


async def test_a_kind_that_cancels_itself_has_failed(make_call: MakeCall):
    outcome = await send(Targets([Scripted(asyncio.CancelledError(), WebhookTarget)]), make_call(WEBHOOK))
    assert (outcome.kind, outcome.retryable, outcome.error) == ("error", True, "CancelledError: ")


async def test_kinds_are_opened_and_closed_in_order():
    events: list[str] = []
    targets = Targets([Scripted(None, WebhookTarget, events, "a"), Scripted(None, CommandTarget, events, "b")])
    async with targets:
        assert targets.capabilities() == ["a", "b"]
    assert events == ["open a", "open b", "close b", "close a"]


async def test_when_one_cannot_open_the_others_are_closed():
    events: list[str] = []
    targets = Targets([Scripted(None, WebhookTarget, events, "a"), Scripted("can't open", CommandTarget, events, "b")])
    with pytest.raises(OSError, match="can't open"):
        async with targets:
            pass
    assert events == ["open a", "close a"]


def test_what_is_built_offers_what_was_registered():
    commands = {"backup": CommandSetting(argv=("true",))}
    targets = build_targets(Settings(functions=("reports", "tools:clean"), commands=commands, function_processes=3))
    assert targets.capabilities() == [*("webhook", "function:reports", "function:tools", "command:backup", "checkin")]
    assert targets.capacities(50) == {
        "webhook": 50,
        "function": 3,
        "command": 3,
        "queue": 50,
        "script": 3,
        "container": 3,
        "kubernetes": 3,
        "lambda": 50,
        "workflow": 50,
        "checkin": 50,
    }
    assert targets.in_process == frozenset()
    for target in (WEBHOOK, FunctionTarget(function="reports:x"), CommandTarget(command="backup")):
        targets.check(target)
        assert target.capability() in targets.capabilities()


def test_what_is_wrong_anywhere_is_said_first():
    target = WebhookTarget(url="http://10.0.0.1/", headers={"Host": "y", "A B": "z"}, secret="short")
    with pytest.raises(Invalid) as caught:
        build_targets().check(target)
    paths = {problem.path for problem in caught.value.problems}
    assert paths == {"target.headers.Host", "target.headers.A B", "target.secret"}


def test_by_default_nothing_private_may_be_called():
    with pytest.raises(Invalid):
        build_targets().check(WebhookTarget(url="http://10.0.0.1/"))


def test_an_embedded_program_offers_its_callables():
    callables = InProcessFunctions()
    targets = build_targets(in_process=callables)
    assert (targets.capacities(50)["function"], targets.in_process) == (32, frozenset({"function"}))
    assert targets.capabilities() == ["webhook", "checkin"]
    callables.add("program:tick", lambda: None)
    callables.add("program:tock", lambda: None)
    assert targets.capabilities() == ["webhook", "function:program", "checkin"]
    targets.check(FunctionTarget(function="program:tick"))
    with pytest.raises(Invalid, match="is not registered"):
        targets.check(FunctionTarget(function="program:other"))


async def test_what_is_registered_may_change_while_it_runs():
    targets = build_targets(Settings(functions=("a",), commands={"x": CommandSetting(argv=("true",))}))
    async with targets:
        assert targets.capabilities()[:3] == ["webhook", "function:a", "command:x"]
        targets.register(Settings(functions=("b", "c:only"), commands={"y": CommandSetting(argv=("true",))}))
        await targets.reload()
        assert targets.capabilities()[:4] == ["webhook", "function:b", "function:c", "command:y"]
        for fine in (FunctionTarget(function="b:f"), FunctionTarget(function="c:only"), CommandTarget(command="y")):
            targets.check(fine)
        for wrong in (FunctionTarget(function="a:f"), FunctionTarget(function="c:f"), CommandTarget(command="x")):
            with pytest.raises(Invalid):
                targets.check(wrong)
