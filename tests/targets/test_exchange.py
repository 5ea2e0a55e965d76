"""Webhooks: who is told, when, and that nobody is told twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from onthedot.echo import EchoServer
from onthedot.model.run import Outcome
from onthedot.model.targets import WebhookTarget
from onthedot.targets.contract import Ended, Stop
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.kind import Webhooks
from onthedot.targets.webhook.signature import sign
from tests.services.waiting import until
from tests.targets.conftest import MakeCall
from tests.targets.receivers import server
from tests.targets.sending import NotBegun, send

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Told:
    """Whoever is told, and how often."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome | None] = []

    def __call__(self, ended: Ended) -> None:
        self.outcomes.append(ended.outcome)


@pytest.fixture
async def webhooks() -> AsyncIterator[Webhooks]:
    async with Webhooks(EgressRule(allow_private=True), version="1") as webhooks:
        yield webhooks


async def test_a_kept_connection_needs_no_task(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    target = WebhookTarget(url=echo.url)
    assert (await send(webhooks, make_call(target))).ok
    before, told = asyncio.all_tasks(), Told()
    webhooks.start(make_call(target), 1.0, told)
    assert asyncio.all_tasks() == before
    assert told.outcomes == []
    await until(lambda: told.outcomes)
    assert told.outcomes == [Outcome(kind="ok", detail={"status_code": 200, "response": "ok\n"})]
    assert echo.connected == 1


async def test_a_request_is_dated_when_its_connection_is_open(
    webhooks: Webhooks, echo: EchoServer, make_call: MakeCall
):
    """Look-up, connection and TLS may take minutes, and receivers refuse a signature that is five minutes old."""
    now = asyncio.get_running_loop().time()
    offset_us = int((now - 1_700_000_000.5) * 1e6)  # by the database it is 2023-11-14T22:13:20.5Z
    call = make_call(WebhookTarget(url=echo.url, secret="shh"), offset_us=offset_us)
    for ago in (
        600.0,
        0.0,
    ):  # the first opens a connection, ten minutes after it was started; the second finds it there
        webhooks.start(call, now - ago, told := Told())
        await until(lambda: told.outcomes)
    first, second = echo.received
    assert echo.connected == 1
    assert 0 <= int(first.headers["webhook-timestamp"]) - 1_700_000_000 < 60
    assert second.headers["webhook-timestamp"] == "1700000000"
    timestamp = int(first.headers["webhook-timestamp"])
    assert first.headers["webhook-signature"] == sign("shh", call.run_id, timestamp, b"")


@pytest.mark.parametrize(
    ("target", "kind", "words"),
    [
        ({"url": "http://169.254.169.254/"}, "refused", "169.254.169.254 is"),
        ({"url": "http://256.1.1.1/"}, "refused", "the URL "),
        ({"url": "nonsense"}, "refused", "the URL "),
        ({"url": "http://127.0.0.1/", "headers": {"x": "a\r\nb"}}, "error", "invalid header"),
        ({"url": "http://127.0.0.1/", "body": {"a": object()}}, "error", "unsupported"),
        ({"url": "http://127.0.0.1/", "body": "\ud800"}, "error", "surrogates"),
    ],
)
async def test_what_can_not_be_sent_is_told_and_not_before_it_returns(
    webhooks: Webhooks, make_call: MakeCall, target: Any, kind: str, words: str
):
    told = Told()
    webhooks.start(make_call(WebhookTarget(**target)), 1.0, told)
    assert told.outcomes == []
    await until(lambda: told.outcomes)
    (outcome,) = told.outcomes
    assert outcome is not None
    assert outcome.kind == kind
    assert words in (outcome.error or "")


async def test_who_stops_it_is_told_once_or_that_it_had_not_begun(webhooks: Webhooks, make_call: MakeCall):
    """At any instant: while it connects, while it waits, when the answer is there."""
    arrived, closed, answers = 0, 0, set[Stop]()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal arrived, closed
        arrived += 1
        writer.write(OK)
        await reader.read()
        closed += 1

    async with server(respond) as url:
        for steps in range(12):
            told = Told()
            handle = webhooks.start(make_call(WebhookTarget(url=url)), 1.0, told)
            for _ in range(steps):
                await asyncio.sleep(0)
            before = list(told.outcomes)
            stop = handle.stop("cancelled")
            assert stop is (Stop.ENDED if before or told.outcomes else Stop.NOT_BEGUN)
            assert handle.stop("cancelled") is Stop.ENDED
            after = before or ([None] if stop is Stop.ENDED else [])
            pool = webhooks._pool
            assert pool is not None
            await until(lambda: len(pool.open) == pool.idle)  # noqa: B023 - awaited here
            assert told.outcomes == after
            answers.add(stop)
            for connection in list(pool.open):
                connection.close()
            await until(lambda: not pool.open)  # noqa: B023 - awaited here
    assert arrived >= closed
    assert answers == {Stop.NOT_BEGUN, Stop.ENDED}


async def test_a_refusal_can_be_withdrawn_too(webhooks: Webhooks, make_call: MakeCall):
    told = Told()
    assert webhooks.start(make_call(WebhookTarget(url="nonsense")), 1.0, told).stop("cancelled") is Stop.NOT_BEGUN
    for _ in range(5):
        await asyncio.sleep(0)
    assert told.outcomes == []


async def test_the_connection_is_back_before_anybody_is_told(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    """So that a chain of sends, each started by the end of the one before, has one connection."""
    done = asyncio.Event()
    left = 50

    def again(ended: Ended) -> None:
        nonlocal left
        assert ended.outcome is not None
        assert ended.outcome.ok
        left -= 1
        if left:
            webhooks.start(make_call(WebhookTarget(url=echo.url)), 1.0, again)
        else:
            done.set()

    webhooks.start(make_call(WebhookTarget(url=echo.url)), 1.0, again)
    await asyncio.wait_for(done.wait(), 10)
    assert echo.count == 50
    assert echo.connected == 1


async def test_what_became_another_nodes_while_it_was_connected_is_not_sent(
    webhooks: Webhooks, echo: EchoServer, make_call: MakeCall
):
    """As in a process that was frozen meanwhile."""
    target, told = WebhookTarget(url=echo.url), Told()
    webhooks.start(make_call(target, may_begin=lambda: False), 1.0, told)
    await until(lambda: told.outcomes)
    assert told.outcomes == [None]
    pool = webhooks._pool
    assert pool is not None
    await until(lambda: not pool.open)  # it is closed, and the loop says so in a turn of its own
    assert pool.idle == 0
    assert (await send(webhooks, make_call(target))).ok
    assert echo.count == 1


async def test_a_send_that_may_not_begin_any_more_says_so(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    with pytest.raises(NotBegun):
        await send(webhooks, make_call(WebhookTarget(url=echo.url), may_begin=lambda: False))
    assert echo.count == 0


async def test_a_broken_connection_is_told_once(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    echo.drop = 1.0
    told = Told()
    webhooks.start(make_call(WebhookTarget(url=echo.url)), 1.0, told)
    await until(lambda: told.outcomes)
    for _ in range(10):
        await asyncio.sleep(0)
    (outcome,) = told.outcomes
    assert outcome is not None
    assert outcome.retryable
