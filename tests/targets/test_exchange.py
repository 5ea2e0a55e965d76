"""Webhooks through the door that needs no task: who is told, when, and that nobody is after a withdrawal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from onthedot.echo import EchoServer
from onthedot.model.run import Outcome
from onthedot.model.targets import WebhookTarget
from onthedot.targets import NotBegun, build_targets
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.kind import Webhooks
from tests.services.waiting import until
from tests.targets.conftest import MakeCall
from tests.targets.receivers import server

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Told:
    """Whoever is told, and how often."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome | None] = []

    def __call__(self, outcome: Outcome | None) -> None:
        self.outcomes.append(outcome)


@pytest.fixture
async def webhooks() -> AsyncIterator[Webhooks]:
    async with Webhooks(EgressRule(allow_private=True), version="1") as webhooks:
        yield webhooks


def test_the_engine_finds_the_door():
    assert "webhook" in build_targets(version="1").direct


async def test_a_kept_connection_needs_no_task(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    target = WebhookTarget(url=echo.url)
    assert (await webhooks.send(make_call(target))).ok
    before, told = asyncio.all_tasks(), Told()
    webhooks.hand_over(make_call(target), told)
    assert asyncio.all_tasks() == before
    assert told.outcomes == []
    await until(lambda: told.outcomes)
    assert told.outcomes == [Outcome(kind="ok", detail={"status_code": 200, "response": "ok\n"})]
    assert echo.connected == 1


@pytest.mark.parametrize(
    ("target", "kind", "words"),
    [
        ({"url": "http://169.254.169.254/"}, "refused", "169.254.169.254 is"),
        ({"url": "http://256.1.1.1/"}, "refused", "the URL "),
        ({"url": "nonsense"}, "refused", "the URL "),
        ({"url": "http://127.0.0.1/", "headers": {"x": "a\r\nb"}}, "error", "can't be sent"),
        ({"url": "http://127.0.0.1/", "body": {"a": object()}}, "error", "unsupported"),
        ({"url": "http://127.0.0.1/", "body": "\ud800"}, "error", "surrogates"),
    ],
)
async def test_what_can_not_be_sent_is_told_and_not_before_it_returns(
    webhooks: Webhooks, make_call: MakeCall, target: Any, kind: str, words: str
):
    told = Told()
    webhooks.hand_over(make_call(WebhookTarget(**target)), told)
    assert told.outcomes == []
    await until(lambda: told.outcomes)
    (outcome,) = told.outcomes
    assert outcome is not None
    assert outcome.kind == kind
    assert words in (outcome.error or "")


async def test_nobody_is_told_after_a_withdrawal(webhooks: Webhooks, make_call: MakeCall):
    """At any instant: while it connects, while it waits, when the answer is there."""
    arrived, closed = 0, 0

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal arrived, closed
        arrived += 1
        writer.write(OK)
        await reader.read()
        closed += 1

    async with server(respond) as url:
        for steps in range(12):
            told = Told()
            withdraw = webhooks.hand_over(make_call(WebhookTarget(url=url)), told)
            for _ in range(steps):
                await asyncio.sleep(0)
            before = list(told.outcomes)
            assert withdraw() is None
            assert withdraw() is None
            pool = webhooks._pool
            assert pool is not None
            await until(lambda: len(pool.open) == pool.idle)  # noqa: B023 - awaited here
            assert told.outcomes == before
            for connection in list(pool.open):
                connection.close()
            await until(lambda: not pool.open)  # noqa: B023 - awaited here
    assert arrived >= closed


async def test_a_refusal_can_be_withdrawn_too(webhooks: Webhooks, make_call: MakeCall):
    told = Told()
    webhooks.hand_over(make_call(WebhookTarget(url="nonsense")), told)()
    for _ in range(5):
        await asyncio.sleep(0)
    assert told.outcomes == []


async def test_the_connection_is_back_before_anybody_is_told(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    """So that a chain of sends, each started by the end of the one before, has one connection."""
    done = asyncio.Event()
    left = 50

    def again(outcome: Outcome | None) -> None:
        nonlocal left
        assert outcome is not None
        assert outcome.ok
        left -= 1
        if left:
            webhooks.hand_over(make_call(WebhookTarget(url=echo.url)), again)
        else:
            done.set()

    webhooks.hand_over(make_call(WebhookTarget(url=echo.url)), again)
    await asyncio.wait_for(done.wait(), 10)
    assert echo.count == 50
    assert echo.connected == 1


async def test_what_became_another_nodes_while_it_was_connected_is_not_sent(
    webhooks: Webhooks, echo: EchoServer, make_call: MakeCall
):
    """As in a process that was frozen meanwhile."""
    target, told = WebhookTarget(url=echo.url), Told()
    webhooks.hand_over(make_call(target, may_begin=lambda: False), told)
    await until(lambda: told.outcomes)
    assert told.outcomes == [None]
    pool = webhooks._pool
    assert pool is not None
    await until(lambda: not pool.open)  # it is closed, and the loop says so in a turn of its own
    assert pool.idle == 0
    assert (await webhooks.send(make_call(target))).ok
    assert echo.count == 1


async def test_a_send_that_may_not_begin_any_more_says_so(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    with pytest.raises(NotBegun):
        await webhooks.send(make_call(WebhookTarget(url=echo.url), may_begin=lambda: False))
    assert echo.count == 0


async def test_a_broken_connection_is_told_once(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    echo.drop = 1.0
    told = Told()
    webhooks.hand_over(make_call(WebhookTarget(url=echo.url)), told)
    await until(lambda: told.outcomes)
    for _ in range(10):
        await asyncio.sleep(0)
    (outcome,) = told.outcomes
    assert outcome is not None
    assert outcome.retryable
