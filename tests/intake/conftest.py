"""A service on a real store, a real broker with topics of its own, and somebody else who sends messages to it."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from onthedot.clock import SystemClock
from onthedot.service import Service
from onthedot.settings import Settings
from onthedot.store import open_store
from onthedot.targets import EgressRule, build_targets
from onthedot.telemetry import Event, subscribe
from tests.intake.desk import Desk
from tests.services.brokers import BrokerServer

_numbers = itertools.count(1)


@asynccontextmanager
async def serving(url: str) -> AsyncIterator[Service]:
    clock = SystemClock()
    store = await open_store(url, clock=clock)
    with tempfile.TemporaryDirectory(prefix="onthedot-objects-") as objects:
        targets = build_targets(Settings(), egress=EgressRule.parse(allow_private=True))
        service = Service(store, targets, clock, Settings(store=url, object_store=objects))
        try:
            yield service
        finally:
            await service.close()
            await store.close()


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(f"sqlite:///{tmp_path}/jobs.db") as found:
        yield found


@pytest.fixture
def events() -> Iterator[list[Event]]:
    told: list[Event] = []
    stop = subscribe(told.append)
    yield told
    stop()


@pytest.fixture
async def on_nats(servers: Callable[[str], BrokerServer]) -> Desk:
    return await Desk.opened("nats", servers("nats"), next(_numbers))


@pytest.fixture
async def on_redis(servers: Callable[[str], BrokerServer]) -> Desk:
    return await Desk.opened("redis", servers("redis"), next(_numbers))


@pytest.fixture(params=["nats", "redis", "rabbitmq"])
async def desk(request: pytest.FixtureRequest, servers: Callable[[str], BrokerServer]) -> Desk:
    return await Desk.opened(request.param, servers(request.param), next(_numbers))
