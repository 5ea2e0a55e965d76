"""A service on an SQLite store in memory, with time that stands still and targets that say yes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from onthedot.clock import FakeClock
from onthedot.errors import Invalid
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.schedule import Schedule
from onthedot.model.targets import Target, WebhookTarget
from onthedot.service import Service
from onthedot.settings import Settings
from onthedot.store import Store, open_store

TENANT = 1
URL = "http://example.com/"


class Agreeable:
    """Targets' rules that refuse one host only."""

    def check(self, target: Target, tenant: int) -> None:
        if isinstance(target, WebhookTarget) and "forbidden" in target.url:
            raise Invalid.one("target.url", "refused", given=target.url)

    def problem(self, target: Target, tenant: int) -> str | None:
        return None

    def waiting_capabilities(self) -> list[str]:
        return ["webhook"]

    def destination(self, target: Target) -> str | None:
        return None


@pytest.fixture
async def store(fake_clock: FakeClock) -> AsyncIterator[Store]:
    opened = await open_store("sqlite:///:memory:", fake_clock, threads=False)
    yield opened
    await opened.close()


@pytest.fixture
def hints(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The topics that the service hinted at."""
    said: list[str] = []

    async def notify(topic: str) -> None:
        said.append(topic)

    monkeypatch.setattr(store, "notify", notify)
    return said


@pytest.fixture
async def service(store: Store, fake_clock: FakeClock) -> AsyncIterator[Service]:
    made = Service(store, Agreeable(), fake_clock, Settings())
    yield made
    await made.close()


def spec(**fields: Any) -> JobSpec:
    given: dict[str, Any] = {
        "schedule": Schedule(every=Duration.parse("1m")),
        "target": WebhookTarget(url=URL),
        **fields,
    }
    return JobSpec(**given)
