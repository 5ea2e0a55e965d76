"""Webhooks over real sockets."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from standardwebhooks import Webhook

from onthedot.echo import Arrival, EchoServer
from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.targets import WebhookTarget
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.kind import Webhooks
from onthedot.targets.webhook.signature import sign
from tests.services.ports import free_port
from tests.services.waiting import until
from tests.targets.conftest import SLOT, MakeCall
from tests.targets.receivers import server
from tests.targets.sending import send

SECRET = "whsec_" + base64.b64encode(b"a secret of 24 bytes !!!").decode()


@pytest.fixture
async def webhooks() -> AsyncIterator[Webhooks]:
    async with Webhooks(EgressRule(allow_private=True), version="1.2.3") as webhooks:
        yield webhooks


async def test_what_arrives(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    target = WebhookTarget(url=echo.url + "hook?x=1", body={"a": 1}, headers={"X-Own": "mine"}, secret=SECRET)
    outcome = await send(webhooks, make_call(target, attempt=2))
    assert outcome == Outcome(kind="ok", detail={"status_code": 200, "response": "ok\n"})
    (arrival,) = echo.received
    assert (arrival.method, arrival.path, arrival.body) == ("POST", "/hook?x=1", b'{"a":1}')
    assert arrival.headers["user-agent"] == "onthedot/1.2.3"
    assert arrival.headers["content-type"] == "application/json"
    assert arrival.headers["x-own"] == "mine"
    assert arrival.headers["x-onthedot-job"] == "7"
    assert arrival.headers["x-onthedot-attempt"] == "2"
    assert arrival.headers["x-onthedot-scheduled-for"] == "2025-11-15T19:22:47.890Z"
    assert arrival.headers["webhook-id"] == f"7-{SLOT}"
    assert arrival.headers["traceparent"].startswith("00-")
    assert Webhook(SECRET).verify(arrival.body, arrival.headers) == {"a": 1}


async def test_without_a_body_nothing_is_sent_but_headers(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    assert (await send(webhooks, make_call(WebhookTarget(url=echo.url)))).ok
    (arrival,) = echo.received
    assert arrival.method == "POST"
    assert arrival.body == b""
    assert arrival.headers["content-length"] == "0"
    assert "content-type" not in arrival.headers
    assert "webhook-signature" not in arrival.headers


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
async def test_methods(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall, method: Any):
    assert (await send(webhooks, make_call(WebhookTarget(url=echo.url, method=method)))).ok
    assert [arrival.method for arrival in echo.received] == [method]


async def test_connections_are_used_again(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    for _ in range(5):
        assert (await send(webhooks, make_call(WebhookTarget(url=echo.url, body="x")))).ok
    assert echo.count == 5
    assert echo.connected == 1


async def test_many_at_once(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    target = WebhookTarget(url=echo.url, body={"n": 1})
    sends = (send(webhooks, make_call(target, run_id=f"7-{n}")) for n in range(300))
    assert all(outcome.ok for outcome in await asyncio.gather(*sends))
    assert len({arrival.run_id for arrival in echo.received}) == 300


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        (400, False),
        (404, False),
        (410, False),
        (301, False),
        (304, False),
        (408, True),
        (425, True),
        (429, True),
        (500, True),
        (503, True),
    ],
)
async def test_statuses(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall, status: int, retryable: bool):
    echo.answer = lambda arrival: (status, {"retry-after": "9"}, b"" if status == 304 else b"why")
    outcome = await send(webhooks, make_call(WebhookTarget(url=echo.url)))
    assert outcome.kind == "error"
    assert outcome.retryable == retryable
    assert outcome.detail["status_code"] == status
    assert outcome.retry_after_ms == (9000 if retryable else None)


async def test_no_redirect_is_followed(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    echo.answer = lambda arrival: (307, {"location": echo.url + "again"}, b"")
    outcome = await send(webhooks, make_call(WebhookTarget(url=echo.url)))
    assert outcome.detail["status_code"] == 307
    assert echo.count == 1


async def test_no_cookie_is_kept(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    echo.answer = lambda arrival: (200, {"set-cookie": "session=1; Path=/"}, b"")
    for _ in range(2):
        await send(webhooks, make_call(WebhookTarget(url=echo.url)))
    assert ["cookie" in arrival.headers for arrival in echo.received] == [False, False]


async def test_proxies_of_the_environment_are_ignored(
    webhooks: Webhooks, echo: EchoServer, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    assert (await send(webhooks, make_call(WebhookTarget(url=echo.url)))).ok
    assert echo.received[0].path == "/"


async def test_nothing_listens(webhooks: Webhooks, make_call: MakeCall):
    outcome = await send(webhooks, make_call(WebhookTarget(url=f"http://127.0.0.1:{free_port()}/")))
    assert outcome.kind == "error"
    assert outcome.retryable
    assert (outcome.error or "").startswith("can't connect: ")


async def test_a_name_that_does_not_exist(webhooks: Webhooks, make_call: MakeCall):
    outcome = await send(webhooks, make_call(WebhookTarget(url="http://no-such-host.invalid/")))
    assert outcome.kind == "error"
    assert outcome.retryable
    assert (outcome.error or "").startswith("can't resolve the host name: ")


async def test_hung_up_on(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    echo.drop = 1.0
    outcome = await send(webhooks, make_call(WebhookTarget(url=echo.url)))
    assert outcome.kind == "error"
    assert outcome.retryable
    assert echo.received[0].status == 0


async def test_an_answer_that_is_not_http(webhooks: Webhooks, make_call: MakeCall):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")
        writer.close()

    async with server(answer) as url:
        outcome = await send(webhooks, make_call(WebhookTarget(url=url)))
    assert outcome.kind == "error"
    assert outcome.retryable


async def test_tls_with_an_untrusted_or_no_certificate_may_be_tried_again(
    webhooks: Webhooks, echo: EchoServer, make_call: MakeCall
):
    outcome = await send(webhooks, make_call(WebhookTarget(url=echo.url.replace("http:", "https:"))))
    assert outcome.kind == "error"
    assert outcome.retryable
    assert (outcome.error or "").startswith("TLS handshake failed: ")


async def test_cancelling_closes_the_connection(webhooks: Webhooks, make_call: MakeCall):
    arrived, closed = asyncio.Event(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        assert await reader.read() == b""
        closed.set()

    async with server(answer) as url:
        running = asyncio.ensure_future(send(webhooks, make_call(WebhookTarget(url=url))))
        await asyncio.wait_for(arrived.wait(), 5)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.wait_for(closed.wait(), 5)


async def test_of_a_long_answer_two_kilobytes_are_kept(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    echo.answer = lambda arrival: (200, {}, b"x" * 30_000)
    for _ in range(2):
        outcome = await send(webhooks, make_call(WebhookTarget(url=echo.url)))
        assert outcome.detail["response"] == "x" * 2048
    assert echo.connected == 1


async def test_an_endless_answer_is_cut_off(webhooks: Webhooks, make_call: MakeCall):
    sent = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 65536)
            sent += 65536
            await writer.drain()

    async with server(answer) as url:
        outcome = await send(webhooks, make_call(WebhookTarget(url=url)))
        assert outcome == Outcome(kind="ok", detail={"status_code": 200, "response": "x" * 2048})
        assert sent < 20_000_000


@pytest.mark.parametrize("ending", ["broken", "dripping"])
async def test_the_status_stands_when_the_body_does_not_come(
    webhooks: Webhooks, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch, ending: str
):
    monkeypatch.setattr("onthedot.targets.webhook.http1.connection.BODY_WAIT", 0.05)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\nhalf")
        await writer.drain()
        if ending == "broken":
            writer.close()
        else:
            await reader.read()

    async with server(answer) as url:
        outcome = await send(webhooks, make_call(WebhookTarget(url=url)))
    assert outcome.ok
    assert outcome.detail["status_code"] == 201


async def test_an_answer_in_no_encoding_at_all(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    echo.answer = lambda arrival: (200, {"content-type": "text/plain; charset=nonsense"}, b"\xff\x00\xfe")
    outcome = await send(webhooks, make_call(WebhookTarget(url=echo.url)))
    assert outcome.detail["response"] == "���"


async def test_a_packed_answer_stays_packed(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    echo.answer = lambda arrival: (200, {"content-encoding": "gzip"}, b"not gzip at all")
    outcome = await send(webhooks, make_call(WebhookTarget(url=echo.url)))
    assert outcome.detail["response"] == "not gzip at all"
    assert echo.received[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
async def test_nothing_is_sent_twice_behind_the_engines_back(webhooks: Webhooks, make_call: MakeCall, method: Any):
    """A kept connection that dies under the second request: many clients would repeat a GET by themselves."""
    requests = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        requests += 1
        if requests == 1:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        else:
            writer.close()

    async with server(answer) as url:
        target = WebhookTarget(url=url, method=method)
        assert (await send(webhooks, make_call(target))).ok
        outcome = await send(webhooks, make_call(target))
        assert outcome.retryable
        assert requests == 2


async def test_a_connection_closed_while_idle_is_not_used(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    assert (await send(webhooks, make_call(WebhookTarget(url=echo.url)))).ok
    (connection,) = echo.connections
    connection.transport.close()
    await until(lambda: not echo.connections and not connected(webhooks))
    assert (await send(webhooks, make_call(WebhookTarget(url=echo.url)))).ok
    assert echo.connected == 2


def connected(webhooks: Webhooks) -> int:
    assert webhooks._pool is not None
    return len(webhooks._pool.open)


def test_check_accepts_what_can_work():
    webhooks = Webhooks(EgressRule(), version="1")
    webhooks.check(WebhookTarget(url="https://example.com/hook", headers={"Authorization": "x"}, secret=SECRET))
    webhooks.check(WebhookTarget(url="http://93.184.216.34/"))
    assert webhooks.capabilities() == ["webhook"]


def test_check_says_why_not():
    webhooks = Webhooks(EgressRule(), version="1")
    for url, words in (("http://256.1.1.1/", "not an address"), ("http://10.0.0.1/", "is not allowed: 10.0.0.1 is")):
        with pytest.raises(Invalid, match=words) as caught:
            webhooks.check(WebhookTarget(url=url))
        (problem,) = caught.value.problems
        assert (problem.path, problem.given) == ("target.url", url)


@pytest.mark.parametrize("value", ["a\r\nX-Injected: 1", "a\nb"])
async def test_a_line_break_that_got_past_every_check_is_not_sent(
    webhooks: Webhooks, echo: EchoServer, make_call: MakeCall, value: str
):
    outcome = await send(webhooks, make_call(WebhookTarget(url=echo.url, headers={"x-own": value})))
    assert outcome.kind == "error"
    assert all("x-injected" not in arrival.headers for arrival in echo.received)


async def test_an_arrival_knows_how_late_it_is(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    await send(webhooks, make_call(WebhookTarget(url=echo.url), slot=echo.clock.now_ms() - 5000))
    arrival: Arrival = echo.received[0]
    assert arrival.late_ms is not None
    assert 5000 <= arrival.late_ms < 10_000


async def test_the_time_is_the_callers_not_the_machines(webhooks: Webhooks, echo: EchoServer, make_call: MakeCall):
    """An hour off, a receiver that checks the signature's age refuses each call: the engine gives the database's."""
    an_hour_ago = 1_700_000_000_500  # in the middle of a second: the loop's clock may be some ms behind
    echo.answer = lambda arrival: (503, {"retry-after": "Tue, 14 Nov 2023 22:14:20 GMT"}, b"")
    target = WebhookTarget(url=echo.url, secret=SECRET)
    offset_us = int(time.monotonic() * 1e6) - an_hour_ago * 1000
    outcome = await send(webhooks, make_call(target, offset_us=offset_us))
    (arrival,) = echo.received
    assert arrival.headers["webhook-timestamp"] == "1700000000"
    assert arrival.headers["webhook-signature"] == sign(SECRET, f"7-{SLOT}", 1_700_000_000, b"")
    assert outcome.retry_after_ms is not None
    assert 50_000 < outcome.retry_after_ms < 60_000


async def test_a_run_whose_params_lack_what_its_body_names_fails_for_good_and_sends_nothing(
    webhooks: Webhooks, echo: EchoServer, make_call: MakeCall
):
    target = WebhookTarget(url=echo.url, body={"a": {"$": "params.user.id"}})
    outcome = await send(webhooks, make_call(target, params={"user": {}}))
    assert outcome == Outcome(kind="error", error="the body can't be filled in: no parameter 'user.id' in params")
    assert echo.received == []


@pytest.mark.parametrize(
    ("status", "header", "retryable", "parks"),
    [
        ("410 Gone", b"", False, True),
        ("503 Away", b"Webhook-Delivery: disable\r\n", False, True),
        ("200 OK", b"webhook-delivery: disable\r\n", False, True),
        ("503 Away", b"webhook-delivery: abort-message\r\n", False, False),
        ("503 Away", b"webhook-delivery: continue\r\n", True, False),
    ],
)
async def test_what_a_receiver_asks_for(
    webhooks: Webhooks, make_call: MakeCall, status: str, header: bytes, retryable: bool, parks: bool
):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status}\r\n".encode() + header + b"content-length: 0\r\n\r\n")
        await writer.drain()

    async with server(answer) as url:
        outcome = await send(webhooks, make_call(WebhookTarget(url=url)))
    assert (outcome.retryable, outcome.parks is not None) == (retryable, parks)
