"""A channel by an apprise URL, such as slack://… or mailto://…. Apprise is loaded with the first message, in a thread:
that takes most of a second and 50 MB."""

from __future__ import annotations

import asyncio
import importlib.util
from typing import Any

from onthedot.channels.channel import NotDelivered
from onthedot.channels.message import AlertMessage

__all__ = ["INSTALL", "AppriseChannel", "is_installed"]

INSTALL = 'pip install "onthedot[alerts]"'
WITHIN = 60.0


def is_installed() -> bool:
    return importlib.util.find_spec("apprise") is not None


class AppriseChannel:
    kind = "apprise"

    def __init__(self, url: str) -> None:
        self._url = url
        self.place = url.partition("://")[0]
        self._sender: Any = None

    async def send(self, message: AlertMessage) -> None:
        try:
            async with asyncio.timeout(WITHIN):
                delivered = await asyncio.to_thread(self._notify, message)
        except TimeoutError:
            raise NotDelivered(f"{self.place} did not answer within {WITHIN:g} s") from None
        except NotDelivered:
            raise
        except Exception as error:  # whatever a plug-in of apprise raises
            raise NotDelivered(f"{self.place}: {type(error).__name__}") from None
        if not delivered:
            raise NotDelivered(f"{self.place} did not accept the message")

    def _notify(self, message: AlertMessage) -> bool:
        """In a thread of its own."""
        try:
            import apprise
        except ImportError:
            raise NotDelivered(f"apprise is not installed on this node; install it with {INSTALL}") from None
        if self._sender is None:
            sender = apprise.Apprise()
            if not sender.add(self._url):
                raise NotDelivered("apprise does not support its URL")
            self._sender = sender
        _, _, body = message.text.partition("\n")
        kinds = {"recovered": apprise.NotifyType.SUCCESS, "test": apprise.NotifyType.INFO}
        kind = kinds.get(message.event, apprise.NotifyType.FAILURE)
        return bool(self._sender.notify(body=body or message.text, title=message.title, notify_type=kind))
