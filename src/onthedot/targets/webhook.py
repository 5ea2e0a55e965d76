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

import ssl
from functools import lru_cache
from ipaddress import ip_address
from typing import Self

from onthedot.clock import Clock, SystemClock
from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.target import WebhookTarget
from onthedot.targets.answer import judge, snippet
from onthedot.targets.call import Call
from onthedot.targets.connection import Unanswered
from onthedot.targets.egress import EgressRule
from onthedot.targets.gate import EgressRefused, Gate
from onthedot.targets.pool import Pool
from onthedot.targets.request import request_of
from onthedot.targets.route import Place, place_of, split_url
from onthedot.targets.url import ACCEPTED, is_localhost

__all__ = ["Webhooks"]

ALLOWED = "a public address, or one that EGRESS_ALLOW lists"
LOOPBACK = ip_address("127.0.0.1")


class Webhooks:
    """The kind `webhook`. `tls` says whom to trust; the system's authorities if it is not given."""

    def __init__(
        self, rule: EgressRule, *, version: str, clock: Clock | None = None, tls: ssl.SSLContext | None = None
    ) -> None:
        self._rule = rule
        self._agent = f"onthedot/{version}"
        self._clock = clock or SystemClock()
        self._tls = tls
        self._gate: Gate | None = None
        self._pool: Pool | None = None
        self._place = lru_cache(maxsize=4096)(self._judged_place)

    @property
    def offers(self) -> list[str]:
        return ["webhook"]

    def check(self, target: WebhookTarget) -> None:
        try:
            place = place_of(split_url(target.url)[0])
        except ValueError as error:
            raise Invalid.one("target.url", str(error), given=target.url[:200], accepted=ACCEPTED) from None
        host, address = place.origin[1], place.address
        if address is None and is_localhost(host):
            address = LOOPBACK
        why = None if address is None else self._rule.refusal(address, host)
        if why is not None:
            raise Invalid.one("target.url", f"may not be called: {why}", given=target.url[:200], accepted=ALLOWED)

    async def send(self, call: Call) -> Outcome:
        target, pool = call.target, self._pool
        assert isinstance(target, WebhookTarget)
        assert pool is not None, "not entered"
        try:
            named, path = split_url(target.url)
            place, refusal = self._place(named)
        except ValueError as error:
            return Outcome(kind="refused", error=f"the URL {error}")
        if refusal is not None:
            return Outcome(kind="refused", error=refusal)
        try:
            request = request_of(call, target, place, path, agent=self._agent, now_ms=self._clock.now_ms())
            connection = pool.take(place.origin) or await pool.connect(
                place.origin, is_address=place.address is not None
            )
            try:
                answer = await connection.ask(request, is_head=target.method == "HEAD")
            except BaseException:  # cancelled, mostly: nobody waits for this answer any more
                connection.abort()
                raise
        except EgressRefused as error:
            return Outcome(kind="refused", error=str(error))
        except (Unanswered, ValueError) as error:
            return Outcome(kind="error", retryable=True, error=str(error)[:1000])
        pool.put(connection)
        return judge(
            answer.status,
            snippet(answer.body),
            retry_after=answer.retry_after,
            location=answer.location,
            now_ms=0 if answer.retry_after is None else self._clock.now_ms(),
        )

    def _judged_place(self, named: str) -> tuple[Place, str | None]:
        """With why the rule refuses the address that it spells out."""
        place = place_of(named)
        return place, None if place.address is None else self._rule.refusal(place.address)

    async def __aenter__(self) -> Self:
        self._gate = Gate(self._rule)
        self._pool = Pool(self._gate, self._tls or _trusted())
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
