"""Channels and alert rules in the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from onthedot.errors import SettingsError
from onthedot.model.alerts import quiet_until, read_quiet
from onthedot.settings import load_settings

HOUR = 3_600_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "onthedot.toml"


def test_tables_and_json_say_the_same(file: Path):
    file.write_text(
        """
[channels.ops]
url = "https://user:secret@chat.example.com/hook"
[channels.page]
command = ["/usr/bin/page", "--now"]
[alerts.all]
on = ["failed", "late", "recovered"]
channels = ["ops"]
match = {tag = "reports", owner = "ann", target = "webhook"}
quiet = "22:00-07:00 Europe/Berlin"
repeat = "4h"
late = "10s"
"""
    )
    settings = load_settings({}, {}, file)
    (rule,) = settings.alerting.rules
    assert (rule.name, set(rule.on), rule.channels) == ("all", {"failed", "late", "recovered"}, ("ops",))
    assert (rule.tag, rule.owner, rule.target) == ("reports", "ann", "webhook")
    assert (rule.late, rule.repeat, rule.in_a_row, rule.usual) == (10_000, 4 * HOUR, 3, True)
    assert settings.alerting.channels == {"ops", "page"}
    assert "secret" not in repr(settings.channels)
    file.write_text("")
    environ = {
        "ONTHEDOT_CHANNELS": '{"ops": {"url": "https://x.example"}}',
        "ONTHEDOT_ALERTS": '{"a": {"on": ["too_long"], "channels": ["ops"], "too_long": "5m"}}',
    }
    (rule,) = load_settings({}, environ, file).alerting.rules
    assert (set(rule.on), rule.too_long, rule.usual) == ({"too_long"}, 300_000, False)


@pytest.mark.parametrize(
    ("channels", "alerts", "said"),
    [
        ('{"a b": {"url": "https://x"}}', "{}", "'a b' is not a valid name"),
        ('{"a": {"url": "https://x", "command": ["y"]}}', "{}", "must have one of"),
        ('{"a": {}}', "{}", "must have one of"),
        ('{"a": {"url": "secret-place"}}', "{}", "the url of channels.a is not valid"),
        ('{"a": {"link": "x"}}', "{}", "link"),
        ("{}", '{"x": {"on": ["broken"]}}', "'broken' in on is unknown"),
        ("{}", '{"x": {"on": []}}', "on is empty"),
        ("{}", '{"x": {"on": ["failed"], "quiet": "later"}}', "22:00-07:00"),
        ("{}", '{"x": {"on": ["failed"], "channels": ["nobody"]}}', "unknown channel 'nobody'. Known: none"),
        ("{}", '{"x": {"on": ["failed"], "repeat": "0s"}}', "more than zero"),
        ("{}", '{"x": {"on": ["failed"], "match": {"name": "x"}}}', "name"),
    ],
)
def test_what_is_wrong_is_named_without_the_url(channels: str, alerts: str, said: str, file: Path):
    file.write_text("")
    with pytest.raises(SettingsError) as wrong:
        load_settings({}, {"ONTHEDOT_CHANNELS": channels, "ONTHEDOT_ALERTS": alerts}, file)
    assert said in str(wrong.value)
    assert "secret-place" not in str(wrong.value)


@pytest.mark.parametrize(
    ("span", "hour", "until"),
    [
        ("22:00-07:00", 23, 31),
        ("22:00-07:00", 3, 7),
        ("22:00-07:00", 7, None),
        ("22:00-07:00", 12, None),
        ("09:00-17:00", 9, 17),
        ("09:00-17:00", 17, None),
        ("22:00-07:00 Europe/Berlin", 21, 30),
        ("22:00-07:00 Europe/Berlin", 6, None),
        (None, 3, None),
    ],
)
def test_quiet_hours(span: str | None, hour: int, until: int | None):
    day = 1_700_006_400_000 - 1_700_006_400_000 % (24 * HOUR)  # in November
    expected = None if until is None else day + until * HOUR
    assert quiet_until(span, day + hour * HOUR) == expected


@pytest.mark.parametrize("span", ["22-7", "25:00-07:00", "07:00-07:00", "22:00-07:00 Mars/Base", ""])
def test_no_quiet_hours(span: str):
    assert read_quiet(span) is None
