"""Queues: a run publishes one message, and is done when the broker has confirmed it.

The message has the run's id, in every attempt. Where a confirmation is lost, the attempt is repeated, and the same
message may be there twice: with the same id, by which JetStream and FIFO queues of SQS drop the second one themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self

from onthedot.brokers.clients import CLIENTS, BrokerClient
from onthedot.brokers.link import CLOSE_WITHIN, CONNECT_WITHIN, BrokerLink, NotAllowed, reason
from onthedot.brokers.publisher import NobodyTakesIt, PublishFailed
from onthedot.errors import Invalid, NotAvailable
from onthedot.model.run import Outcome
from onthedot.model.targets import QueueTarget
from onthedot.settings import BrokerSetting
from onthedot.targets.contract import NOT_BEGUN, Call, Ended, Profile, TargetDiagnosis
from onthedot.targets.coroutine import CoroutineKind
from onthedot.targets.queue.message import compose
from onthedot.targets.registry import names
from onthedot.targets.setup import KindSetup

__all__ = ["CONFIRMED_WITHIN", "Queues"]

CONFIRMED_WITHIN = 10.0
"""Seconds that a message of a job without a timeout waits: one that hangs must not keep its slot forever."""


class Queues(CoroutineKind):
    """The kind `queue`."""

    spec = QueueTarget

    def __init__(self, brokers: Mapping[str, BrokerSetting]) -> None:
        self.profile = Profile(stop_within=CLOSE_WITHIN, has_destinations=True)
        self._brokers = dict(brokers)
        self._links: dict[str, BrokerLink] = {}

    @classmethod
    def of(cls, setup: KindSetup) -> Queues:
        return cls(setup.settings.brokers)

    def capabilities(self) -> list[str]:
        return [f"queue:{name}" for name, setting in self._brokers.items() if _client(setting).installed]

    def destination(self, target: QueueTarget) -> str | None:
        return target.broker

    def answered(self, outcome: Outcome) -> bool | None:
        """A broker that has no queue for one message may take all others."""
        return True if outcome.detail.get("answered") else super().answered(outcome)

    def check(self, target: QueueTarget, tenant: int = 1) -> None:
        setting = self._brokers.get(target.broker)
        if setting is None:
            known = names(list(self._brokers)) if self._brokers else "no broker is configured: [brokers.NAME] url"
            raise Invalid.one("target.broker", "is not configured on this node", given=target.broker, accepted=known)
        client = _client(setting)
        if not client.installed:
            problem = f"not available: the client for {client.title} is not installed"
            raise NotAvailable.one("target.broker", problem, given=target.broker, accepted=client.install)
        if not client.takes(target.topic):
            problem = f"not valid for {client.title}"
            raise Invalid.one("target.topic", problem, given=target.topic[:200], accepted=client.accepted)
        if target.format == "celery" and not client.celery:
            problem = f"Celery does not use {client.title}"
            raise Invalid.one("target.format", problem, given="celery", accepted="json, cloudevents or raw")
        if client.most_headers is not None and len(target.headers) > client.most_headers:
            problem = f"too many headers for {client.title}"
            raise Invalid.one("target.headers", problem, accepted=f"at most {client.most_headers}")
        if (name := next((name for name in target.headers if name in client.fields), None)) is not None:
            problem = f"is a field of the messages themselves on {client.title}"
            accepted = f"not {', '.join(client.fields)}"
            raise Invalid.one(f"target.headers.{name}", problem, given=name, accepted=accepted)
        if (name := next((name for name in target.headers if not client.takes_header(name)), None)) is not None:
            problem = f"not a valid header name for {client.title}"
            accepted = client.accepted_header
            raise Invalid.one(f"target.headers.{name}", problem, given=name, accepted=accepted)

    async def send(self, call: Call) -> Outcome | Ended:
        target = call.target
        assert isinstance(target, QueueTarget)
        setting = self._brokers.get(target.broker)
        if setting is None or not _client(setting).installed:
            return Outcome(kind="refused", error=f"the broker {target.broker!r} is not available on this node")
        link = self._link(target.broker, setting)
        own_limit = CONFIRMED_WITHIN if call.timeout is None else None
        try:
            async with asyncio.timeout(own_limit):
                confirmed = await link.publish(compose(call, target), call.may_begin)
        except NotAllowed:
            return NOT_BEGUN
        except TimeoutError:
            error = f"broker {target.broker}: it did not confirm the message within {CONFIRMED_WITHIN:g} s"
            return Outcome(kind="timeout", retryable=True, error=error)
        except PublishFailed as failed:
            error = f"broker {target.broker}: {reason(failed, setting)}"
            detail = {"answered": True} if isinstance(failed, NobodyTakesIt) else {}
            return Outcome(kind="error", retryable=failed.retryable, error=error, detail=detail)
        return Outcome(kind="ok", detail={"result": {"broker": target.broker, **confirmed}})

    def _link(self, name: str, setting: BrokerSetting) -> BrokerLink:
        link = self._links.get(name)
        if link is None:
            link = self._links[name] = BrokerLink(name, setting, _client(setting).open())
        return link

    def waiting(self, broker: str) -> int:
        """How many messages a broker has not confirmed yet."""
        link = self._links.get(broker)
        return 0 if link is None else link.waiting

    async def diagnose(self) -> Sequence[TargetDiagnosis]:
        return await asyncio.gather(*(self._diagnosis(name, setting) for name, setting in self._brokers.items()))

    async def _diagnosis(self, name: str, setting: BrokerSetting) -> TargetDiagnosis:
        client = _client(setting)
        found = f"{name}: {client.title} at {setting.address(None).shown}"
        if not client.installed:
            return TargetDiagnosis("broker", f"{found}: its client is not installed", client.install)
        try:
            async with asyncio.timeout(CONNECT_WITHIN):
                publisher = await client.open()(setting, setting.login(), _nobody)
        except TimeoutError:
            why = f"no response within {CONNECT_WITHIN:g} s"
        except Exception as error:
            why = reason(error, setting)
        else:
            with suppress(Exception):
                async with asyncio.timeout(CLOSE_WITHIN):
                    await publisher.close()
            return TargetDiagnosis("broker", f"{found} is reachable, login accepted")
        return TargetDiagnosis(
            "broker",
            f"{found}: {why}",
            f"check that it is running, and that the url and the login of [brokers.{name}] are correct",
        )

    async def __aenter__(self) -> Self:
        """Loads the clients, which takes up to half a second, before the first message is due."""
        for setting in self._brokers.values():
            if _client(setting).installed:
                await asyncio.to_thread(_client(setting).open)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.gather(*(link.close() for link in self._links.values()))
        self._links.clear()


def _client(setting: BrokerSetting) -> BrokerClient:
    return CLIENTS[setting.client]


def _nobody(why: str) -> None:
    """The connection is about to be closed anyway."""
