"""Kinds of plug-ins on a node: made with their settings, and left out when they fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, Self

import msgspec
import pytest

from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.targets import TargetSpec, WebhookTarget
from onthedot.model.targets.registry import Plugins
from onthedot.settings import Settings
from onthedot.targets import Call, Kind, Profile, Targets, build_targets, from_coroutine
from onthedot.targets import plugins as node_plugins
from onthedot.targets.coroutine import CoroutineKind
from onthedot.telemetry import Event, telemetry
from tests.targets.conftest import Log, MakeCall
from tests.targets.sending import send


class FaxTarget(TargetSpec, frozen=True, kw_only=True, tag="fax"):
    number: int


class FaxSettings(msgspec.Struct, forbid_unknown_fields=True):
    line: int = 1


class Fax(CoroutineKind):
    spec = FaxTarget
    profile = Profile(capacity=7)

    def __init__(self, opening: Exception | None = None) -> None:
        self.opening = opening
        self.failing: Exception | None = None

    def capabilities(self) -> list[str]:
        if self.failing is not None:
            raise self.failing
        return super().capabilities()

    def problem(self, target: Any, tenant: int = 1) -> str | None:
        raise KeyError(target.number)

    async def send(self, call: Call) -> Outcome:
        return Outcome(kind="ok")

    async def __aenter__(self) -> Self:
        if self.opening is not None:
            raise self.opening
        return self


Install = Callable[..., None]


@pytest.fixture
def told() -> Iterator[list[Event]]:
    heard: list[Event] = []
    stop = telemetry.subscribe(lambda event: heard.append(event) if event.name == "plugin.broken" else None)
    yield heard
    stop()


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """In this process; installed as a distribution they are in tests/cluster/test_plugin.py."""

    def install(kind: Callable[[dict[str, Any]], Any], broken: dict[str, str] | None = None) -> None:
        found = Plugins({"fax": SimpleNamespace(spec=FaxTarget, kind=kind)}, broken or {})
        monkeypatch.setattr(node_plugins, "plugins", lambda: found)

    return install


async def test_it_is_one_kind_among_the_others(install: Install, make_call: MakeCall, told: list[Event]) -> None:
    install(lambda settings: Fax())
    targets = build_targets()
    assert (targets.plugins, targets.broken, told) == (["fax"], {}, [])
    assert targets.capabilities() == ["webhook", "checkin", "fax"]

    assert targets.capacities(50)["fax"] == 7
    target = FaxTarget(number=1)
    assert target.capability() == "fax"
    assert target.summary().line == "fax"
    targets.check(target)
    assert targets.problem(target) == "KeyError: 1"
    async with targets:
        assert (await send(targets, make_call(target))).kind == "ok"


def test_its_settings_are_its_own_table(install: Install) -> None:
    seen = []

    def kind(settings: dict[str, Any]) -> Kind:
        seen.append(msgspec.convert(settings, FaxSettings).line)
        return Fax()

    install(kind)
    build_targets()
    build_targets(Settings(targets={"fax": {"line": 3}}))
    assert seen == [1, 3]
    targets = build_targets(Settings(targets={"fax": {"line": "x"}}))
    assert targets.broken == {"fax": "ValidationError: Expected `int`, got `str` - at `$.line`"}


async def _never(call: Call) -> Outcome:
    raise AssertionError


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (lambda settings: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda settings: None, "TypeError: kind() returned None, not a Kind"),
        (
            lambda settings: from_coroutine(_never, spec=WebhookTarget),
            "TypeError: kind() returned a kind whose spec is",
        ),
        (
            lambda settings: from_coroutine(_never, spec=FaxTarget, capabilities=lambda: ["webhook"]),
            "ValueError: capability 'webhook' must be 'fax' or start with 'fax:'",
        ),
        (
            lambda settings: from_coroutine(_never, spec=FaxTarget, capabilities=lambda: ["fax:a+b"]),
            "ValueError: capability 'fax:a+b' must not contain '+' or '@'",
        ),
    ],
)
def test_one_that_cannot_be_made_is_named(install: Install, told: list[Event], kind: Any, why: str) -> None:
    install(kind, {"telex": "ImportError: none"})
    targets = build_targets()
    assert targets.plugins == []
    assert targets.broken["telex"] == "ImportError: none"
    assert targets.broken["fax"].startswith(why)
    assert {event.fields["plugin"]: event.fields["error"] for event in told} == targets.broken
    with pytest.raises(Invalid, match="not supported on this node"):
        targets.check(FaxTarget(number=1))
    assert targets.capabilities() == ["webhook", "checkin"]


def test_settings_of_one_that_is_not_installed_are_named(install: Install) -> None:
    install(lambda settings: Fax())
    broken = build_targets(Settings(targets={"fux": {}, "pigeon": {}})).broken
    assert broken == {
        "fux": "is not installed, but has settings in [targets.fux]. Did you mean [targets.fax]?",
        "pigeon": "is not installed, but has settings in [targets.pigeon]. Installed: fax",
    }


async def test_one_that_cannot_open_is_left_out(told: list[Event], make_call: MakeCall) -> None:
    targets = Targets([], [Fax(OSError("no line"))])
    async with targets:
        assert (targets.capabilities(), targets.plugins) == ([], [])
        assert targets.broken == {"fax": "OSError: no line"}
        assert (await send(targets, make_call(FaxTarget(number=1)))).kind == "refused"
    assert [event.fields for event in told] == [{"plugin": "fax", "error": "OSError: no line"}]


@pytest.mark.parametrize(
    ("answer", "error"),
    [(None, "TypeError: send() returned NoneType, not an Outcome"), (SystemExit(3), "SystemExit: 3")],
)
async def test_one_that_answers_nothing_has_failed(make_call: MakeCall, answer: Any, error: str) -> None:
    async def send_badly(call: Call) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    targets = Targets([], [from_coroutine(send_badly, spec=FaxTarget)])
    outcome = await send(targets, make_call(FaxTarget(number=1)))
    assert (outcome.kind, outcome.retryable, outcome.error) == ("error", True, error)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"kind": "sent"}, "Invalid enum value 'sent' - at `$.kind`"),
        ({"kind": "error", "error": 5}, "Expected `str | null`, got `int` - at `$.error`"),
        ({"kind": "ok", "detail": [1]}, "Expected `object`, got `array` - at `$.detail`"),
    ],
)
async def test_one_that_answers_with_something_else_has_failed(
    make_call: MakeCall, fields: dict[str, Any], why: str
) -> None:
    async def send_badly(call: Call) -> Outcome:
        return Outcome(**fields)

    outcome = await send(from_coroutine(send_badly, spec=FaxTarget), make_call(FaxTarget(number=1)))
    assert outcome.error == f"TypeError: send() returned an Outcome that is wrong: {why}"
    assert (outcome.kind, outcome.retryable) == ("error", True)


async def test_one_that_raises_what_can_not_be_shown_has_failed(make_call: MakeCall) -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise ValueError("no words")

    async def send_badly(call: Call) -> Outcome:
        raise Unspeakable

    outcome = await asyncio.wait_for(
        send(from_coroutine(send_badly, spec=FaxTarget), make_call(FaxTarget(number=1))), 10
    )
    assert (outcome.kind, outcome.error) == ("error", "Unspeakable: its str() failed: ValueError")


async def test_one_that_logs_no_text_has_failed(make_call: MakeCall, log: Log) -> None:
    async def send_bytes(call: Call) -> Outcome:
        call.log("dialing\n")
        call.log(b"busy")  # type: ignore[arg-type]
        return Outcome(kind="ok")

    outcome = await send(from_coroutine(send_bytes, spec=FaxTarget), make_call(FaxTarget(number=1)))
    assert (outcome.kind, outcome.error) == ("error", "TypeError: call.log() takes text, not bytes")
    assert log.text == "dialing\n"


def test_one_that_fails_later_offers_nothing_meanwhile(told: list[Event]) -> None:
    fax = Fax()
    targets = Targets([], [fax])
    fax.failing = RuntimeError("paper jam")
    assert [targets.capabilities(), targets.capabilities()] == [[], []]
    assert len(told) == 1, "told once"
    fax.failing = None
    assert targets.capabilities() == ["fax"]


def test_a_built_in_kind_that_fails_is_not_hidden() -> None:
    fax = Fax()
    fax.failing = RuntimeError("paper jam")
    with pytest.raises(RuntimeError):
        Targets([fax]).capabilities()
