"""One `[intake.NAME]` on this node: connected, and connected again, until it is stopped; and how it is at present."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from onthedot.brokers.clients import CLIENTS
from onthedot.brokers.link import CONNECT_WITHIN, BrokerLink, reason
from onthedot.brokers.reader import Subscription, TopicReader
from onthedot.clock import Clock
from onthedot.errors import OnTheDotError
from onthedot.intake.apply import CommandApplier
from onthedot.intake.dead_letters import DeadLetterSender
from onthedot.intake.session import BATCH, IntakeSession
from onthedot.model.actor import ChangeActor
from onthedot.service import DEFAULT_TENANT, Service
from onthedot.service.stored_spec import act_as
from onthedot.settings import BrokerSetting, IntakeSetting
from onthedot.telemetry import emit

__all__ = ["Intake", "subscription_of"]

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
CLOSE_WITHIN = 2.0
STOP_WITHIN = 5.0
_log = logging.getLogger("onthedot.intake")


def subscription_of(name: str, setting: IntakeSetting) -> Subscription:
    return Subscription(topic=setting.topic, group=setting.group_of(name), most=2 * BATCH)


class Intake:
    def __init__(
        self, name: str, setting: IntakeSetting, broker: BrokerSetting, service: Service, clock: Clock
    ) -> None:
        self.name, self._setting, self._broker = name, setting, broker
        self._service, self._clock = service, clock
        self._client = CLIENTS[broker.client]
        self._session: IntakeSession | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._problems: dict[str, str] = {"broker": "connecting"}
        self._told_up: bool | None = None

    @property
    def trouble(self) -> str | None:
        """Why no messages are carried out at present; None: they are."""
        return next(iter(self._problems.values()), None)

    def load(self) -> None:
        """The broker's client: that takes up to half a second."""
        self._client.reader()
        self._client.open()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"intake.{self.name}")

    async def stop(self) -> None:
        """What is being written is settled, if that does not take long. Nobody waits for what is away."""
        self._stopping.set()
        if self._session is not None:
            self._session.stop()
        if self._task is None:
            return
        await asyncio.wait([self._task], timeout=0 if self._problems else STOP_WITHIN)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        act_as(ChangeActor(kind="intake", name=f"intake:{self.name}"))
        link = BrokerLink(self._setting.broker, self._broker, self._client.open())
        pause = FIRST_PAUSE
        try:
            while not self._stopping.is_set():
                try:
                    await self._connected(link)
                    pause = FIRST_PAUSE
                except Exception as error:
                    if not isinstance(error, OnTheDotError | OSError | TimeoutError):
                        _log.debug("intake %s", self.name, exc_info=error)
                    why = f"no response within {CONNECT_WITHIN:g} s" if isinstance(error, TimeoutError) else None
                    began = "broker" not in self._problems
                    self._hold("broker", why or reason(error, self._broker))
                    pause = FIRST_PAUSE if began else min(2 * pause, LONGEST_PAUSE)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await self._stopping.wait()
        finally:
            await link.close()

    async def _connected(self, link: BrokerLink) -> None:
        """Until it is stopped, or the connection ends."""
        tenant = DEFAULT_TENANT
        if self._setting.tenant is not None:
            tenant = await self._service.tenant_named(self._setting.tenant)
        async with asyncio.timeout(2 * CONNECT_WITHIN):
            reader = await self._client.reader()(
                self._broker, self._broker.login(), subscription_of(self.name, self._setting)
            )
        letters = DeadLetterSender(
            self.name, self._setting.dead_letter, link, reader, lambda why: self._hold("dead letters", why)
        )
        applier = CommandApplier(self._service, tenant, self._setting.allow, lambda why: self._hold("store", why))
        session = IntakeSession(self.name, reader, applier, letters, self._service.aside, self._clock)
        self._session = session
        try:
            if not self._stopping.is_set():
                await session.run(lambda: self._hold("broker", None))
        finally:
            self._session = None
            for part in ("dead letters", "store"):
                self._problems.pop(part, None)
            await _closed(reader)

    def _hold(self, part: str, why: str | None) -> None:
        """Told once, and again when it is over."""
        if why is None:
            self._problems.pop(part, None)
        else:
            self._problems[part] = why if part == "broker" else f"paused: {why}"
        is_up = not self._problems
        if is_up is not self._told_up:
            self._told_up = is_up
            if is_up:
                emit("intake.reading", intake=self.name)
            else:
                emit("intake.paused", intake=self.name, error=self.trouble)


async def _closed(reader: TopicReader) -> None:
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_WITHIN):
            await reader.close()
