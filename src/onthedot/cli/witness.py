"""`onthedot witness`: an independent reader that alerts when firings are missing or nobody is there."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.direct import settings_for
from onthedot.cli.options import AsJson, Settings, StoreUrl
from onthedot.cli.output import print_json, say

if TYPE_CHECKING:
    from onthedot.channels.channel import Channel
    from onthedot.settings import ChannelSetting
    from onthedot.witness.watching import WitnessMessage

__all__ = ["witness"]


def witness(
    every: Annotated[str, typer.Option(metavar="DURATION", help="How often all slots are checked")] = "30s",
    reach: Annotated[str, typer.Option(metavar="DURATION", help="How far back slots are checked")] = "1d",
    late: Annotated[
        str, typer.Option(metavar="DURATION", help="How long due runs may wait before that is reported")
    ] = "1m",
    alert_url: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="POST each alert to this URL as JSON; repeatable")
    ] = None,
    alert_command: Annotated[
        list[str] | None,
        typer.Option(metavar="COMMAND", help="Run this for each alert, with the alert as JSON on stdin; repeatable"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Serve /healthz and /metrics on this port [default: METRICS_PORT, or none]"
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on [default: 127.0.0.1]")] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once; exit with code 1 if something is wrong")] = False,
    as_json: AsJson = False,
    store: StoreUrl = None,
    settings: Settings = None,
) -> None:
    """Watch a store from outside: recompute which slots should have fired and compare them with the history.

    Only reads. Alerts if a slot is missing or was decided twice, if due runs wait longer than --late, if no node is
    alive, and if the store can't be read. Pings WITNESS_PING_URL each minute while all is well.
    """
    from onthedot.model.duration import Duration

    found = settings_for(store, settings)
    gaps = [int(Duration.parse(text)) for text in (every, reach, late)]
    if once:
        if not asyncio.run(_look_once(found.store, gaps[1], gaps[2], as_json=as_json)):
            raise typer.Exit(1)
        return
    from onthedot.launcher.witnessing import run_witness
    from onthedot.witness.process import WitnessOrder

    order = WitnessOrder(store=found.store, every=gaps[0], reach=gaps[1], late=gaps[2], ping_url=found.witness_ping_url)
    listen = found.metrics_port if port is None else port
    asyncio.run(
        run_witness(
            found,
            order,
            _channels(found.channels, alert_url or [], alert_command or []),
            partial(_tell, as_json=as_json),
            listen=None if listen is None else (host or found.host, listen),
        )
    )


async def _look_once(url: str, reach: int, late: int, *, as_json: bool) -> bool:
    from onthedot.errors import OnTheDotError
    from onthedot.witness.looking import WitnessFinding, open_witnessed

    seen = None
    try:
        store = await open_witnessed(url)
        try:
            found = await store.alive(late)
            seen, more = await store.slots(reach)
            found += more
        finally:
            await store.close()
    except OnTheDotError as error:
        found = [WitnessFinding(kind="blind", text=f"the store can't be read: {error}")]
    if as_json:
        print_json({"ok": not found, "slots": seen, "findings": found})
        return not found
    for finding in found:
        say(f"{finding.kind}: {finding.text}")
    if seen is not None:
        say(f"{seen.decided:,} of {seen.expected:,} slots of {seen.jobs:,} jobs are decided.")
    return not found


def _channels(named: dict[str, ChannelSetting], urls: list[str], commands: list[str]) -> list[Channel]:
    """Those of the settings, and those that are given."""
    from onthedot.channels.command import CommandChannel
    from onthedot.channels.registry import build_channels
    from onthedot.channels.webhook import WebhookChannel

    found = list(build_channels(named).values())
    found.extend(WebhookChannel(url) for url in urls)
    found.extend(CommandChannel(("sh", "-c", command)) for command in commands)
    return found


def _tell(message: WitnessMessage, *, as_json: bool) -> None:
    if as_json:
        from onthedot.model.decoding import encode_json

        sys.stdout.write(encode_json(message).decode() + "\n")
    else:
        say(f"{message.at} {message.event} {message.kind}: {message.text}")
    sys.stdout.flush()
