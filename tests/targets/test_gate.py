"""The egress rule on the address that is really connected to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from onthedot.echo import EchoServer
from onthedot.errors import Invalid
from onthedot.model.target import WebhookTarget
from onthedot.targets.egress import EgressRule
from onthedot.targets.gate import EgressRefused, _Resolver
from onthedot.targets.webhook import Webhooks
from tests.targets.conftest import MakeCall

Resolve = Callable[..., None]


@asynccontextmanager
async def sending(rule: EgressRule) -> AsyncIterator[Webhooks]:
    async with Webhooks(rule, version="1") as webhooks:
        yield webhooks


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Resolve:
    """Let a name resolve to these addresses, one list per look-up."""
    real = socket.getaddrinfo
    answers: dict[str, list[list[str]]] = {}

    def lookup(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host not in answers:
            return real(host, port, *args, **kwargs)
        addresses = answers[host].pop(0)
        return [info for address in addresses for info in real(address, port, type=socket.SOCK_STREAM)]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)

    def add(host: str, *lists: list[str]) -> None:
        answers[host] = list(lists)

    return add


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "127.0.0.1."],
)
async def test_loopback_is_refused_in_every_notation(echo: EchoServer, make_call: MakeCall, host: str):
    target = WebhookTarget(url=f"http://{host}:{echo.port}/")
    async with sending(EgressRule()) as webhooks:
        with pytest.raises(Invalid) as caught:
            webhooks.check(target)
        outcome = await webhooks.send(make_call(target))
    assert caught.value.problems[0].path == "target.url"
    assert outcome.kind == "refused"
    assert not outcome.retryable
    assert "loopback or private" in (outcome.error or "")
    assert echo.connected == 0


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]", "localhost", "LOCALHOST."]
)
async def test_and_reached_in_every_notation_when_permitted(echo: EchoServer, make_call: MakeCall, host: str):
    target = WebhookTarget(url=f"http://{host}:{echo.port}/")
    async with sending(EgressRule(allow_private=True)) as webhooks:
        webhooks.check(target)
        outcome = await webhooks.send(make_call(target))
    assert outcome.ok, outcome
    assert echo.count == 1


@pytest.mark.parametrize("host", ["localhost", "localhost.", "LocalHost", "a.localhost"])
async def test_names_of_this_machine_are_refused_at_once_and_at_the_send(
    echo: EchoServer, make_call: MakeCall, host: str
):
    target = WebhookTarget(url=f"http://{host}:{echo.port}/")
    async with sending(EgressRule()) as webhooks:
        with pytest.raises(Invalid, match="loopback"):
            webhooks.check(target)
        outcome = await webhooks.send(make_call(target))
    assert outcome.kind == "refused"
    assert "resolves to" in (outcome.error or "")
    assert echo.connected == 0


@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "0.0.0.0", "::", "fe80::1"])
async def test_a_name_that_leads_to_metadata_is_refused_even_on_loopback(
    make_call: MakeCall, resolve: Resolve, address: str
):
    resolve("metadata.example", [address])
    async with sending(EgressRule(allow_private=True)) as webhooks:
        outcome = await webhooks.send(make_call(WebhookTarget(url="http://metadata.example/")))
    assert outcome.kind == "refused"
    assert outcome.error is not None
    assert outcome.error.startswith("metadata.example resolves to ")


async def test_of_several_addresses_only_the_permitted_are_connected_to(
    echo: EchoServer, make_call: MakeCall, resolve: Resolve
):
    resolve("mixed.example", ["169.254.169.254", "10.0.0.1", "127.0.0.1"])
    async with sending(EgressRule.parse(["127.0.0.1"])) as webhooks:
        outcome = await webhooks.send(make_call(WebhookTarget(url=f"http://mixed.example:{echo.port}/")))
    assert outcome.ok
    assert echo.received[0].headers["host"] == f"mixed.example:{echo.port}"


async def test_a_name_is_resolved_once_and_what_was_judged_is_connected_to(
    echo: EchoServer, make_call: MakeCall, resolve: Resolve
):
    """DNS rebinding: a second look-up would give the metadata service, and there is none."""
    resolve("rebinding.example", ["127.0.0.1"])  # a second look-up would fail with IndexError
    async with sending(EgressRule.parse(["127.0.0.1"])) as webhooks:
        target = WebhookTarget(url=f"http://rebinding.example:{echo.port}/", headers={"connection-note": "x"})
        outcomes = await asyncio.gather(*(webhooks.send(make_call(target)) for _ in range(5)))
    assert all(outcome.ok for outcome in outcomes)


async def test_a_name_that_turns_bad_is_refused_from_then_on(
    echo: EchoServer, make_call: MakeCall, resolve: Resolve, monkeypatch: pytest.MonkeyPatch
):
    resolve("turning.example", ["127.0.0.1"], ["169.254.169.254"])
    async with sending(EgressRule.parse(["127.0.0.1"])) as webhooks:
        target = WebhookTarget(url=f"http://turning.example:{echo.port}/")
        assert (await webhooks.send(make_call(target))).ok
        assert webhooks._session is not None
        connector = webhooks._session.connector
        connector.clear_dns_cache()  # type: ignore[union-attr]
        echo.close_connections()
        outcome = await webhooks.send(make_call(target))
        if outcome.kind == "error":  # the kept connection was noticed to be dead only now
            outcome = await webhooks.send(make_call(target))
    assert outcome.kind == "refused"


async def test_other_names_are_judged_when_they_are_resolved(make_call: MakeCall, resolve: Resolve):
    resolve("inside.example", ["10.0.0.1"])
    target = WebhookTarget(url="http://inside.example/")
    async with sending(EgressRule()) as webhooks:
        webhooks.check(target)
        outcome = await webhooks.send(make_call(target))
    assert outcome.kind == "refused"
    assert (outcome.error or "").startswith("inside.example resolves to 10.0.0.1 is a loopback or private address")


async def test_a_listed_name_opens_itself_but_not_its_address(echo: EchoServer, make_call: MakeCall):
    async with sending(EgressRule.parse(["localhost"])) as webhooks:
        webhooks.check(WebhookTarget(url="http://localhost/"))
        by_name = await webhooks.send(make_call(WebhookTarget(url=f"http://localhost:{echo.port}/")))
        by_address = await webhooks.send(make_call(WebhookTarget(url=f"http://127.0.0.1:{echo.port}/")))
    assert by_name.ok, by_name
    assert by_address.kind == "refused"


async def test_the_last_gate_judges_the_socket_itself():
    resolver = _Resolver(EgressRule())
    for address in ("127.0.0.1", "169.254.169.254", "::1", "fe80::1%2"):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with pytest.raises(EgressRefused):
            resolver.open_socket((family, socket.SOCK_STREAM, 0, "", (address, 80)))
    opened = resolver.open_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("93.184.216.34", 80)))
    assert opened.family == socket.AF_INET
    opened.close()
    await resolver.close()


async def test_a_resolver_that_finds_nothing_is_a_refusal_in_words(resolve: Resolve):
    resolve("empty.example", [])
    resolver = _Resolver(EgressRule())
    with pytest.raises(EgressRefused, match="has no address"):
        await resolver.resolve("empty.example", 80)
    await resolver.close()


async def test_the_memory_of_listed_names_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("onthedot.targets.gate._REMEMBERED", 3)
    resolver = _Resolver(EgressRule())
    for n in range(10):
        resolver._remember(f"10.0.0.{n}")
    assert len(resolver.by_name) <= 3
    await resolver.close()
