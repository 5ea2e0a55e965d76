"""A broker, a topic on it and one for dead letters: to send messages, and to see what was made of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

from onthedot.clock import SystemClock
from onthedot.intake import Intakes
from onthedot.model.job import JobView
from onthedot.service import Service
from onthedot.settings import BrokerSetting, IntakeSetting, Settings
from onthedot.store import JobFilter
from tests.services.brokers import BrokerServer
from tests.services.consumers import CONSUMERS
from tests.services.senders import SENDERS
from tests.services.waiting import until

__all__ = ["JOB", "Desk", "handled", "jobs_of"]

JOB: dict[str, Any] = {
    "schedule": {"cron": "0 3 1 1 *"},
    "target": {"type": "webhook", "url": "http://127.0.0.1:5003/"},
}


class Desk:
    def __init__(self, name: str, server: BrokerServer, number: int) -> None:
        self.name, self.server = name, server
        self.topic, self.dead = f"intake{number}", f"refused{number}"
        self._sent = 0

    @classmethod
    async def opened(cls, name: str, server: BrokerServer, number: int) -> Self:
        desk = cls(name, server, number)
        for topic in (desk.topic, desk.dead):
            await CONSUMERS[name].prepare(server, topic)
        return desk

    def settings(self, **fields: Any) -> Settings:
        given = {"broker": "it", "topic": self.topic, "dead_letter": self.dead} | fields
        return Settings(brokers={"it": BrokerSetting(url=self.server.url)}, intake={"orders": IntakeSetting(**given)})

    @asynccontextmanager
    async def reading(self, service: Service, **fields: Any) -> AsyncIterator[Intakes]:
        async with Intakes(self.settings(**fields), service, SystemClock()) as intakes:
            yield intakes

    async def send(self, *messages: Mapping[str, Any] | bytes) -> None:
        """Each with an id of its own."""
        bodies = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in messages]
        ids = [f"m{number}" for number in range(self._sent, self._sent + len(bodies))]
        self._sent += len(bodies)
        await SENDERS[self.name](self.server, self.topic, [*zip(ids, bodies, strict=True)])

    async def letters(self, count: int) -> list[dict[str, Any]]:
        """As many dead letters, by what they say of the original."""
        found: list[dict[str, Any]] = []

        async def all_there() -> bool:
            if self.name not in ("rabbitmq", "sqs"):  # reading takes nothing away elsewhere
                found.clear()
            found.extend(json.loads(each.body) for each in await CONSUMERS[self.name].consume(self.server, self.dead))
            return len(found) >= count

        await until(all_there, f"{count} dead letters")
        return found


async def jobs_of(service: Service, tenant: int = 1) -> dict[str | None, JobView]:
    page = await service.list_jobs(tenant, JobFilter(limit=500))
    return {job.key or str(job.id): job for job in page.items}


RESULTS = ("ok", "repeated", "refused")


async def handled(events: list[Any], count: int, *which: str) -> dict[str, int]:
    """When as many messages have been handled, or handled that way: how they were."""

    def found() -> dict[str, int]:
        told = [event.fields for event in events if event.name == "intake.handled"]
        sums = {result: sum(each[result] for each in told) for result in RESULTS}
        return sums if sum(sums[result] for result in which or RESULTS) >= count else {}

    result: dict[str, int] = await until(found, f"{count} messages were handled")
    return result
