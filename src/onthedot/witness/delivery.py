"""How the witness is heard: through the channels of alerts, and by a ping each minute while all is well."""

from __future__ import annotations

import asyncio
import urllib.request

from onthedot.channels.channel import Channel, NotDelivered
from onthedot.channels.message import AlertMessage
from onthedot.clock import Clock
from onthedot.telemetry import emit
from onthedot.witness.watching import WitnessMessage

__all__ = ["deliver", "ping"]

WITHIN = 10.0
AGAIN_AFTER = (5.0, 15.0, 60.0)
"""A witness keeps nothing: what can't be delivered in this time is told again as long as it lasts, or is lost."""


async def deliver(message: WitnessMessage, channel: Channel, clock: Clock) -> bool:
    """Try four times; what fails is logged. Whether the channel has taken it."""
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
    for pause in (*AGAIN_AFTER, None):
        try:
            await channel.send(told)
        except (NotDelivered, OSError) as error:
            emit("witness.unheard", error=str(error), again_in=pause)
            if pause is None:
                break
            await clock.sleep(pause)
        else:
            return True
    return False


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
