"""`onthedot witness`: an independent reader that alerts when firings are missing or nobody is there."""

from __future__ import annotations

import asyncio
import sys
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

ALIVE_EVERY = 5.0
PING_EVERY = 60.0


def witness(
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="How often all slots are checked [default: 30s]")
    ] = "30s",
    reach: Annotated[str, typer.Option(metavar="DURATION", help="How far back slots are checked [default: 1d]")] = "1d",
    late: Annotated[str, typer.Option(metavar="DURATION", help="How long due runs may stand [default: 1m]")] = "1m",
    alert_url: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="POST each alert to this URL as JSON; repeatable")
    ] = None,
    alert_command: Annotated[
        list[str] | None,
        typer.Option(metavar="COMMAND", help="Run this for each alert, with the alert as JSON on stdin; repeatable"),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Look once; exit with code 1 if something is wrong")] = False,
    as_json: AsJson = False,
    store: StoreUrl = None,
    settings: Settings = None,
) -> None:
    """Watch a store from outside: recompute which slots should have fired and compare them with the history.

    Only reads. Alerts if a slot is missing or was decided twice, if due runs stand, if no node is alive, and if the
    store can't be read. Pings WITNESS_PING_URL each minute while all is well.
    """
    from onthedot.model.duration import Duration

    found = settings_for(store, settings)
    gaps = [int(Duration.parse(text)) for text in (every, reach, late)]
    if once:
        if not asyncio.run(_look_once(found.store, gaps[1], gaps[2], as_json=as_json)):
            raise typer.Exit(1)
        return
    asyncio.run(
        _watch(
            found.store,
            (gaps[0] / 1000, gaps[1], gaps[2]),
            _channels(found.channels, alert_url or [], alert_command or []),
            found.witness_ping_url,
            as_json=as_json,
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


async def _watch(
    url: str,
    gaps: tuple[float, int, int],
    channels: list[Channel],
    ping_url: str | None,
    *,
    as_json: bool,
) -> None:
    from onthedot.clock import SystemClock
    from onthedot.errors import OnTheDotError
    from onthedot.witness.delivery import ping, send
    from onthedot.witness.looking import open_witnessed
    from onthedot.witness.watching import Watch

    clock, loop = SystemClock(), asyncio.get_running_loop()
    every, reach, late = gaps
    watch, store, sending = Watch(clock.now_ms()), None, set[asyncio.Task[object]]()
    slots_at, ping_at = loop.time(), loop.time()
    while True:
        try:
            store = store or await open_witnessed(url)
            messages = watch.saw(clock.now_ms(), ("silent", "standing"), await store.alive(late))
            if loop.time() >= slots_at:
                slots_at = loop.time() + every
                _, found = await store.slots(reach)
                messages += watch.saw(clock.now_ms(), ("missing", "twice"), found)
        except (OnTheDotError, OSError) as error:
            if watch.blind_since is None:
                say(f"can't look: {error}", to=sys.stderr)
            messages = watch.saw_nothing(clock.now_ms(), str(error))
            if store is not None:
                await store.close()
            store = None
        for message in messages:
            _tell(message, as_json=as_json)
            task: asyncio.Task[object] = asyncio.ensure_future(send(message, channels))
            sending.add(task)
            task.add_done_callback(sending.discard)
        if ping_url is not None and watch.well and loop.time() >= ping_at:
            ping_at = loop.time() + PING_EVERY
            pinged: asyncio.Task[object] = asyncio.ensure_future(ping(ping_url))
            sending.add(pinged)
            pinged.add_done_callback(sending.discard)
        await clock.sleep(min(every, ALIVE_EVERY))


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
