"""`onthedot timer 10s URL`: one webhook, once."""

from __future__ import annotations

from typing import Annotated

import typer

from onthedot.cli.options import ApiKey, AsJson, Server, connected
from onthedot.cli.output import print_json, say

__all__ = ["timer"]


def timer(
    duration: Annotated[
        str, typer.Argument(metavar="DURATION", help="Delay in whole seconds, such as 10s, 5m or 1h30m")
    ],
    target: Annotated[str, typer.Argument(metavar="URL", help="URL to call with POST when the timer expires")],
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Set a timer that sends one POST to URL when it expires."""
    from onthedot.model.duration import ACCEPTED_DURATIONS, HOUR, MINUTE, SECOND, Duration
    from onthedot.model.timer import TimerSpec

    try:
        total = Duration.parse(duration)
    except ValueError:
        raise typer.BadParameter(f"{duration!r} is not a valid duration. Accepted: {ACCEPTED_DURATIONS}") from None
    if total % SECOND:
        raise typer.BadParameter(f"{duration!r} is not a whole number of seconds")
    hours, rest = divmod(int(total), HOUR)
    minutes, rest = divmod(rest, MINUTE)
    with connected(server, key) as client:
        made = client.create_timer(TimerSpec(hours=hours, minutes=minutes, seconds=rest // SECOND, url=target))
    if as_json:
        print_json(made)
    else:
        say(f"Timer {made.id}: POST {target} in {made.time_left} s.")
