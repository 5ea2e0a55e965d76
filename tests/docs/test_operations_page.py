"""docs/operations.md speaks of things that exist."""

from __future__ import annotations

import re
from pathlib import Path

from onthedot.engine.membership.backoff import Backoff
from onthedot.launcher.supervisor import GIVE_UP
from onthedot.launcher.wait_for_store import SAID_EVERY
from onthedot.settings.values import PARSERS
from onthedot.store.postgres.address import parse_address
from onthedot.telemetry.metrics import Metrics

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()


def test_settings_and_metrics_exist():
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)*)`", PAGE))
    assert named <= set(PARSERS)
    text = Metrics().text().decode()
    metrics = set(re.findall(r"`(onthedot_\w+)`", PAGE))
    assert metrics
    assert all(f"# HELP {metric} " in text for metric in metrics)


def test_numbers_are_those_of_the_code():
    assert "after five failures in a row right after starting" in PAGE
    assert GIVE_UP == 5
    assert "logs this every five seconds" in PAGE
    assert SAID_EVERY == 5.0
    assert f"nodes × {parse_address('postgresql://h/d').pool + 1}" in PAGE
    assert "up to 2 s" in PAGE
    assert Backoff.__init__.__defaults__ == (0.05, 2.0)
