"""How the witness is heard: through the channels of alerts, and by a ping each minute while all is well."""

from __future__ import annotations

import asyncio
import urllib.request
from collections.abc import Sequence

from onthedot.channels.channel import Channel, NotDelivered
from onthedot.channels.message import AlertMessage
from onthedot.telemetry import emit
from onthedot.witness.watching import WitnessMessage

__all__ = ["ping", "send"]

WITHIN = 10.0


async def send(message: WitnessMessage, channels: Sequence[Channel]) -> bool:
    """To all of them at once; what fails is logged. Whether each has taken it."""
    told = AlertMessage(
        event=message.event,
        condition=message.kind,
        title=f"Witness: {message.kind} ({message.event})",
        text=message.text,
        job=None,
        reason=message.text,
        cause=None,
        run_id=None,
        output=None,
        link=None,
        since=message.at,
        count=1,
        times=1,
        incidents=[],
    )
    return all(await asyncio.gather(*(_sent(channel, told) for channel in channels)))


async def _sent(channel: Channel, message: AlertMessage) -> bool:
    try:
        await channel.send(message)
    except (NotDelivered, OSError) as error:
        emit("witness.unheard", error=str(error))
        return False
    return True


async def ping(url: str) -> bool:
    try:
        await asyncio.to_thread(_get, url)
    except (OSError, ValueError) as error:
        emit("witness.unheard", error=str(error))
        return False
    return True


def _get(url: str) -> None:
    with urllib.request.urlopen(url, timeout=WITHIN):  # noqa: S310  # the setting allows http and https only
        pass
