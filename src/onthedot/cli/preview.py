"""`onthedot preview "0 3 * * *"`: show the next fire times, without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.options import AsJson
from onthedot.cli.output import print_json, say, table, when

if TYPE_CHECKING:
    from onthedot.model.schedule import Schedule

__all__ = ["preview", "schedule_of"]


def preview(
    expression: Annotated[
        str, typer.Argument(metavar="SCHEDULE", help="Cron expression, interval such as 90s, or date and time")
    ],
    tz: Annotated[
        str | None, typer.Option("--tz", help="IANA time zone, such as Europe/Berlin [default: DEFAULT_TZ, or UTC]")
    ] = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=1000, help="Number of fire times to show")] = 10,
    after: Annotated[
        str | None, typer.Option(help="Show fire times after this instant (RFC 3339) [default: now]")
    ] = None,
    start: Annotated[str | None, typer.Option(help="Do not fire before this time")] = None,
    end: Annotated[str | None, typer.Option(help="Do not fire after this time")] = None,
    as_json: AsJson = False,
) -> None:
    """Show when a schedule fires, what it means and how daylight saving time affects it. Needs no server."""
    from onthedot.clock import SystemClock
    from onthedot.service import preview_schedule
    from onthedot.settings import load_settings

    tz = load_settings().default_tz if tz is None else tz
    now = SystemClock().now_ms()
    seen = preview_schedule(schedule_of(expression, tz, start, end), now=now, after=after, count=count)
    if as_json:
        print_json(seen)
        return
    say(seen.description)
    table(
        ("utc", *(() if tz == "UTC" else (tz,)), "when"),
        ((fire, *(() if tz == "UTC" else (_local(fire, tz),)), when(fire, now)) for fire in seen.fires),
        empty="No fire times: this schedule never fires.",
    )
    for remark in seen.remarks:
        say(f"Note: {remark}")


def schedule_of(expression: str, tz: str, start: str | None = None, end: str | None = None) -> Schedule:
    """Read a duration as `every`, a date as `at` and anything else as cron, whose errors are the most helpful."""
    from onthedot.model.duration import Duration
    from onthedot.model.instant import parse_local
    from onthedot.model.schedule import Schedule

    text = expression.strip()
    if parse_local(text)[0] is not None:
        return Schedule(at=text, tz=tz, start=start, end=end)
    try:
        return Schedule(every=Duration.parse(text), tz=tz, start=start, end=end)
    except ValueError:
        return Schedule(cron=text, tz=tz, start=start, end=end)


def _local(fire: str, tz: str) -> str:
    from datetime import datetime

    from onthedot.timing.zones import zone

    return datetime.fromisoformat(fire).astimezone(zone(tz)).strftime("%a %Y-%m-%d %H:%M:%S %Z")
