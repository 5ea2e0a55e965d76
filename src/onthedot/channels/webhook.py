"""A channel that posts JSON to an http(s) URL. Any 2xx is a yes; redirects are not followed."""

from __future__ import annotations

from urllib.parse import urlsplit

import aiohttp

from onthedot.channels.channel import NotDelivered
from onthedot.channels.message import AlertMessage, message_json
from onthedot.model.connection_error import unreached_words
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
        except aiohttp.ClientConnectorDNSError as error:
            raise NotDelivered(f"can't resolve the host name: {error.host}: {error.os_error}") from None
        except aiohttp.ClientSSLError as error:
            raise NotDelivered(f"TLS handshake failed: {_tls_words(error)} ({error.host}, port {error.port})") from None
        except aiohttp.ClientConnectorError as error:
            raise NotDelivered(f"can't connect: {unreached_words(error.os_error, error.host, error.port)}") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotDelivered(f"{self.place}: {type(error).__name__}") from None
        if not 200 <= status < 300:
            raise NotDelivered(f"{self.place} answered {status}")


def _tls_words(error: aiohttp.ClientSSLError) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):  # it has no `os_error`
        why = error.certificate_error
        return f"the certificate is not trusted: {getattr(why, 'verify_message', '') or why}"
    return getattr(error.os_error, "reason", None) or str(error.os_error)
