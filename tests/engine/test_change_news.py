"""News for the dashboards of other nodes: that something happened, by a hint of PostgreSQL."""

from __future__ import annotations

import asyncio

from onthedot.clock import FakeClock, SystemClock
from onthedot.engine.membership import change_news
from onthedot.engine.membership.change_news import ChangeNews, is_news_of_others
from onthedot.store import open_store
from onthedot.telemetry import Telemetry


async def test_another_node_hears_within_a_second_that_something_happened(postgres_url, monkeypatch):
    bus, heard = Telemetry(), asyncio.Event()
    here, there = await open_store(postgres_url), await open_store(postgres_url)
    try:
        listening = asyncio.Event()

        def hint(topic: str) -> None:
            listening.set()
            if is_news_of_others(topic):
                heard.set()

        unlisten = there.listen(hint)
        await asyncio.wait_for(listening.wait(), 10)
        end = ChangeNews(here.notify, SystemClock()).listen(bus)
        bus.emit("cluster.changed")
        bus.emit("store.back")
        bus.emit("run.finished", tenant=1)
        monkeypatch.setattr(change_news, "_OWN", "news:of-another-process")
        await asyncio.wait_for(heard.wait(), 1)
        end()
        unlisten()
    finally:
        await here.close()
        await there.close()


async def test_a_busy_node_tells_twice_a_second_and_an_idle_one_nothing(fake_clock: FakeClock):
    bus, told = Telemetry(), []

    async def notify(topic: str) -> None:
        told.append(topic)

    end = ChangeNews(notify, fake_clock).listen(bus)
    for _ in range(100):
        bus.emit("run.finished", tenant=1)
        bus.emit("run.claimed", n=3)
    await fake_clock.settle()
    assert len(told) == 1
    bus.emit("run.finished", tenant=1)
    await fake_clock.advance(0.4)
    assert len(told) == 1
    await fake_clock.advance(0.2)
    assert len(told) == 2
    await fake_clock.advance(60)
    assert len(told) == 2
    assert not is_news_of_others(told[0])
    end()
