"""What comes under a head that was in order before goes straight into the group, and nobody can tell by the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from onthedot.api.app import App
from onthedot.api.fastpath.creates import FastPath
from onthedot.api.fastpath.head_cache import KEPT, LONGEST, Head, HeadCache, Known
from onthedot.api.fastpath.protocol import ApiProtocol
from onthedot.api.server.server import make_server
from onthedot.client import AsyncClient
from onthedot.clock import FakeClock
from onthedot.errors import StoreUnavailable
from onthedot.model.duration import DAY, Duration
from onthedot.model.job import JobSpec
from onthedot.model.key import ApiKeySpec
from onthedot.model.schedule import Schedule
from onthedot.model.targets.webhook import WebhookTarget
from onthedot.model.timer import TimerSpec
from onthedot.store import NewJob
from tests.api.conftest import listening, serving
from tests.services.waiting import until

JOB = {"schedule": {"in": "1d"}, "target": {"type": "webhook", "url": "http://127.0.0.1:5003/"}}
TIMER = {"hours": 1, "url": "http://127.0.0.1:5003/"}


def request(path: str, body: Any, *headers: str) -> bytes:
    raw = json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "host: localhost", f"content-length: {len(raw)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + raw


class Line:
    """One connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def ask(self, sent: bytes) -> tuple[int, dict[str, str], Any]:
        self.writer.write(sent)
        return await self.read()

    async def read(self) -> tuple[int, dict[str, str], Any]:
        """Status, headers but the date, body."""
        async with asyncio.timeout(20):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
            status, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            assert headers.pop("date")
            body = await self._reader.readexactly(int(headers["content-length"]))
        return int(status.split()[1]), headers, json.loads(body)

    async def ended(self) -> bool:
        async with asyncio.timeout(20):
            return not await self._reader.read()


class Place:
    """The app and connections to it, and what was taken straight into the group."""

    def __init__(self, app: App, port: int, connect: Any) -> None:
        self.app = app
        self.port = port
        self.connect = connect
        self.taken: list[str] = []


@pytest.fixture
async def place(tmp_path: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        app = await stack.enter_async_context(serving(f"sqlite:///{tmp_path}/heads.db", fake_clock))
        address = await stack.enter_async_context(listening(app))

        async def connect() -> Line:
            line = Line(*await asyncio.open_connection(*address))
            stack.callback(line.writer.close)
            return line

        here = Place(app, address[1], connect)
        take = FastPath.take

        def spy(self: FastPath, known: Known, *args: Any) -> bool:
            taken = take(self, known, *args)
            if taken:
                here.taken.append(known.head.route.path)
            return taken

        monkeypatch.setattr(FastPath, "take", spy)
        yield here


@pytest.mark.parametrize(("path", "body"), [("/v1/jobs", JOB), ("/timers", TIMER)])
async def test_the_second_time_the_answer_is_the_same(place: Place, path: str, body: Any) -> None:
    line = await place.connect()
    first = await line.ask(request(path, body))
    assert place.taken == []
    second = await line.ask(request(path, body))
    assert place.taken == [path]
    assert first[0] == second[0] == 201
    assert (first[2].pop("id"), second[2].pop("id")) == (1, 2)
    assert first[2] == second[2]
    assert (first[1].pop("location"), second[1].pop("location")) == (f"{path}/1", f"{path}/2")
    first[1]["content-length"] = second[1]["content-length"]  # fixed by the id's digits
    assert first[1] == second[1]
    assert list(first[1]) == list(second[1])


async def test_another_connection_knows_it_too(place: Place) -> None:
    await (await place.connect()).ask(request("/v1/jobs", JOB))
    assert (await (await place.connect()).ask(request("/v1/jobs", JOB)))[0] == 201
    assert place.taken == ["/v1/jobs"]


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({**JOB, "colour": "red"}, 422),
        ({**JOB, "target": {"type": "webhook", "url": "ftp://x"}}, 422),
        ({**JOB, "schedule": {"in": "0s"}}, 422),
        ({**JOB, "schedule": {"at": "2000-01-01T00:00:00Z"}}, 422),
        ([], 422),
        ("{", 422),
    ],
)
async def test_what_is_wrong_is_told_as_ever(place: Place, body: Any, wanted: int) -> None:
    line = await place.connect()
    fresh = await line.ask(request("/v1/jobs", body))
    assert (await line.ask(request("/v1/jobs", JOB)))[0] == 201
    known = await line.ask(request("/v1/jobs", body))
    assert known == fresh
    assert known[0] == wanted
    assert place.taken == []


@pytest.mark.parametrize(
    "body", [{**JOB, "schedule": {"in": "1s"}}, {**JOB, "schedule": {"cron": "0 3 * * *"}}], ids=["soon", "cron"]
)
async def test_what_needs_a_hint_or_a_look_takes_the_other_way(place: Place, body: Any) -> None:
    line = await place.connect()
    for _ in range(2):
        assert (await line.ask(request("/v1/jobs", body)))[0] == 201
    assert place.taken == []


async def test_a_key_of_a_job_that_is_taken(place: Place) -> None:
    line = await place.connect()
    named = request("/v1/jobs", {**JOB, "key": "k"})
    assert (await line.ask(named))[0] == 201
    status, headers, problem = await line.ask(named)
    assert (status, headers["content-type"]) == (409, "application/problem+json")
    assert "already used by job 1" in problem["detail"]
    assert place.taken == ["/v1/jobs"]


@pytest.mark.parametrize(("path", "body"), [("/v1/jobs", JOB), ("/timers", TIMER)])
async def test_a_repeat_of_a_request_is_recognised(place: Place, path: str, body: Any) -> None:
    line = await place.connect()

    async def ask(key: str, body: Any = body) -> tuple[int, dict[str, str], Any]:
        answer: tuple[int, dict[str, str], Any] = await line.ask(request(path, body, f"idempotency-key: {key}"))
        return answer

    first, second = await ask("a"), await ask("b")
    assert place.taken == [path], "the head is known by all but the key's value"
    assert (first[0], second[0]) == (201, 201)
    assert first[2]["id"] != second[2]["id"]
    assert (await ask("a"))[2] == first[2], "made the ordinary way, repeated the fast one"
    assert (await ask("b"))[2] == second[2]
    assert place.taken == [path] * 3
    status, _, told = await ask("b", {**body, "params": {}} if path == "/v1/jobs" else {**body, "minutes": 1})
    assert (status, told["type"]) == (422, "urn:onthedot:problem:idempotency-mismatch")


async def test_the_same_key_again_while_the_first_is_written(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [await place.connect() for _ in range(3)]
    await lines[0].ask(request("/v1/jobs", JOB, "idempotency-key: before"))
    held = Held(place.app, monkeypatch)
    for line in lines:
        line.writer.write(request("/v1/jobs", JOB, "idempotency-key: a"))
    await held.began.wait()
    held.go.set()
    answers = [await line.read() for line in lines]
    assert [status for status, _, _ in answers] == [201] * 3
    assert {made["id"] for _, _, made in answers} == {2}
    assert place.taken == ["/v1/jobs"] * 3


async def test_a_key_that_is_not_accepted(place: Place) -> None:
    line = await place.connect()
    assert (await line.ask(request("/v1/jobs", JOB, "idempotency-key: a")))[0] == 201
    for wrong in ("x" * 201, " "):
        assert (await line.ask(request("/v1/jobs", JOB, f"idempotency-key: {wrong}")))[0] == 422
    assert place.taken == []


async def test_what_the_client_sends_is_taken(place: Place) -> None:
    """With a key and an Idempotency-Key, and bodies of any length."""
    key = (await place.app.context.service.create_key(ApiKeySpec(name="w", scope="write"))).key
    async with AsyncClient(f"http://127.0.0.1:{place.port}", key) as client:
        made = [
            await client.create_job(
                JobSpec(
                    name="x" * n, schedule=Schedule(in_=Duration(DAY)), target=WebhookTarget(url="https://a.example/")
                )
            )
            for n in range(1, 5)
        ]
        timer = await client.create_timer(TimerSpec(hours=1, url="https://a.example/"))
        assert (timer.time_left, (await client.create_timer(TimerSpec(hours=1, url="https://a.example/"))).id) == (
            3600,
            6,
        )
    assert [job.id for job in made] == [1, 2, 3, 4]
    assert place.taken == ["/v1/jobs"] * 3 + ["/timers"]


async def test_a_key_is_asked_about_each_time(place: Place, fake_clock: FakeClock) -> None:
    service = place.app.context.service
    made = await service.create_key(ApiKeySpec(name="w", scope="write"))
    line = await place.connect()
    with_key, without = request("/timers", TIMER, f"authorization: Bearer {made.key}"), request("/timers", TIMER)
    assert [(await line.ask(with_key))[0] for _ in range(2)] == [201, 201]
    assert place.taken == ["/timers"]
    assert (await line.ask(without))[0] == 401
    await service.revoke_key(1, made.info.id)
    assert (await line.ask(with_key))[0] == 401
    assert place.taken == ["/timers"]


async def test_an_open_server_that_is_locked_meanwhile(place: Place) -> None:
    line = await place.connect()
    assert [(await line.ask(request("/timers", TIMER)))[0] for _ in range(2)] == [201, 201]
    await place.app.context.service.create_key(ApiKeySpec(name="r", scope="read"))
    assert (await line.ask(request("/timers", TIMER)))[0] == 401


async def test_the_time_is_asked_for_again_each_second(place: Place, fake_clock: FakeClock) -> None:
    line = await place.connect()
    assert [(await line.ask(request("/timers", TIMER)))[0] for _ in range(2)] == [201, 201]
    await fake_clock.advance(1.1)
    assert [(await line.ask(request("/timers", TIMER)))[0] for _ in range(2)] == [201, 201]
    assert place.taken == ["/timers"] * 2


async def test_more_than_one_request_at_once_and_half_of_one(place: Place) -> None:
    line = await place.connect()
    sent = request("/timers", TIMER)
    assert (await line.ask(sent))[0] == 201
    line.writer.write(sent + sent)
    assert [(await line.read())[0] for _ in range(2)] == [201, 201]
    assert place.taken == ["/timers"], "the second stood alone when its turn came"
    assert (await line.ask(sent[:-10] + sent[-10:]))[2]["id"] == 4
    assert place.taken == ["/timers"] * 2


class Held:
    """A store that is let go on, or away, when the test says so."""

    def __init__(self, app: App, monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> None:
        self.began, self.go = asyncio.Event(), asyncio.Event()
        service = app.context.service

        async def held(items: Sequence[NewJob]) -> Any:
            self.began.set()
            await self.go.wait()
            if error is not None:
                raise error
            return await service.store.create_jobs(items)

        monkeypatch.setattr(service.creates, "_write", held)


async def test_a_store_that_is_away(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    line = await place.connect()
    await line.ask(request("/timers", TIMER))
    Held(place.app, monkeypatch, StoreUnavailable("away")).go.set()
    status, headers, problem = await line.ask(request("/timers", TIMER))
    assert (status, problem["status"], headers["retry-after"]) == (503, 503, "1")
    assert place.taken == ["/timers"]


async def test_what_comes_before_the_answer_waits_in_line(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    line = await place.connect()
    await line.ask(request("/timers", TIMER))
    held = Held(place.app, monkeypatch)
    line.writer.write(request("/timers", TIMER))
    await held.began.wait()
    line.writer.write(b"GET /timers/1 HTTP/1.1\r\nhost: localhost\r\n\r\n")
    held.go.set()
    assert (await line.read())[2]["id"] == 2
    assert (await line.read())[2]["id"] == 1


async def test_who_leaves_before_the_answer_harms_nobody(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its timer is made all the same, and the other in its group is answered."""
    leaves, stays = await place.connect(), await place.connect()
    await leaves.ask(request("/timers", TIMER))
    held, gone = Held(place.app, monkeypatch), asyncio.Event()
    lost = ApiProtocol.connection_lost

    def spy(self: ApiProtocol, exc: Exception | None) -> None:
        lost(self, exc)
        gone.set()

    monkeypatch.setattr(ApiProtocol, "connection_lost", spy)
    leaves.writer.write(request("/timers", TIMER))
    await held.began.wait()
    stays.writer.write(request("/timers", TIMER))
    leaves.writer.transport.abort()
    await gone.wait()
    held.go.set()
    assert (await stays.read())[2]["id"] == 3
    assert place.taken == ["/timers"] * 2


async def test_an_orderly_stop_waits_for_the_answer(
    tmp_path: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = ApiProtocol.shutdown
    async with serving(f"sqlite:///{tmp_path}/stop.db", fake_clock) as app:
        async with listening(app) as address:
            line = Line(*await asyncio.open_connection(*address))
            await line.ask(request("/timers", TIMER))
            held = Held(app, monkeypatch)

            def stopping(self: ApiProtocol) -> None:
                stop(self)
                held.go.set()

            monkeypatch.setattr(ApiProtocol, "shutdown", stopping)
            line.writer.write(request("/timers", TIMER))
            await held.began.wait()
        status, headers, _ = await line.read()
        assert (status, headers["connection"]) == (201, "close"), "the server told it that it goes"
        line.writer.close()


async def test_a_stop_that_waits_no_longer_hangs_up(
    tmp_path: Path, fake_clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(f"sqlite:///{tmp_path}/stop.db", fake_clock) as app:
        server = make_server(app, "127.0.0.1", 0, grace_seconds=0)
        server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]  # pytest's own stay
        serve = asyncio.create_task(server.serve())
        await until(lambda: server.started, "the server listens")
        line = Line(*await asyncio.open_connection(*server.servers[0].sockets[0].getsockname()[:2]))
        await line.ask(request("/timers", TIMER))
        held = Held(app, monkeypatch)
        line.writer.write(request("/timers", TIMER))
        await held.began.wait()
        server.should_exit = True
        await serve
        assert await line.ended()
        line.writer.close()
        held.go.set()


async def test_a_quiet_connection_is_closed_only_when_it_was_quiet_long_enough(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ApiProtocol] = []
    begin = ApiProtocol.connection_made

    def spy(self: ApiProtocol, transport: asyncio.Transport) -> None:
        begin(self, transport)
        made.append(self)

    monkeypatch.setattr(ApiProtocol, "connection_made", spy)
    line = await place.connect()
    for _ in range(2):
        await line.ask(request("/timers", TIMER))
    (connection,) = made

    def alarm() -> object:
        return connection.timeout_keep_alive_task

    before = alarm()
    connection.timeout_keep_alive_handler()
    assert alarm() not in (None, before), "rang too soon, and was set anew"
    assert (await line.ask(request("/timers", TIMER)))[0] == 201
    held = Held(place.app, monkeypatch)
    line.writer.write(request("/timers", TIMER))
    await held.began.wait()
    connection.timeout_keep_alive_handler()
    assert alarm() is None, "rang while it was answered: the answer sets it"
    held.go.set()
    assert (await line.read())[0] == 201
    assert alarm() is not None
    connection._answered_at -= connection.timeout_keep_alive
    connection.timeout_keep_alive_handler()
    assert await line.ended()


HEAD = Head(object(), None, True)


def parsed(sent: bytes) -> list[tuple[bytes, bytes]]:
    lines = sent.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]
    return [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]


def test_heads_are_known_by_their_very_bytes() -> None:
    heads, sent = HeadCache(), request("/timers", TIMER)
    heads.keep(sent, parsed(sent), HEAD)
    assert heads.find(sent) == Known(HEAD, None, sent.partition(b"\r\n\r\n")[2])
    assert heads.find(sent + b"x") is None
    assert heads.find(sent[:-1]) is None
    assert heads.find(sent.replace(b"host", b"Host")) is None
    assert heads.find(sent.replace(b"content-length", b"Content-Length")) is None
    assert heads.find(b"") is None


def test_the_idempotency_key_and_the_length_vary() -> None:
    heads, sent = HeadCache(), request("/timers", TIMER, "Idempotency-Key: a", "accept: */*")
    heads.keep(sent, parsed(sent), HEAD)
    other = request("/timers", {**TIMER, "seconds": 1}, "Idempotency-Key: other one", "accept: */*")
    assert heads.find(other) == Known(HEAD, "other one", other.partition(b"\r\n\r\n")[2])
    assert heads.find(request("/timers", TIMER, "accept: */*")) is None
    for key in (b"", b" a", b"a ", b"a\tb", b"a\x00", b"\xc3\xa9", b"a\rb", b"a\nb", b"x" * 201):
        assert heads.find(sent.replace(b"Key: a", b"Key: " + key)) is None, key


@pytest.mark.parametrize(
    "headers",
    [
        ["Idempotency-Key: a", "idempotency-key: b"],
        ["IDEMPOTENCY-KEY: a"],
        ["IDEMPOTENCY-KEY: a", "idempotency-key: b"],
        ["idempotency-key:a"],
        ["idempotency-key: a "],
        ["idempotency-key: "],
        ["content-length: 1"],
        ["CONTENT-LENGTH: 1"],
    ],
)
def test_what_is_given_twice_or_written_oddly_is_not_kept(headers: list[str]) -> None:
    heads, sent = HeadCache(), request("/timers", TIMER, *headers)
    heads.keep(sent, parsed(sent), HEAD)
    assert heads.find(sent) is None


def test_a_head_that_ends_elsewhere_is_not_kept() -> None:
    heads = HeadCache()
    for sent in (
        b"POST / HTTP/1.1\ncontent-length: 7\n\nabc\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 7\n\nabc\r\n\r\n",
        b"POST / HTTP/1.1\r\ncontent-length: 0\r\nx: %s\r\n\r\n" % (b"x" * LONGEST),
        b"POST / HTTP/1.1\r\n\r\n",
    ):
        heads.keep(sent, parsed(sent), HEAD)
        assert heads.find(sent) is None


def test_no_more_are_kept_than_there_is_room_for() -> None:
    heads = HeadCache()
    sent = [b"POST /%d HTTP/1.1\r\ncontent-length: 0\r\n\r\n" % n for n in range(KEPT + 1)]
    for each in sent:
        heads.keep(each, parsed(each), HEAD)
    assert heads.find(sent[0]) is None
    assert heads.find(sent[-1]) is not None
