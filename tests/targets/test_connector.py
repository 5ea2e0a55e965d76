"""The egress rule on the address that is really connected to."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any

import psutil
import pytest

from onthedot.echo import EchoServer
from onthedot.errors import Invalid
from onthedot.model.targets import WebhookTarget
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.http1.connector import Connector, EgressRefused, _close_late
from onthedot.targets.webhook.kind import Webhooks
from onthedot.targets.webhook.own_ports import read_own_ports
from tests.services.waiting import until
from tests.targets.conftest import MakeCall
from tests.targets.sending import send

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
        outcome = await send(webhooks, make_call(target))
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
        outcome = await send(webhooks, make_call(target))
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
        outcome = await send(webhooks, make_call(target))
    assert outcome.kind == "refused"
    assert "resolves only to addresses that are not allowed: " in (outcome.error or "")
    assert echo.connected == 0


@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "0.0.0.0", "::", "fe80::1"])
async def test_a_name_that_leads_to_metadata_is_refused_even_on_loopback(
    make_call: MakeCall, resolve: Resolve, address: str
):
    resolve("metadata.example", [address])
    async with sending(EgressRule(allow_private=True)) as webhooks:
        outcome = await send(webhooks, make_call(WebhookTarget(url="http://metadata.example/")))
    assert outcome.kind == "refused"
    assert outcome.error is not None
    assert outcome.error.startswith("metadata.example resolves only to addresses that are not allowed: ")


async def test_of_several_addresses_only_the_permitted_are_connected_to(
    echo: EchoServer, make_call: MakeCall, resolve: Resolve
):
    resolve("mixed.example", ["169.254.169.254", "10.0.0.1", "127.0.0.1"])
    async with sending(EgressRule.parse(["127.0.0.1"])) as webhooks:
        outcome = await send(webhooks, make_call(WebhookTarget(url=f"http://mixed.example:{echo.port}/")))
    assert outcome.ok
    assert echo.received[0].headers["host"] == f"mixed.example:{echo.port}"


async def test_a_name_is_resolved_once_and_what_was_judged_is_connected_to(
    echo: EchoServer, make_call: MakeCall, resolve: Resolve
):
    """DNS rebinding: a second look-up would give the metadata service, and there is none."""
    resolve("rebinding.example", ["127.0.0.1"])  # a second look-up would fail with IndexError
    async with sending(EgressRule.parse(["127.0.0.1"])) as webhooks:
        target = WebhookTarget(url=f"http://rebinding.example:{echo.port}/", headers={"connection-note": "x"})
        outcomes = await asyncio.gather(*(send(webhooks, make_call(target)) for _ in range(5)))
    assert all(outcome.ok for outcome in outcomes)


async def test_a_name_that_turns_bad_is_refused_from_then_on(
    echo: EchoServer, make_call: MakeCall, resolve: Resolve, monkeypatch: pytest.MonkeyPatch
):
    resolve("turning.example", ["127.0.0.1"], ["169.254.169.254"])
    async with sending(EgressRule.parse(["127.0.0.1"])) as webhooks:
        target = WebhookTarget(url=f"http://turning.example:{echo.port}/")
        assert (await send(webhooks, make_call(target))).ok
        assert webhooks._connector is not None
        webhooks._connector._names.clear()
        echo.close_connections()
        outcome = await send(webhooks, make_call(target))
        if outcome.kind == "error":  # the kept connection was noticed to be dead only now
            outcome = await send(webhooks, make_call(target))
    assert outcome.kind == "refused"


async def test_other_names_are_judged_when_they_are_resolved(make_call: MakeCall, resolve: Resolve):
    resolve("inside.example", ["10.0.0.1"])
    target = WebhookTarget(url="http://inside.example/")
    async with sending(EgressRule()) as webhooks:
        webhooks.check(target)
        outcome = await send(webhooks, make_call(target))
    assert outcome.kind == "refused"
    refusal = (
        "inside.example resolves only to addresses that are not allowed: 10.0.0.1 is a loopback or private address"
    )
    assert (outcome.error or "").startswith(refusal)


async def test_a_listed_name_opens_itself_but_not_its_address(echo: EchoServer, make_call: MakeCall):
    async with sending(EgressRule.parse(["localhost"])) as webhooks:
        webhooks.check(WebhookTarget(url="http://localhost/"))
        by_name = await send(webhooks, make_call(WebhookTarget(url=f"http://localhost:{echo.port}/")))
        by_address = await send(webhooks, make_call(WebhookTarget(url=f"http://127.0.0.1:{echo.port}/")))
    assert by_name.ok, by_name
    assert by_address.kind == "refused"


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.169.254", "::1", "fe80::1%2"])
async def test_the_last_gate_judges_the_very_address_that_is_connected_to(address: str):
    """Even one that slipped past the look-up."""
    gate = Connector(EgressRule())
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with pytest.raises(EgressRefused):
        await gate._open("public.example", 80, (family, (address, 0)))
    gate._names["public.example"] = (math.inf, [(family, (address, 0))])
    with pytest.raises(EgressRefused):
        await gate.join(asyncio.Protocol, "public.example", 80, is_address=False)
    gate.close()


async def test_joining_looks_nothing_up_but_the_name(echo: EchoServer, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    real = socket.getaddrinfo

    def lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(host)
        return real("127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    gate = Connector(EgressRule(allow_private=True))
    transport = await gate.join(asyncio.Protocol, "once.example", echo.port, is_address=False)
    assert transport.get_extra_info("peername") == ("127.0.0.1", echo.port)
    assert asked == ["once.example"]
    transport.close()
    gate.close()


@contextmanager
def nobody_answers() -> Iterator[int]:
    """A port whose queue is full: a connection just waits."""
    with socket.socket() as full, ExitStack() as filling:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):
            sock = filling.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(full.getsockname())
        yield full.getsockname()[1]


def trying() -> int:
    """How many connections of this process wait for an answer."""
    return sum(found.status == psutil.CONN_SYN_SENT for found in psutil.Process().net_connections("tcp"))


async def test_giving_up_while_joining_leaves_nothing_open():
    gate = Connector(EgressRule(allow_private=True))
    with nobody_answers() as port:
        before = trying()
        joining = asyncio.ensure_future(gate.join(asyncio.Protocol, "127.0.0.1", port, is_address=True))
        await until(lambda: trying() == before + 1)
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
        await until(lambda: trying() == before)
    gate.close()


async def test_a_resolver_that_finds_nothing_is_a_refusal_in_words(resolve: Resolve):
    resolve("empty.example", [])
    gate = Connector(EgressRule())
    with pytest.raises(EgressRefused, match="has no address"):
        await gate.connect("empty.example", 80, is_address=False)
    gate.close()


async def test_a_failed_look_up_is_asked_again(echo: EchoServer, resolve: Resolve):
    resolve("late.example", [], ["127.0.0.1"])
    gate = Connector(EgressRule(allow_private=True))
    with pytest.raises(EgressRefused):
        await gate.connect("late.example", echo.port, is_address=False)
    (await gate.connect("late.example", echo.port, is_address=False)).close()
    gate.close()


async def test_the_memory_of_names_is_bounded_and_ends(
    echo: EchoServer, resolve: Resolve, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("onthedot.targets.webhook.http1.connector._REMEMBERED", 3)
    gate = Connector(EgressRule(allow_private=True))
    for n in range(10):
        resolve(f"{n}.example", ["127.0.0.1"])
        (await gate.connect(f"{n}.example", echo.port, is_address=False)).close()
        assert 1 <= len(gate._names) <= 3
    monkeypatch.setattr("onthedot.targets.webhook.http1.connector.TTL", 0.0)
    resolve("short.example", ["127.0.0.1"], ["127.0.0.1"])
    for _ in range(2):
        (await gate.connect("short.example", echo.port, is_address=False)).close()
    with pytest.raises(IndexError):  # asked a third time: nothing was remembered
        await gate.connect("short.example", echo.port, is_address=False)
    gate.close()


async def test_who_gives_up_waiting_for_a_look_up_does_not_stop_the_others(
    echo: EchoServer, monkeypatch: pytest.MonkeyPatch
):
    asked, answer = threading.Event(), threading.Event()
    real, count = socket.getaddrinfo, 0

    def slow(host: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        asked.set()
        assert answer.wait(10)
        return real("127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    gate = Connector(EgressRule(allow_private=True))
    one, other = (asyncio.ensure_future(gate.connect("slow.example", echo.port, is_address=False)) for _ in range(2))
    await asyncio.to_thread(asked.wait, 10)
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    answer.set()
    (await other).close()
    assert count == 1
    gate.close()


async def test_the_next_address_is_tried_when_one_refuses(echo: EchoServer, make_call: MakeCall, resolve: Resolve):
    """Nothing listens on 127.0.0.2, and ::1 may not even exist here."""
    resolve("several.example", ["127.0.0.2", "::1", "127.0.0.1"])
    async with sending(EgressRule(allow_private=True)) as webhooks:
        outcome = await send(webhooks, make_call(WebhookTarget(url=f"http://several.example:{echo.port}/")))
    assert outcome.ok, outcome
    assert echo.connected == 1


async def test_and_beside_one_that_does_not_answer(echo: EchoServer, resolve: Resolve, monkeypatch: pytest.MonkeyPatch):
    """The first address swallows the connection, the second has it within the stagger."""
    gate = Connector(EgressRule(allow_private=True))
    given_up = asyncio.Event()
    real = gate._open

    async def swallowed(host: str, port: int, place: Any) -> socket.socket:
        if place[1][0] == "127.0.0.2":
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                given_up.set()
        return await real(host, port, place)

    monkeypatch.setattr(gate, "_open", swallowed)
    resolve("half.example", ["127.0.0.2", "127.0.0.1"])
    sock = await gate.connect("half.example", echo.port, is_address=False)
    assert sock.getpeername()[0] == "127.0.0.1"
    sock.close()
    await asyncio.wait_for(given_up.wait(), 5)
    gate.close()


async def test_when_none_can_be_reached_the_first_reason_is_told(make_call: MakeCall, resolve: Resolve):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: refused for as long as we hold it
        port = taken.getsockname()[1]
        resolve("nowhere.example", ["127.0.0.1", "127.0.0.2"])
        async with sending(EgressRule(allow_private=True)) as webhooks:
            outcome = await send(webhooks, make_call(WebhookTarget(url=f"http://nowhere.example:{port}/")))
    assert outcome.error == f"can't connect: Connection refused (127.0.0.1, port {port})"


async def test_of_two_that_connect_at_once_one_is_kept_and_the_other_closed(echo: EchoServer, resolve: Resolve):
    sock = socket.socket()
    done: asyncio.Task[socket.socket] = asyncio.ensure_future(asyncio.sleep(0, sock))
    await done
    _close_late(done)
    assert sock.fileno() == -1


async def test_giving_up_while_connecting_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch):
    opened: list[socket.socket] = []
    real = socket.socket

    def remembered(*args: Any, **kwargs: Any) -> socket.socket:
        opened.append(real(*args, **kwargs))
        return opened[-1]

    with nobody_answers() as port:
        monkeypatch.setattr("onthedot.targets.webhook.http1.connector.socket.socket", remembered)
        gate = Connector(EgressRule(allow_private=True))
        connecting = asyncio.ensure_future(gate.connect("127.0.0.1", port, is_address=True))
        await until(lambda: opened)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        gate.close()
    assert [sock.fileno() for sock in opened] == [-1]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_closing_goes_for_the_next_call_on_kept_connections_too(echo: EchoServer, make_call: MakeCall, host: str):
    call = make_call(WebhookTarget(url=f"http://{host}:{echo.port}/"))
    async with sending(EgressRule(allow_private=True)) as webhooks:
        assert (await send(webhooks, call)).kind == "ok"
        assert webhooks._pool is not None
        assert webhooks._pool.idle == 1
        webhooks.trust(is_open=False, own_ports=frozenset())
        outcome = await send(webhooks, call)
        assert (outcome.kind, outcome.retryable) == ("refused", False)
        assert "EGRESS_ALLOW" in (outcome.error or "")
        with pytest.raises(Invalid):
            webhooks.check(WebhookTarget(url=f"http://{host}:{echo.port}/"))
        webhooks.trust(is_open=True, own_ports=frozenset())
        assert (await send(webhooks, call)).kind == "ok"
    assert len(echo.received) == 2


async def test_a_connection_in_use_when_it_closes_is_not_kept(echo: EchoServer, make_call: MakeCall):
    call = make_call(WebhookTarget(url=f"http://localhost:{echo.port}/"))
    echo.delay = 0.3
    async with sending(EgressRule(allow_private=True)) as webhooks:
        under_way = asyncio.ensure_future(send(webhooks, call))
        await echo.wait_for(1)
        webhooks.trust(is_open=False, own_ports=frozenset())
        assert (await under_way).kind == "ok", "it began when it was permitted"
        assert webhooks._pool is not None
        assert webhooks._pool.idle == 0


async def test_our_own_port_is_refused_also_by_a_name_that_leads_there(
    echo: EchoServer, make_call: MakeCall, resolve: Resolve
):
    resolve("ours.example", ["127.0.0.1"])
    async with sending(EgressRule(allow_private=True)) as webhooks:
        webhooks.trust(is_open=True, own_ports=read_own_ports([f"0.0.0.0:{echo.port}"]))
        outcome = await send(webhooks, make_call(WebhookTarget(url=f"http://ours.example:{echo.port}/")))
    assert outcome.kind == "refused"
    assert "used by On the Dot itself" in (outcome.error or "")
    assert echo.received == []
