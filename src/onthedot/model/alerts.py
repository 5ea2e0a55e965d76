"""Alerts: for which conditions somebody is told, and by which channels. Of one job (`alerts`), or of the installation
(`[alerts.NAME]` in the settings)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal, get_args
from zoneinfo import ZoneInfo

import msgspec

from onthedot.model.duration import SECOND, Duration
from onthedot.model.struct import Strict

__all__ = [
    "ACCEPTED_QUIET",
    "CONDITIONS",
    "NO_ALERTING",
    "RAISED_BY",
    "AlertCondition",
    "AlertRule",
    "AlertWay",
    "Alerting",
    "JobAlerts",
    "own_rule",
    "quiet_until",
    "read_quiet",
]

AlertCondition = Literal["failed", "dead", "late", "missed", "too_long", "in_a_row", "unroutable", "node_lost"]
CONDITIONS: tuple[AlertCondition, ...] = get_args(AlertCondition)
RAISED_BY = (*CONDITIONS, "recovered")
"""What a rule of the settings can name in `on`."""

IN_A_ROW = 3
LATE = 30 * SECOND
"""What `late` and `in_a_row` mean to a rule that gives no number."""

ACCEPTED_QUIET = 'a daily time span such as "22:00-07:00", optionally with a time zone: "22:00-07:00 Europe/Berlin"'
_QUIET = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)(?: ([A-Za-z0-9_+/-]{1,60}))?", re.ASCII)

Channel = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class JobAlerts(Strict, frozen=True, kw_only=True, omit_defaults=True):
    """When somebody is told about a job, instead of what the rules of the installation say. `late`: a run has not
    started so long after it was due. `failed`: a run failed for good. `dead`: it has dead letters. `missed`: a firing
    was given up. `too_long`: a run takes longer. `too_long_p95`: it takes more than twice as long as 95 % of the last
    runs. `in_a_row`: so many runs failed one after the other. `unroutable`: no live node can run it. `recovered`: also
    when it is over. `quiet`: a daily time span in which nothing is sent. `repeat`: say it again while it lasts."""

    late: Duration | None = None
    failed: bool = False
    dead: bool = False
    missed: bool = False
    too_long: Duration | None = None
    too_long_p95: bool = False
    in_a_row: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    unroutable: bool = False
    recovered: bool = True
    channels: Annotated[list[Channel], msgspec.Meta(max_length=20)] = msgspec.field(default_factory=list)
    quiet: Annotated[str, msgspec.Meta(max_length=100)] | None = None
    repeat: Duration | None = None


class AlertWay(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one channel is told of an incident."""

    channel: str
    repeat_ms: int | None = None
    quiet: str | None = None
    recovered: bool = False


class AlertRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule as it is applied, whoever wrote it. `name`: in the settings; None: the job's own. `too_long` None: against
    the job's own p95."""

    name: str | None = None
    on: frozenset[str] = frozenset()
    channels: tuple[str, ...] = ()
    tag: str | None = None
    owner: str | None = None
    target: str | None = None
    late: int = LATE
    too_long: int | None = None
    usual: bool = False  # also against the job's own p95
    in_a_row: int = IN_A_ROW
    quiet: str | None = None
    repeat: int | None = None

    def matches(self, tags: Sequence[str], owner: str | None, target: str) -> bool:
        return (
            (self.tag is None or self.tag in tags)
            and (self.owner is None or self.owner == owner)
            and (self.target is None or self.target == target)
        )

    def ways(self) -> list[AlertWay]:
        told = "recovered" in self.on
        return [
            AlertWay(channel=channel, repeat_ms=self.repeat, quiet=self.quiet, recovered=told)
            for channel in self.channels
        ]


class Alerting(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say of alerts: the rules of the installation, and which channels there are."""

    rules: tuple[AlertRule, ...] = ()
    channels: frozenset[str] = frozenset()


NO_ALERTING = Alerting()


def own_rule(alerts: JobAlerts) -> AlertRule:
    wanted = {
        "failed": alerts.failed,
        "dead": alerts.dead,
        "late": alerts.late is not None,
        "missed": alerts.missed,
        "too_long": alerts.too_long is not None or alerts.too_long_p95,
        "in_a_row": alerts.in_a_row is not None,
        "unroutable": alerts.unroutable,
        "recovered": alerts.recovered,
    }
    return AlertRule(
        on=frozenset(name for name, is_wanted in wanted.items() if is_wanted),
        channels=tuple(alerts.channels),
        late=LATE if alerts.late is None else int(alerts.late),
        too_long=_plain(alerts.too_long),
        usual=alerts.too_long_p95,
        in_a_row=alerts.in_a_row or IN_A_ROW,
        quiet=alerts.quiet,
        repeat=_plain(alerts.repeat),
    )


def _plain(duration: Duration | None) -> int | None:
    return None if duration is None else int(duration)


def read_quiet(text: str) -> tuple[int, int, ZoneInfo] | None:
    """(first minute of the day, minute at which it is over, zone); None: it is not valid."""
    found = _QUIET.fullmatch(text)
    if found is None:
        return None
    begins, ends = int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])
    try:
        zone = ZoneInfo(found[5] or "UTC")
    except (KeyError, ValueError, OSError):
        return None
    return None if begins == ends else (begins, ends, zone)


def quiet_until(text: str | None, now_ms: int) -> int | None:
    """When the quiet hours are over in which this instant lies, in ms; None: it lies in none."""
    span = None if text is None else read_quiet(text)
    if span is None:
        return None
    begins, ends, zone = span
    local = datetime.fromtimestamp(now_ms / 1000, zone)
    minute = local.hour * 60 + local.minute
    is_quiet = begins <= minute < ends if begins < ends else minute >= begins or minute < ends
    if not is_quiet:
        return None
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    day = midnight if minute < ends else midnight + timedelta(days=1)
    return round(day.replace(hour=ends // 60, minute=ends % 60).timestamp() * 1000)
