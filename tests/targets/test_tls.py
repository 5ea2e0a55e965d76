"""Webhooks over TLS: whom we trust, under which name, and what is left when it fails."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest

from onthedot.model.targets import WebhookTarget
from onthedot.targets.contract import Ended, Stop
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.kind import Webhooks
from tests.services.waiting import until
from tests.targets.conftest import MakeCall
from tests.targets.receivers import certified, server, trusting, written
from tests.targets.sending import send

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@pytest.fixture
async def webhooks() -> AsyncIterator[Webhooks]:
    async with Webhooks(EgressRule(allow_private=True), version="1", tls=trusting()) as webhooks:
        yield webhooks
        pool = webhooks._pool
        assert pool is not None
    assert not pool.open


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> None:
    """receiver.example and other.example are this machine."""
    real = socket.getaddrinfo

    def look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        return real("127.0.0.1" if str(host).endswith(".example") else host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


def secure(url: str, host: str = "127.0.0.1") -> str:
    return url.replace("http://127.0.0.1", f"https://{host}")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST.", "receiver.example", "0x7f.1"])
async def test_a_certificate_for_the_host(webhooks: Webhooks, make_call: MakeCall, named: None, host: str):
    asked: list[str | None] = []
    context = certified()
    context.sni_callback = lambda sock, name, context: asked.append(name)
    async with server(written(OK), ssl=context) as url:
        for _ in range(3):
            outcome = await send(webhooks, make_call(WebhookTarget(url=secure(url, host))))
            assert outcome.ok, outcome
    by_name = host.lower().strip(".") if host[0].isalpha() else None
    assert asked == [by_name]  # one connection for three requests, and no address is sent as a name


async def test_ipv6(webhooks: Webhooks, make_call: MakeCall):
    async with server(written(OK), host="::1", ssl=certified()) as url:
        assert (await send(webhooks, make_call(WebhookTarget(url=url.replace("http:", "https:"))))).ok


@pytest.mark.parametrize("body", [b"x" * 60_000, b"x" * 200_000])
async def test_long_answers(webhooks: Webhooks, make_call: MakeCall, body: bytes):
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    async with server(written(answer), ssl=certified()) as url:
        for _ in range(2):
            outcome = await send(webhooks, make_call(WebhookTarget(url=secure(url))))
            assert outcome.detail == {"status_code": 200, "response": "x" * 2048}


@pytest.mark.parametrize(
    ("certificate", "host", "why"),
    [
        ("receiver", "other.example", "Hostname mismatch"),
        ("expired", "localhost", "certificate has expired"),
    ],
)
async def test_a_certificate_that_does_not_hold(
    webhooks: Webhooks, make_call: MakeCall, named: None, certificate: str, host: str, why: str
):
    seen: list[bytes] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(b"a request")

    async with server(respond, ssl=certified(certificate)) as url:
        outcome = await send(webhooks, make_call(WebhookTarget(url=secure(url, host))))
        assert outcome.kind == "error"
        assert outcome.retryable
        assert (outcome.error or "").startswith("TLS handshake failed: ")
        assert why in (outcome.error or "")
        assert webhooks._pool is not None
        assert not webhooks._pool.open
    assert seen == []


async def test_an_authority_that_nobody_trusts(make_call: MakeCall):
    async with (
        server(written(OK), ssl=certified()) as url,
        Webhooks(EgressRule(allow_private=True), version="1") as webhooks,
    ):
        outcome = await send(webhooks, make_call(WebhookTarget(url=secure(url))))
    assert (outcome.error or "").startswith("TLS handshake failed: ")
    assert "CERTIFICATE_VERIFY_FAILED" in (outcome.error or "")


async def test_hung_up_on_in_the_middle_of_the_handshake(webhooks: Webhooks, make_call: MakeCall):
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    listening = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        outcome = await send(webhooks, make_call(WebhookTarget(url=f"https://127.0.0.1:{port}/")))
    assert outcome.retryable
    assert (outcome.error or "").startswith("TLS handshake failed: ")


async def test_a_time_out_in_the_middle_of_the_handshake_closes_the_connection(webhooks: Webhooks, make_call: MakeCall):
    begun, closed = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        begun.set()
        try:
            while await reader.read(65536):
                pass
        except ConnectionError:
            pass
        closed.set()
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        told: list[Ended] = []
        handle = webhooks.start(make_call(WebhookTarget(url=f"https://127.0.0.1:{port}/")), 5.0, told.append)
        await asyncio.wait_for(begun.wait(), 5)
        assert handle.stop("timeout") is Stop.ENDED
        assert told == [Ended(None, 5.0)]  # connecting is part of the attempt
        await asyncio.wait_for(closed.wait(), 5)


async def test_closed_in_good_order(make_call: MakeCall):
    """What is idle when the node stops says goodbye as TLS asks for: an end, not a break."""
    ends: list[str] = []

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK)
        try:
            ends.append(f"end {await reader.read()!r}")
        except (ssl.SSLError, ConnectionError) as error:
            ends.append(f"break {error}")

    async with server(respond, ssl=certified()) as url:
        async with Webhooks(EgressRule(allow_private=True), version="1", tls=trusting()) as webhooks:
            assert (await send(webhooks, make_call(WebhookTarget(url=secure(url))))).ok
        await until(lambda: ends)
    assert ends == ["end b''"]


async def test_the_systems_authorities_are_asked_by_default():
    async with Webhooks(EgressRule(), version="1") as webhooks:
        assert webhooks._pool is not None
        context = webhooks._pool._tls
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.check_hostname
