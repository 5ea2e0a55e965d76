"""Webhooks: one HTTP request per attempt, through the egress gate.

- One session per node: pooled connections, no cookies, no redirects, no proxies from the environment.
- Nothing is ever sent twice behind the engine's back: aiohttp repeats idempotent requests when a kept connection turns
  out dead, which would break at-most-once, so that is off. Idle connections are kept for 4 s, less than the 5 s after
  which common servers hang up, so that the race is rare.
- The status line is the verdict. Of the body 2 KB are kept; it is read for at most a second and 64 KB so that the
  connection can be used again, and if it breaks off or drips after that, the verdict stands.
- Everything that keeps an answer from coming is tried again: look-up, connection, TLS (certificates are renewed, and
  load balancers restart), time-out. Only the egress rule's refusal is final.
- A webhook writes no log: its outcome holds status and answer. A log row for each would double the store's work.

Measured with 200 at once against `onthedot echo --quiet` (CPython 3.11, uvloop, two cores shared with other work):
3,600 to 4,700 sends per second of CPU through `Targets.send`; in wall time 1,100 to 1,700/s at a load of 6 to 7, and
3,200 to 5,500/s for this class alone at a load of about 1.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from typing import Self

import aiohttp

from onthedot.clock import Clock, SystemClock
from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.target import WebhookTarget
from onthedot.targets.answer import SNIPPET, judge, snippet
from onthedot.targets.call import Call
from onthedot.targets.egress import EgressRule
from onthedot.targets.gate import EgressRefused, guarded_connector
from onthedot.targets.request import body_of, headers_of
from onthedot.targets.url import ACCEPTED, is_localhost, read_url

__all__ = ["Webhooks"]

ALLOWED = "a public address, or one that EGRESS_ALLOW lists"
IDLE = 4.0
BODY_WAIT = 1.0
BODY_LIMIT = 64 * 1024
LOOPBACK = ip_address("127.0.0.1")


class Webhooks:
    """The kind `webhook`."""

    def __init__(self, rule: EgressRule, *, version: str, clock: Clock | None = None) -> None:
        self._rule = rule
        self._agent = f"onthedot/{version}"
        self._clock = clock or SystemClock()
        self._session: aiohttp.ClientSession | None = None

    @property
    def offers(self) -> list[str]:
        return ["webhook"]

    def check(self, target: WebhookTarget) -> None:
        try:
            url, address = read_url(target.url)
        except ValueError as error:
            raise Invalid.one("target.url", str(error), given=target.url[:200], accepted=ACCEPTED) from None
        if address is None and is_localhost(str(url.host)):
            address = LOOPBACK
        why = None if address is None else self._rule.refusal(address, url.host)
        if why is not None:
            raise Invalid.one("target.url", f"may not be called: {why}", given=target.url[:200], accepted=ALLOWED)

    async def send(self, call: Call) -> Outcome:
        target = call.target
        assert isinstance(target, WebhookTarget)
        assert self._session is not None, "not entered"
        try:
            url, address = read_url(target.url)
        except ValueError as error:
            return Outcome(kind="refused", error=f"the URL {error}")
        if address is not None and (why := self._rule.refusal(address)):
            return Outcome(kind="refused", error=why)
        body, content_type = body_of(target.body)
        headers = headers_of(call, target, body, content_type, agent=self._agent, now_ms=self._clock.now_ms())
        try:
            async with self._session.request(
                target.method,
                url,
                data=body or None,
                headers=headers,
                allow_redirects=False,
                skip_auto_headers=("content-type",),
            ) as answer:
                text = await self._read(answer)
                return judge(
                    answer.status,
                    text,
                    retry_after=answer.headers.get("retry-after"),
                    location=answer.headers.get("location"),
                    now_ms=self._clock.now_ms(),
                )
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return _failed(error)

    async def _read(self, answer: aiohttp.ClientResponse) -> str:
        content = answer.content
        if content.is_eof() and content.total_bytes <= SNIPPET:  # the usual case: it came with the headers
            return snippet(content.read_nowait())
        kept, size = b"", 0
        try:
            async with asyncio.timeout(BODY_WAIT):
                while size <= BODY_LIMIT and (portion := await content.readany()):
                    size += len(portion)
                    kept += portion[: SNIPPET - len(kept)]
        except (aiohttp.ClientError, TimeoutError, OSError):
            pass
        if not content.at_eof():
            answer.close()
        return snippet(kept)

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=guarded_connector(self._rule, idle=IDLE),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            trust_env=False,
            auto_decompress=False,  # 64 KB that unpack to gigabytes stay 64 KB
            raise_for_status=False,
        )
        self._session._retry_connection = False  # no public switch; a test watches it
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def _failed(error: Exception) -> Outcome:
    """An attempt without an answer."""
    cause = getattr(error, "os_error", None) or error
    if isinstance(cause, EgressRefused):
        return Outcome(kind="refused", error=str(cause))
    if isinstance(error, TimeoutError):
        return Outcome(kind="timeout", retryable=True, error="no answer in time")
    match error:
        case aiohttp.ClientConnectorDNSError():
            what = "the host's name can't be resolved"
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            what = "no TLS connection"
        case aiohttp.ClientConnectorError():
            what = "can't connect"
        case aiohttp.ServerDisconnectedError():
            what = "the receiver closed the connection without an answer"
        case aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            what = "the answer is not HTTP"
        case _:
            what = "the connection broke"
    return Outcome(kind="error", retryable=True, error=f"{what}: {str(error) or type(error).__name__}"[:1000])
