"""What a channel is: something that takes a message, or says why it did not."""

from __future__ import annotations

from typing import Protocol

from onthedot.channels.message import AlertMessage

__all__ = ["Channel", "NotDelivered"]


class NotDelivered(Exception):
    """The message did not arrive, or it is not known that it did. No secret of the channel is in the text."""


class Channel(Protocol):
    kind: str
    place: str  # host, program or service: what can be shown

    async def send(self, message: AlertMessage) -> None:
        """Raises NotDelivered, within `SEND_WITHIN` seconds."""
        ...
