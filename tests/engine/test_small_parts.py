"""Backoff, health, owned, lateness: what the actors share; and how a call is made."""

from __future__ import annotations

import dis
import random

import pytest

from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.membership.lateness import Lateness
from onthedot.engine.recording.owned_runs import OwnedRuns
from onthedot.engine.running.call import call_of
from onthedot.engine.settings import EngineSettings
from onthedot.errors import StoreUnavailable
from onthedot.settings import Settings
from onthedot.store.runs.row import claimed_run
from onthedot.telemetry import Event, subscribe


def test_backoff_grows_up_to_its_most_and_starts_again_after_a_success():
    backoff = Backoff(random.Random(1), first=0.1, most=1.0)
    delays = [backoff.delay() for _ in range(50)]
    assert 0.05 <= delays[0] <= 0.1
    assert all(0.5 <= delay <= 1.0 for delay in delays[5:])
    backoff.reset()
    assert backoff.delay() <= 0.1


def test_two_nodes_do_not_knock_in_step():
    one, two = Backoff(random.Random(1)), Backoff(random.Random(2))
    assert [one.delay() for _ in range(5)] != [two.delay() for _ in range(5)]


def test_health_says_each_change_once():
    events: list[Event] = []
    unsubscribe = subscribe(events.append)
    health = StoreHealth()
    try:
        health.worked()
        health.failed(StoreUnavailable("away"))
        health.failed(StoreUnavailable("still away"))
        assert not health.ok
        health.worked()
        health.worked()
    finally:
        unsubscribe()
    assert [(event.name, event.fields) for event in events] == [
        ("store.unavailable", {"error": "away"}),
        ("store.back", {}),
    ]


def test_only_the_very_claim_is_released():
    owned = OwnedRuns()
    owned.add("1-1", 1)
    owned.add("1-1", 2)  # retried and claimed again before the finish was answered
    owned.release("1-1", 1)
    assert owned.has("1-1", 2)
    owned.release("1-1", 2)
    assert len(owned) == 0


def test_strays_are_rows_that_nobody_here_knew():
    owned = OwnedRuns()
    owned.add("known", 1)
    owned.add("finished meanwhile", 1)
    before = owned.snapshot()
    owned.release("finished meanwhile", 1)
    rows = [("known", 1), ("finished meanwhile", 1), ("unknown", 3), ("known", 2)]
    assert owned.strays(rows, before) == [("unknown", 3), ("known", 2)]


async def test_lateness_of_the_last_minute(fake_clock):
    lateness = Lateness(fake_clock)
    assert lateness.percentile(0.5) is None
    for late in range(1, 101):
        lateness.add(late, fake_clock.monotonic())
    assert (lateness.percentile(0.5), lateness.percentile(0.99)) == (50, 99)
    await fake_clock.advance(30)
    lateness.add(5000, fake_clock.monotonic())
    assert lateness.percentile(1.0) == 5000
    await fake_clock.advance(40)
    assert lateness.percentile(0.01) == 5000  # the first hundred are over a minute old
    await fake_clock.advance(60)
    assert lateness.percentile(0.99) is None


@pytest.mark.parametrize(("store", "alone"), [("sqlite:///x.db", True), ("postgresql://h/d", False)])
def test_settings_become_the_engines_own(store, alone):
    settings = EngineSettings.of(Settings(store=store, concurrency=12))
    assert settings.alone is alone
    assert settings.concurrency == 12
    assert settings.lease == 5000
    assert settings.pid > 0


@pytest.mark.parametrize("made_for_each_run", [call_of, claimed_run])
def test_no_dict_is_made_of_the_arguments_of_what_each_run_needs(made_for_each_run):
    """As Python does with more than fifteen by name: half a microsecond more for each run."""
    assert "CALL_FUNCTION_EX" not in {step.opname for step in dis.get_instructions(made_for_each_run)}
