"""HTTP requests to the server. Retries only requests that are safe to repeat."""

from __future__ import annotations

import io
import os
import random
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from onthedot.client.problems import error_of, is_problem
from onthedot.clock import Clock, SystemClock
from onthedot.errors import NotOnTheDot, SettingsError, Unreachable
from onthedot.model.decoding import dec_hook, encode_json
from onthedot.version import __version__

__all__ = ["Transport"]

T = TypeVar("T")
TRIES = 4
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
IN_ONE = 1 << 18
SENT_AGAIN = (429, 502, 503, 504)
ACCEPTED = "accepted: http:// or https:// with a host, such as http://127.0.0.1:8000"
NO_SUCH_PLACE = (404, 405, 501)  # what a server of another kind says to a path that it does not know


class Transport:
    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout: float = 30.0,
        tries: int = TRIES,
        clock: Clock | None = None,
        ca: str | Path | None = None,
    ) -> None:
        self.url = url.rstrip("/") if "://" in url else f"http://{url.rstrip('/')}"
        self._headers = {"user-agent": f"onthedot-client/{__version__}"}
        if key:
            self._headers["authorization"] = f"Bearer {key}"
        self._timeout = aiohttp.ClientTimeout(total=timeout, connect=min(timeout, 10.0))
        self._tries = tries
        self._clock = clock or SystemClock()
        self._trusted: ssl.SSLContext | bool = True if ca is None else _trusting(ca)
        self._session: aiohttp.ClientSession | None = None

    def local(self, address: str | None) -> str | None:
        """A path that the server gave, without the prefix that `url` has already."""
        return None if address is None else address.removeprefix(urlsplit(self.url).path)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(
        self,
        method: str,
        path: str,
        kind: type[T],
        *,
        query: Mapping[str, Any] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        media: str = "application/json",
        repeatable: bool = False,
    ) -> T:
        """Send a request and decode the response as `kind`. str: the text itself; NoneType: no content.

        `repeatable`: the request is idempotent whatever its method.
        """
        raw = None if body is None else body if isinstance(body, bytes) else encode_json(body)
        sent = {**self._headers, **({"content-type": media} if raw is not None else {}), **(headers or {})}
        again = repeatable or method in ("GET", "HEAD", "PUT", "DELETE") or "idempotency-key" in sent
        wanted = {name: _as_text(value) for name, value in (query or {}).items() if value is not None}
        status, media_type, answer = await self._exchange(method, path, wanted, raw, sent, self._tries if again else 1)
        if 300 <= status < 400 or (status in NO_SUCH_PLACE and not is_problem(answer)):
            raise self._not_ours(status, media_type)
        if status >= 400:
            raise error_of(status, answer)
        if kind is str:
            return answer.decode("utf-8", "replace")  # type: ignore[return-value]
        if kind is type(None):
            return None
        try:
            return msgspec.json.decode(answer, type=kind, dec_hook=dec_hook)
        except msgspec.ValidationError as error:
            raise self._not_ours(status, f"JSON for {path}: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._not_ours(status, media_type) from None

    def _not_ours(self, status: int, what: str) -> NotOnTheDot:
        got = f"{status} {what}".rstrip()
        return NotOnTheDot(f"{self.url} did not answer like an On the Dot server (got {got})")

    async def _exchange(
        self, method: str, path: str, query: dict[str, str], raw: bytes | None, headers: dict[str, str], tries: int
    ) -> tuple[int, str, bytes]:
        pause = FIRST_PAUSE
        for left in range(tries - 1, -1, -1):
            try:
                async with self._opened().request(
                    method,
                    self.url + path,
                    params=query or None,
                    data=_payload(raw),
                    headers=headers,
                    allow_redirects=False,
                ) as response:
                    status, answer = response.status, await response.read()
                    media_type = response.headers.get("content-type", "").partition(";")[0].strip()[:100]
                    asked = _seconds(response.headers.get("retry-after"))
            except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError):
                raise Unreachable(f"{self.url!r} is not a valid server URL; {ACCEPTED}") from None
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                if not left:
                    raise Unreachable(f"can't reach {self.url}: {_reason(error)}") from None
                asked = None
            except ValueError as error:
                raise Unreachable(f"{self.url!r} is not a valid server URL ({error}); {ACCEPTED}") from None
            else:
                if status not in SENT_AGAIN or not left:
                    return status, media_type, answer
            await self._clock.sleep(min(LONGEST_PAUSE, asked if asked is not None else pause * random.uniform(0.5, 1)))
            pause *= 2
        raise AssertionError("the last attempt returns or raises")

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            connector = aiohttp.TCPConnector(limit=100, ssl=self._trusted)
            self._session = aiohttp.ClientSession(timeout=self._timeout, connector=connector)
        return self._session


def _trusting(ca: str | Path) -> ssl.SSLContext:
    """Only these authorities, none of the system's."""
    try:
        return ssl.create_default_context(cafile=str(ca))
    except (OSError, ValueError) as error:
        raise SettingsError(f"the CA file {ca} can't be read: {error}") from None


def _payload(raw: bytes | None) -> bytes | io.BytesIO | None:
    """Send a large body in chunks: in one piece it would block the caller's event loop."""
    return io.BytesIO(raw) if raw is not None and len(raw) > IN_ONE else raw


def _as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header is not None else None
    except ValueError:
        return None


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "request timed out"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
        return (
            f"its certificate is not trusted ({why}); name a private authority with --ca, ONTHEDOT_CA or Client(ca=…)"
        )
    if isinstance(error, aiohttp.ClientSSLError):
        return f"TLS failed ({getattr(error.os_error, 'reason', None) or error.os_error}); does the server use TLS?"
    if isinstance(error, aiohttp.ClientConnectorError):
        if isinstance(error.os_error, socket.gaierror):  # its numbers are not those of the system's errors
            return f"the host name can't be resolved ({error.os_error.strerror})"
        number = error.os_error.errno
        return os.strerror(number).lower() if number else str(error.os_error)
    return str(error) or type(error).__name__
