"""The receiver: it is what other tests and benches lean on."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.echo import Arrival, EchoServer
from tests.services.ports import free_port
from tests.services.waiting import until


async def ask(echo: EchoServer, raw: bytes) -> bytes:
    """Send bytes, read until the end; the requests must ask for it with `connection: close`."""
    reader, writer = await asyncio.open_connection(echo.host, echo.port)
    writer.write(raw)
    await writer.drain()
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def request(path: str = "/", body: bytes = b"", method: str = "POST", close: bool = True, **headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: x", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if close:
        lines.append("connection: close")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def test_it_answers_and_remembers(echo: EchoServer):
    answer = await ask(echo, request("/hook?a=1", b"hello", webhook_id="7-1"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b"\r\n\r\nok\n")
    (arrival,) = echo.received
    assert (arrival.method, arrival.path, arrival.body, arrival.run_id) == ("POST", "/hook?a=1", b"hello", "7-1")
    assert arrival.headers["host"] == "x"


async def test_requests_in_one_breath_are_answered_in_order(echo: EchoServer):
    echo.answer = lambda arrival: (200, {}, arrival.body)
    raw = request(body=b"first", close=False) + request(body=b"second", close=False) + request(body=b"third")
    answer = await ask(echo, raw)
    assert [part for part in (b"first", b"second", b"third") if part in answer] == [b"first", b"second", b"third"]
    assert answer.index(b"first") < answer.index(b"second") < answer.index(b"third")


async def test_a_request_in_small_pieces(echo: EchoServer):
    reader, writer = await asyncio.open_connection(echo.host, echo.port)
    for byte in request("/slow", b"body"):
        writer.write(bytes([byte]))
        await writer.drain()
    assert (await reader.read()).startswith(b"HTTP/1.1 200")
    writer.close()
    assert echo.received[0].path == "/slow"
    assert echo.received[0].body == b"body"


async def test_a_body_in_chunks(echo: EchoServer):
    head = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    await ask(echo, head + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    assert echo.received[0].body == b"abcde"


async def test_head_gets_no_body(echo: EchoServer):
    answer = await ask(echo, request(method="HEAD"))
    assert answer.endswith(b"\r\n\r\n")
    assert b"content-length: 3" in answer


async def test_what_is_not_http_gets_400(echo: EchoServer):
    assert (await ask(echo, b"\x16\x03\x01\x02\x00nonsense\r\n\r\n")).startswith(b"HTTP/1.1 400")
    assert echo.received == []


async def test_failing_and_dropping_at_their_rates():
    async with EchoServer(fail=0.5, drop=0.2, status=503, rng=Random(1)) as echo:
        statuses = Counter(echo.decide() for _ in range(10_000))
    assert set(statuses) == {0, 200, 503}
    assert 1_800 < statuses[0] < 2_200
    assert 3_800 < statuses[503] < 4_200


async def test_failing_says_so_and_dropping_says_nothing():
    async with EchoServer(fail=1, status=503) as echo:
        assert (await ask(echo, request())).startswith(b"HTTP/1.1 503")
    async with EchoServer(drop=1) as echo:
        assert await ask(echo, request()) == b""
        assert [arrival.status for arrival in echo.received] == [0]


async def test_it_logs_before_it_answers():
    order: list[str] = []
    async with EchoServer(on_arrival=lambda arrival: order.append("logged")) as echo:

        def answer(arrival: Arrival) -> tuple[int, dict[str, str], bytes]:
            order.append("answered")
            return 200, {}, b""

        echo.answer = answer
        await ask(echo, request())
    assert order == ["logged", "answered"]


async def test_delay_keeps_the_order_and_the_arrival_is_seen_at_once():
    async with EchoServer(delay=0.02) as echo:
        asking = asyncio.ensure_future(ask(echo, request("/1", close=False) + request("/2")))
        await echo.wait_for(2)
        assert not asking.done()
        assert (await asking).count(b"HTTP/1.1 200") == 2


async def test_waiting_for_more_than_comes_says_how_many_came(echo: EchoServer):
    await ask(echo, request())
    with pytest.raises(TimeoutError, match=r"1 of 3 requests arrived in 0.01 s"):
        await echo.wait_for(3, timeout=0.01)


async def test_it_can_forget_what_it_counts():
    async with EchoServer(keep=False) as echo:
        await ask(echo, request())
        assert (echo.count, echo.received) == (1, [])


@pytest.mark.parametrize(
    "options", [{}, {"fail": 1, "status": 503}, {"drop": 1}, {"delay": 0.01}], ids=["ok", "fails", "drops", "slow"]
)
async def test_what_nobody_looks_at_is_answered_the_same(options: Any):
    asked = request("/1", b"x", close=False) + request("/2", method="HEAD")
    answers = []
    for keep in (True, False):
        async with EchoServer(keep=keep, **options) as echo:
            answers.append((await ask(echo, asked), echo.count))
    assert answers[0] == answers[1]


async def test_an_answer_of_ones_own_needs_no_memory():
    async with EchoServer(keep=False) as echo:
        echo.answer = lambda arrival: (201, {"x-seen": arrival.headers["x-own"]}, arrival.body)
        answer = await ask(echo, request(body=b"body", x_own="mine"))
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert b"x-seen: mine\r\n" in answer
    assert answer.endswith(b"\r\n\r\nbody")
    assert echo.received == []


async def test_on_ipv6():
    if not socket.has_ipv6:
        pytest.fail("this machine's Python has no IPv6")
    async with EchoServer(host="::1") as echo:
        assert echo.url == f"http://[::1]:{echo.port}/"


def arrival(**fields: object) -> Arrival:
    given = {"at": 1_763_234_567_895, "method": "POST", "path": "/", "headers": {}, "body": b"", "status": 200}
    return Arrival(**(given | fields))  # type: ignore[arg-type]


def test_the_line_for_people():
    headers = {"webhook-id": "7-1", "x-onthedot-attempt": "2", "x-onthedot-scheduled-for": "2025-11-15T19:22:47.890Z"}
    line = arrival(headers=headers, body=b'{"a":1}').line()
    assert line == '19:22:47.895 POST / 200 run=7-1 attempt=2 late=5ms {"a":1}'
    assert arrival(status=0).line() == "19:22:47.895 POST / dropped"


@given(st.integers(0, 253_402_300_799_999))
def test_the_time_of_day(at: int):
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    assert arrival(at=at).line().split()[0] == moment.strftime("%H:%M:%S.%f")[:-3]


def test_the_line_stays_one_line_and_harmless():
    line = arrival(body=b"a\nb\x1b[31m\xff" + b"x" * 1000).line()
    assert "\n" not in line
    assert "\x1b" not in line
    assert line.endswith("…")
    assert len(line) < 400


def test_the_line_for_programs():
    seen = json.loads(arrival(body=b"\xff", headers={"x-onthedot-scheduled-for": "nonsense"}).json())
    assert seen["status"] == 200
    assert seen["late_ms"] is None
    assert seen["body"] == "�"


@pytest.mark.parametrize("form", ["people", "programs"])
async def test_the_program_prints_what_arrives_and_stops_in_order(form: str):
    port = free_port()
    program = f"from onthedot.echo import run_echo; run_echo(port={port}, json={form == 'programs'})"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert f"http://127.0.0.1:{port}/" in (await process.stderr.readline()).decode()
    echo = EchoServer(port=port)
    assert (await ask(echo, request("/x", b"hi"))).startswith(b"HTTP/1.1 200")
    line = (await process.stdout.readline()).decode()
    assert (json.loads(line)["path"] == "/x") if form == "programs" else line.endswith(" POST /x 200 hi\n")
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 0
    assert await process.stderr.read() == b"1 requests received\n"


async def test_a_taken_port_is_an_error(echo: EchoServer):
    with pytest.raises(OSError, match=r"(?i)address already in use"):
        async with EchoServer(port=echo.port):
            pass


async def test_hanging_up_on_everybody(echo: EchoServer):
    reader, writer = await asyncio.open_connection(echo.host, echo.port)
    await until(lambda: echo.connections)
    echo.close_connections()
    with pytest.raises(ConnectionError):
        if await reader.read() == b"":
            raise ConnectionResetError
    writer.close()
    assert (await ask(echo, request())).startswith(b"HTTP/1.1 200")
