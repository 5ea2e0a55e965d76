"""Webhooks: one HTTP request per attempt, through the egress gate.

- HTTP/1.1 over kept connections of our own (`pool`, `connection`, `reading`): no cookies, no redirects, no proxies from
  the environment, nothing unpacked.
- Nothing is ever sent twice behind the engine's back: a request whose connection breaks is a failed try, also when the
  connection was kept from before and turns out dead. Sending it again would break at-most-once.
- The status line is the verdict. Of the body 2 KB are kept; it is read for at most a second and 64 KB so that the
  connection can be used again, and if it breaks off or drips after that, the verdict stands.
- Everything that keeps an answer from coming is tried again: look-up, connection, TLS (certificates are renewed, and
  load balancers restart), time-out. Only the egress rule's refusal is final.
- A webhook writes no log: its outcome holds status and answer. A log row for each would double the store's work.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_address
from typing import Self

from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.secret_text import masked_url
from onthedot.model.targets import WebhookTarget
from onthedot.targets.contract import Call, NotBegun
from onthedot.targets.webhook.destination import Destination, place_of, split_url
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.http1.connections import ConnectionPool
from onthedot.targets.webhook.http1.connector import Connector
from onthedot.targets.webhook.http1.exchange import Sending, failed, refused
from onthedot.targets.webhook.own_ports import OwnPort
from onthedot.targets.webhook.request import request_of
from onthedot.targets.webhook.url import ACCEPTED, is_localhost

__all__ = ["Webhooks"]

ALLOWED = "a public address, or one that EGRESS_ALLOW lists"
LOOPBACK = ip_address("127.0.0.1")


class Webhooks:
    """The kind `webhook`. `tls` says whom to trust; the system's authorities if it is not given."""

    def __init__(
        self, rule: EgressRule, *, version: str, connections: int | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        """`connections`: no more than so many are open at once."""
        self._rule = rule
        self._agent = f"onthedot/{version}"
        self._connections = connections
        self._tls = tls
        self._gate: Connector | None = None
        self._pool: ConnectionPool | None = None
        self._place = lru_cache(maxsize=4096)(self._judged_place)
        self._refusal = lru_cache(maxsize=4096)(self._refusal_of)

    @property
    def offers(self) -> list[str]:
        return ["webhook"]

    def check(self, target: WebhookTarget, tenant: int = 1) -> None:
        try:
            why = self._refusal(split_url(target.url)[0])
        except ValueError as error:
            raise Invalid.one("target.url", str(error), given=masked_url(target.url)[:200], accepted=ACCEPTED) from None
        if why is not None:
            raise Invalid.one(
                "target.url", f"may not be called: {why}", given=masked_url(target.url)[:200], accepted=ALLOWED
            )

    def _refusal_of(self, named: str) -> str | None:
        """Why no job may call this place. Kept: the same few receivers are named again and again."""
        place = place_of(named)
        host, address = place.origin[1], place.address
        if address is None and is_localhost(host):
            address = LOOPBACK
        return None if address is None else self._rule.refusal(address, host, place.origin[2])

    def trust(self, *, is_open: bool, doors: frozenset[OwnPort]) -> None:
        """How far the installation is trusted now, and where it listens itself: goes for the next call, kept
        connections included."""
        rule = replace(self._rule, allow_private=is_open, own_doors=doors)
        if rule == self._rule:
            return
        self._rule = rule
        self._place.cache_clear()
        self._refusal.cache_clear()
        if self._gate is not None and self._pool is not None:
            self._gate.obey(rule)
            self._pool.drop_idle()

    async def send(self, call: Call) -> Outcome:
        answer: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        withdraw = self.hand_over(call, lambda outcome: None if answer.done() else answer.set_result(outcome))
        try:
            outcome = await answer
        except BaseException:  # cancelled: nobody waits for this answer any more
            withdraw()
            raise
        if outcome is None:
            raise NotBegun
        return outcome

    def hand_over(self, call: Call, ended: Callable[[Outcome | None], None]) -> Callable[[], bool | None]:
        """Without a task that waits. Never raises: what nobody foresaw is a failed try."""
        target = call.target
        assert isinstance(target, WebhookTarget)
        assert self._pool is not None, "not entered"
        sending = Sending(self._pool, call, ended)
        try:
            named, path = split_url(target.url)
            place, refusal = self._place(named)
        except ValueError as error:
            sending.end_soon(refused(f"the URL {error}"))
            return sending.withdraw
        if refusal is not None:
            sending.end_soon(refused(refusal))
            return sending.withdraw
        try:
            request = request_of(call, target, place, path, agent=self._agent, now_ms=call.now_ms())
            sending.begin(place, request, is_head=target.method == "HEAD")
        except Exception as error:
            sending.end_soon(failed(error))
        return sending.withdraw

    def _judged_place(self, named: str) -> tuple[Destination, str | None]:
        """With why the rule refuses the address that it spells out."""
        place = place_of(named)
        return place, None if place.address is None else self._rule.refusal(place.address, None, place.origin[2])

    async def __aenter__(self) -> Self:
        self._gate = Connector(self._rule)
        self._pool = ConnectionPool(self._gate, self._tls or _trusted(), self._connections)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._pool is not None and self._gate is not None:
            await self._pool.close()
            self._gate.close()
            self._pool = self._gate = None


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """The system's authorities. Reading them takes some ten milliseconds: once, and before the first send."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
