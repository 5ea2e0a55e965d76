"""Webhooks: one HTTP request per attempt, through the egress gate.

- HTTP/1.1 over kept connections of our own (`http1`): no cookies, no redirects, no proxies from
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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_address
from typing import Self

from onthedot.clock import SystemClock
from onthedot.descriptors import for_sending, limit
from onthedot.errors import Invalid
from onthedot.model.body_template import MissingParam
from onthedot.model.run import Outcome
from onthedot.model.secret_text import masked_url
from onthedot.model.targets import WebhookTarget
from onthedot.model.webhook_url import cut_url
from onthedot.settings import CertificateSetting
from onthedot.targets.contract import Call, Done, Kind, Profile, TargetDiagnosis
from onthedot.targets.setup import KindSetup
from onthedot.targets.webhook.certificates import diagnoses, names_for, refusal
from onthedot.targets.webhook.certified_pools import CertifiedPools
from onthedot.targets.webhook.destination import Destination, origin_text, place_of, split_url
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.http1.connections import ConnectionPool
from onthedot.targets.webhook.http1.connector import Connector
from onthedot.targets.webhook.http1.exchange import Exchange, failed, refused
from onthedot.targets.webhook.own_ports import OwnPort
from onthedot.targets.webhook.url import ACCEPTED, is_localhost
from onthedot.version import __version__

__all__ = ["Webhooks"]

ALLOWED = "a public address, or an address listed in EGRESS_ALLOW"
LOOPBACK = ip_address("127.0.0.1")


class Webhooks(Kind):
    """The kind `webhook`. `tls` says whom to trust; the system's authorities if it is not given."""

    spec = WebhookTarget

    def __init__(
        self,
        rule: EgressRule,
        *,
        version: str = __version__,
        connections: int | None = None,
        tls: ssl.SSLContext | None = None,
        certificates: Mapping[str, CertificateSetting] | None = None,
    ) -> None:
        """`connections`: no more than so many are open at once. `certificates`: what jobs may name, by name."""
        self.profile = Profile(at_most=connections, has_destinations=True)
        self._rule = rule
        self._agent = f"onthedot/{version}"
        self._connections = connections
        self._tls = tls
        self._certificates = dict(certificates or {})
        self._certified: CertifiedPools | None = None
        self._connector: Connector | None = None
        self._pool: ConnectionPool | None = None
        self._place = lru_cache(maxsize=4096)(self._judged_place)
        self._refusal = lru_cache(maxsize=4096)(self._refusal_of)

    @classmethod
    def of(cls, setup: KindSetup) -> Webhooks:
        connections = for_sending(limit(), setup.worker_processes)
        return cls(setup.egress, connections=connections, certificates=setup.settings.certificates)

    def capabilities(self) -> list[str]:
        """Before it is entered nobody has read the files; what can't be read is not offered."""
        names = sorted(self._certificates) if self._certified is None else self._certified.names
        return [self.tag, *(f"{self.tag}:{name}" for name in names)]

    async def diagnose(self) -> Sequence[TargetDiagnosis]:
        return diagnoses(self._certificates, SystemClock().now_ms())

    def check(self, target: WebhookTarget, tenant: int = 1) -> None:
        try:
            why = self._refusal(split_url(target.url)[0])
        except ValueError as error:
            raise Invalid.one("target.url", str(error), given=masked_url(target.url)[:200], accepted=ACCEPTED) from None
        if why is not None:
            raise Invalid.one(
                "target.url", f"is not allowed: {why}", given=masked_url(target.url)[:200], accepted=ALLOWED
            )
        if target.certificate is not None:
            self._check_certificate(target, target.certificate, tenant)

    def _check_certificate(self, target: WebhookTarget, name: str, tenant: int) -> None:
        known = names_for(self._certificates, tenant)
        if name not in known:
            accepted = ", ".join(known) or "none (no certificates are configured)"
            raise Invalid.one("target.certificate", "unknown certificate", given=name, accepted=accepted)
        why = self._not_for(target, name, tenant)
        if why is not None:
            accepted = "a certificate for the host of this URL"
            raise Invalid.one("target.certificate", f"is not allowed: {why}", given=name, accepted=accepted)

    def _not_for(self, target: WebhookTarget, name: str, tenant: int) -> str | None:
        _, host, port = place_of(split_url(target.url)[0]).origin
        return refusal(self._certificates[name], host, port, tenant)

    def _refusal_of(self, named: str) -> str | None:
        """Why no job may call this place. Kept: the same few receivers are named again and again."""
        place = place_of(named)
        host, address = place.origin[1], place.address
        if address is None and is_localhost(host):
            address = LOOPBACK
        return None if address is None else self._rule.refusal(address, host, place.origin[2])

    def trust(self, *, is_open: bool, own_ports: frozenset[OwnPort]) -> None:
        """How far the installation is trusted now, and where it listens itself: goes for the next call, kept
        connections included."""
        rule = replace(self._rule, allow_private=is_open, own_ports=own_ports)
        if rule == self._rule:
            return
        self._rule = rule
        self._place.cache_clear()
        self._refusal.cache_clear()
        if self._connector is not None and self._pool is not None and self._certified is not None:
            self._connector.obey(rule)
            for pool in (self._pool, *self._certified.all()):
                pool.drop_idle()

    def destination(self, target: WebhookTarget) -> str | None:
        """Scheme, host and port. Nearly all URLs have a path: then what comes before it names the place."""
        url = target.url
        cut = url.find("/", 8)
        return _origin_of(url[:cut] if cut > 0 else url)

    def answered(self, outcome: Outcome) -> bool | None:
        """5xx and 429 (it is overloaded, or says that we ask too much) count against a receiver like no answer at all;
        whatever else it answers, it is there."""
        status = outcome.detail.get("status_code")
        if status is None:
            return super().answered(outcome)
        return not (status >= 500 or status == 429)

    def start(self, call: Call, at: float, done: Done) -> Exchange:
        """Without a task that waits. Never raises: what nobody foresaw is a failed try."""
        target = call.target
        assert isinstance(target, WebhookTarget)
        assert self._pool is not None, "not entered"
        pool, why = (self._pool, None) if target.certificate is None else self._pool_for(target, call.tenant)
        exchange = Exchange(pool, call, at, done)
        if why is not None:
            exchange.answer_soon(refused(why))
            return exchange
        try:
            named, path = split_url(target.url)
            place, refusal = self._place(named)
        except ValueError as error:
            exchange.answer_soon(refused(f"the URL {error}"))
            return exchange
        if refusal is not None:
            exchange.answer_soon(refused(refusal))
            return exchange
        try:
            exchange.begin(target, place, path, agent=self._agent)
        except MissingParam as error:  # for good: the run's params do not change
            exchange.answer_soon(Outcome(kind="error", error=f"the body can't be filled in: {error}"))
        except Exception as error:
            exchange.answer_soon(failed(error))
        return exchange

    def _pool_for(self, target: WebhookTarget, tenant: int) -> tuple[ConnectionPool, str | None]:
        """Whose connections show its certificate; or why it may not be sent. The settings may have changed since the
        job was made, and no other check counts: what is refused here never leaves."""
        assert self._pool is not None, "not entered"
        assert target.certificate is not None
        name = target.certificate
        pool = None if self._certified is None else self._certified.get(name)
        if pool is None:
            return self._pool, f"certificate {name!r} not found on this node"
        try:
            why = self._not_for(target, name, tenant)
        except ValueError as error:
            return self._pool, f"the URL {error}"
        return pool, None if why is None else f"certificate {name!r} is not allowed: {why}"

    def _judged_place(self, named: str) -> tuple[Destination, str | None]:
        """With why the rule refuses the address that it spells out."""
        place = place_of(named)
        return place, None if place.address is None else self._rule.refusal(place.address, None, place.origin[2])

    async def __aenter__(self) -> Self:
        self._connector = Connector(self._rule)
        self._pool = self._made_pool(self._tls or _trusted())
        self._certified = CertifiedPools(self._certificates, self._made_pool)
        await self._certified.open()
        return self

    def _made_pool(self, tls: ssl.SSLContext) -> ConnectionPool:
        assert self._connector is not None
        return ConnectionPool(self._connector, tls, self._connections)

    async def __aexit__(self, *exc: object) -> None:
        if self._pool is not None and self._connector is not None:
            if self._certified is not None:
                await self._certified.close()
            await self._pool.close()
            self._connector.close()
            self._pool = self._connector = self._certified = None


@lru_cache(maxsize=4096)
def _origin_of(written: str) -> str | None:
    try:
        return origin_text(cut_url(written)[0])
    except ValueError:  # it is refused when it is called
        return None


@lru_cache(maxsize=1)
def _trusted() -> ssl.SSLContext:
    """The system's authorities. Reading them takes some ten milliseconds: once, and before the first send."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
