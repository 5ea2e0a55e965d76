"""Server-sent events: what happens reaches who listens, and nobody else."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from onthedot.api.http.sse import ASK_AGAIN, BEHIND_MOST, TOLD_AT_ONCE, EventStreams
from onthedot.clock import FakeClock
from onthedot.telemetry import Telemetry


@pytest.fixture
def wire() -> Telemetry:
    return Telemetry()


@pytest.fixture
def streams(wire: Telemetry, fake_clock: FakeClock) -> EventStreams:
    return EventStreams(wire, fake_clock, most=2)


async def begin(streams: EventStreams, tenant: int = 1):
    """A stream that has begun to listen."""
    stream = streams.listen(tenant)
    assert await anext(stream) == b"retry: 2000\n\n"
    return stream


def read(piece: bytes) -> tuple[str, dict[str, object]]:
    first, second = piece.decode().strip().split("\n")
    return first.removeprefix("event: "), json.loads(second.removeprefix("data: "))


async def test_an_event_is_a_name_and_its_fields_without_the_tenant(streams, wire):
    stream = await begin(streams)
    wire.emit("run.finished", tenant=1, job_id=7, status="DONE")
    name, fields = read(await anext(stream))
    assert name == "run.finished"
    assert fields == {"job_id": 7, "status": "DONE", "at": "2023-11-14T22:13:20.000Z"}
    await stream.aclose()


async def test_nothing_of_another_tenant_and_nothing_that_names_none(streams, wire):
    stream = await begin(streams, tenant=1)
    wire.emit("run.finished", tenant=2, job_id=1)
    wire.emit("run.finished", job_id=1)
    wire.emit("job.quarantined", job_id=1, reason="x")
    wire.emit("node.lost", node="a")
    assert read(await anext(stream))[0] == "node.lost"
    await stream.aclose()


async def test_what_concerns_everybody_comes_without_its_error_text(streams, wire):
    stream = await begin(streams)
    wire.emit("store.refused", error="key (tenant, key)=(2, their-secret) exists")
    wire.emit("store.unavailable", error="connection to 10.0.0.7 refused")
    name, fields = read(await anext(stream))
    assert (name, set(fields)) == ("store.unavailable", {"at"})
    await stream.aclose()


async def test_a_newline_in_a_field_can_not_forge_an_event(streams, wire):
    stream = await begin(streams)
    wire.emit("run.finished", tenant=1, error="x\n\nevent: evil\ndata: {}\n\n")
    piece = await anext(stream)
    assert piece.count(b"\n") == 3
    assert read(piece)[1]["error"] == "x\n\nevent: evil\ndata: {}\n\n"
    await stream.aclose()


async def test_a_field_of_any_kind_is_written_somehow(streams, wire):
    stream = await begin(streams)
    wire.emit("run.finished", tenant=1, odd=object, error=ValueError("x"))
    assert read(await anext(stream))[1]["error"] == "x"
    await stream.aclose()


async def test_who_falls_behind_loses_the_oldest_and_is_told(streams, wire):
    stream = await begin(streams)
    for number in range(BEHIND_MOST + 5):
        wire.emit("run.finished", tenant=1, number=number)
    assert read(await anext(stream))[1]["number"] == 5
    rest = [read(await anext(stream)) for _ in range(BEHIND_MOST - 1)]
    assert rest[-1][1]["number"] == BEHIND_MOST + 4
    assert await anext(stream) == b'event: dropped\ndata: {"n": 5}\n\n'
    await stream.aclose()


async def test_a_quiet_stream_says_that_it_is_still_there(streams, fake_clock):
    stream = await begin(streams)
    waiting = asyncio.ensure_future(anext(stream))
    await fake_clock.advance(14)
    assert not waiting.done()
    await fake_clock.advance(2)
    assert await waiting == b": still here\n\n"
    await stream.aclose()


async def test_events_from_another_thread_arrive(streams, wire):
    stream = await begin(streams)
    waiting = asyncio.ensure_future(anext(stream))
    thread = threading.Thread(target=lambda: wire.emit("store.back", error=None))
    thread.start()
    assert read(await waiting)[0] == "store.back"
    thread.join()
    await stream.aclose()


async def test_closing_ends_every_stream_and_forgets_it(streams, wire):
    first, second = await begin(streams), await begin(streams)
    assert (streams.count, streams.full) == (2, True)
    waiting = asyncio.gather(*(asyncio.ensure_future(_rest(stream)) for stream in (first, second)))
    await asyncio.sleep(0)
    streams.close()
    assert await waiting == [[], []]
    assert (streams.count, streams.full) == (0, False)
    wire.emit("node.lost", node="nobody hears it")


async def test_a_client_that_goes_is_forgotten(streams, wire):
    stream = await begin(streams)
    await stream.aclose()
    assert streams.count == 0
    assert not wire._subscribers


async def _rest(stream) -> list[bytes]:
    return [piece async for piece in stream]


async def test_a_stream_ends_when_who_listens_no_longer_may(streams, wire, fake_clock):
    answers = [True, True, False]

    async def may_listen() -> bool:
        return answers.pop(0)

    stream = streams.listen(1, may_listen)
    assert await anext(stream) == b"retry: 2000\n\n"
    rest = asyncio.ensure_future(anext(stream, None))
    await fake_clock.advance(2 * ASK_AGAIN)
    wire.emit("run.finished", tenant=1, job_id=7)
    assert await rest is None
    assert streams.count == 0


async def test_a_stream_ends_when_nobody_can_tell(streams):
    async def may_listen() -> bool:
        raise RuntimeError("unforeseen")

    stream = streams.listen(1, may_listen)
    assert await anext(stream) == b"retry: 2000\n\n"
    assert await anext(stream, None) is None


async def test_a_digest_tells_at_most_once_a_second_that_anything_happened(streams, wire, monkeypatch):
    monkeypatch.setattr("onthedot.api.http.sse.DIGEST_SECONDS", 0.2)
    mine, theirs = streams.listen_digest(1), streams.listen_digest(2)
    for stream in (mine, theirs):
        assert await anext(stream) == b"retry: 2000\n\n"
    first = asyncio.ensure_future(anext(mine))
    other = asyncio.ensure_future(anext(theirs))
    await asyncio.sleep(0)
    for _ in range(50):
        wire.emit("run.finished", tenant=1, job_id=7)
    assert read(await first) == ("changed", {"at": "2023-11-14T22:13:20.000Z"})
    wire.emit("cluster.changed")
    began = asyncio.get_running_loop().time()
    assert read(await anext(mine))[0] == "changed"
    assert asyncio.get_running_loop().time() - began >= 0.1
    assert read(await other)[0] == "changed"
    for stream in (mine, theirs):
        await stream.aclose()
    assert (streams.count, wire.heard) == (0, False)


async def test_many_listeners_of_a_digest_are_told_in_groups(streams, wire):
    """All at once they would keep the loop from calls that are due."""
    listeners = [streams.listen_digest(1) for _ in range(3 * TOLD_AT_ONCE)]
    for stream in listeners:
        assert await anext(stream) == b"retry: 2000\n\n"
    told = [asyncio.ensure_future(anext(stream)) for stream in listeners]
    await asyncio.sleep(0)
    wire.emit("run.finished", tenant=1, job_id=7)
    await asyncio.wait(told, return_when=asyncio.FIRST_COMPLETED)
    assert sum(each.done() for each in told) <= TOLD_AT_ONCE
    assert {read(piece)[0] for piece in await asyncio.gather(*told)} == {"changed"}
    for stream in listeners:
        await stream.aclose()
