"""The way to a broker that is slow: what is under way is given up only with a connection that all wait for."""

from __future__ import annotations

import asyncio

import pytest

from onthedot.brokers import link
from onthedot.brokers.link import BrokerLink
from onthedot.brokers.message import Message
from onthedot.brokers.publisher import BrokerAway, Confirmed, OnLost
from onthedot.brokers.redis import close_client, open_client
from onthedot.settings import BrokerAddress, BrokerSetting
from tests.services.brokers import running_redis


class Slow:
    """Confirms when the test says so."""

    def __init__(self, *, is_one_connection: bool) -> None:
        self.is_one_connection = is_one_connection
        self.confirms = asyncio.Event()
        self.opened = self.closed = 0

    async def open(self, setting: BrokerSetting, address: BrokerAddress, lost: OnLost) -> Slow:
        self.opened += 1
        return self

    async def publish(self, message: Message) -> Confirmed:
        await self.confirms.wait()
        if self.closed:
            raise BrokerAway("the connection was closed")
        return {"id": message.id}

    async def close(self) -> None:
        self.closed += 1
        self.confirms.set()


def message(id_: str) -> Message:
    return Message(topic="orders", id=id_, body=b"{}", content_type="application/json", key=None, headers={})


@pytest.mark.parametrize("is_one_connection", [True, False])
async def test_a_message_that_times_out_takes_the_others_with_it_only_if_all_wait_for_one_connection(
    is_one_connection: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(link, "STALLED", 0.0)
    slow = Slow(is_one_connection=is_one_connection)
    way = BrokerLink("it", BrokerSetting(url="nats://127.0.0.1:4222"), slow.open)
    first, second = [asyncio.create_task(way.publish(message(each), lambda: True)) for each in ("1", "2")]
    while way._silent_since is None:
        await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    slow.confirms.set()
    if is_one_connection:
        with pytest.raises(BrokerAway):
            await second
    else:
        assert await second == {"id": "2"}
    assert slow.closed == int(is_one_connection)
    await way.close()


@pytest.mark.parametrize("turns", range(1, 7))
async def test_who_is_cancelled_while_it_closes_a_client_of_redis_leaves_no_connection(turns: int):
    with running_redis() as server:
        setting = BrokerSetting(url=server.url)
        client = await open_client(setting, setting.login(), connections=1)
        connection = await client.connection_pool.get_connection()
        await client.connection_pool.release(connection)
        closing = asyncio.ensure_future(close_client(client))
        for _ in range(turns):
            await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait({closing})
        assert not connection.is_connected
