"""A channel that posts JSON to an http(s) URL. Any 2xx is a yes; redirects are not followed."""

from __future__ import annotations

from urllib.parse import urlsplit

import aiohttp

from onthedot.channels.channel import NotDelivered
from onthedot.channels.message import AlertMessage, message_json
from onthedot.version import __version__

__all__ = ["WebhookChannel"]

WITHIN = 10.0
"""Seconds for one message."""


class WebhookChannel:
    kind = "webhook"

    def __init__(self, url: str) -> None:
        self._url = url
        self.place = urlsplit(url).netloc.rpartition("@")[2]

    async def send(self, message: AlertMessage) -> None:
        headers = {"content-type": "application/json", "user-agent": f"onthedot/{__version__}"}
        timeout = aiohttp.ClientTimeout(total=WITHIN)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(self._url, data=message_json(message), headers=headers, allow_redirects=False) as response,
            ):
                status = response.status
        except TimeoutError:
            raise NotDelivered(f"{self.place} did not answer within {WITHIN:g} s") from None
        except aiohttp.ClientConnectorError as error:
            why = error.os_error.strerror or "unknown host"
            raise NotDelivered(f"can't connect to {self.place}: {why}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotDelivered(f"{self.place}: {type(error).__name__}") from None
        if not 200 <= status < 300:
            raise NotDelivered(f"{self.place} answered {status}")
