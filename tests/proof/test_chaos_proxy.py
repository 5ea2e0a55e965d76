"""The fault proxy and the receiver, with real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import aiohttp
import pytest

from proof.chaos.commits import Commits
from proof.chaos.proxy import Door
from proof.chaos.receiver import decide
from proof.chaos.wire import Helper


def message(kind: bytes, body: bytes) -> bytes:
    return kind + (len(body) + 4).to_bytes(4, "big") + body


SESSION = message(b"", (196608).to_bytes(4, "big") + b"user\x00me\x00\x00")


class Echo:
    """A server that answers each line, and remembers it."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    async def serve(self) -> asyncio.Server:
        return await asyncio.start_server(self._talk, "127.0.0.1", 0)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1000):
                self.seen.append(data)
                writer.write(b"answer to " + data)
        except ConnectionError:
            pass
        finally:
            writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[tuple[Echo, int]]:
    server = Echo()
    running = await server.serve()
    yield server, running.sockets[0].getsockname()[1]
    running.close()


@pytest.fixture
async def door(echo: tuple[Echo, int]) -> AsyncIterator[Door]:
    made = Door(echo[1])
    yield made
    made.close()


async def ask(port: int, text: bytes) -> bytes:
    """b"" when the connection broke."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(text)
        return await asyncio.wait_for(reader.read(1000), 5)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_what_is_not_hurt_passes(door: Door) -> None:
    assert await ask(await door.serve(), b"hello") == b"answer to hello"


async def test_the_answer_to_a_commit_is_swallowed_after_it_was_carried_out(door: Door, echo: tuple[Echo, int]) -> None:
    server, _ = echo
    port = await door.serve()
    door.swallow = 1
    reading, commit = SESSION + message(b"Q", b"SELECT 1\x00"), SESSION + message(b"Q", b"COMMIT;\x00")
    assert await ask(port, reading) == b"answer to " + reading
    assert await ask(port, commit) == b""
    assert commit in server.seen
    assert door.swallowed == 1
    assert await ask(port, commit) == b"answer to " + commit


def prepared(name: bytes, text: bytes) -> bytes:
    return message(b"P", name + b"\x00" + text + b"\x00\x00\x00")


def bound(name: bytes) -> bytes:
    return message(b"B", b"\x00" + name + b"\x00\x00\x00")


def test_a_write_commits_when_it_stands_alone() -> None:
    commits = Commits()
    assert not commits.sends((8).to_bytes(4, "big") + (80877103).to_bytes(4, "big") + SESSION)
    assert not commits.sends(prepared(b"w", b"WITH x AS (DELETE FROM runs) SELECT 1") + prepared(b"r", b"SELECT 1"))
    assert not commits.sends(bound(b"r"))
    assert commits.sends(bound(b"w"))
    assert not commits.sends(message(b"Q", b"BEGIN;\x00") + bound(b"w"))
    assert commits.sends(message(b"Q", b"COMMIT;\x00"))
    assert not commits.sends(message(b"Q", b"BEGIN;\x00") + message(b"Q", b"ROLLBACK;\x00"))
    assert commits.sends(bound(b"w"))
    assert not commits.sends(prepared(b"w", b"SELECT 2") + bound(b"w"))


def test_a_message_counts_when_it_is_whole() -> None:
    commits, data = Commits(), SESSION + message(b"Q", b"COMMIT;\x00")
    assert [commits.sends(data[n : n + 1]) for n in range(len(data))] == [False] * (len(data) - 1) + [True]


async def test_refused_until_healed(door: Door) -> None:
    port = await door.serve()
    door.refuses = True
    assert await ask(port, b"hello") == b""
    door.heal()
    assert await ask(port, b"hello") == b"answer to hello"


@pytest.mark.parametrize("way", ["up", "down"])
async def test_silence_one_way_holds_bytes_back_and_lets_them_go_late(
    door: Door, echo: tuple[Echo, int], way: Literal["up", "down"]
) -> None:
    server, _ = echo
    port = await door.serve()
    door.silence(way)
    asking = asyncio.create_task(ask(port, b"hello"))
    await asyncio.wait([asking], timeout=0.2)
    assert not asking.done()
    assert server.seen == ([] if way == "up" else [b"hello"])
    door.heal()
    assert await asking == b"answer to hello"


async def test_a_cut_reaches_all_connections(door: Door) -> None:
    port = await door.serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"hello")
    assert await reader.read(1000) == b"answer to hello"
    assert door.cut() == 1
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(reader.read(1000), 5) == b""
    writer.close()


async def test_the_receiver_writes_before_it_answers_and_never_deduplicates(tmp_path: Path) -> None:
    file = tmp_path / "received.jsonl"
    receiver = await Helper.start("proof.chaos.receiver", str(file))
    try:
        port = (await receiver.ask())["port"]
        headers = {"webhook-id": "7-1000", "x-onthedot-attempt": "1", "x-onthedot-job": "7", "x-chaos-node": "abc"}
        async with aiohttp.ClientSession() as session:
            for number in (1, 2):
                async with session.post(f"http://127.0.0.1:{port}/ok", headers=headers) as answer:
                    assert answer.status == 200
                assert len(file.read_text().splitlines()) == number
            async with session.post(f"http://127.0.0.1:{port}/bad", headers=headers) as answer:
                assert answer.status == 500
            assert (await receiver.ask(mode="down"))["calls"] == 3
            with pytest.raises(aiohttp.ClientError):
                await session.post(f"http://127.0.0.1:{port}/ok", headers=headers)
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert [line[2:7] for line in lines] == [
            ["7-1000", 7, 1, "abc", "ok"],
            ["7-1000", 7, 1, "abc", "ok"],
            ["7-1000", 7, 1, "abc", "error"],
            ["7-1000", 7, 1, "abc", "cut"],
        ]
    finally:
        await receiver.stop()


@pytest.mark.parametrize("mood", ["ok", "flaky", "bad", "fatal", "slow"])
@pytest.mark.parametrize("mode", ["up", "slow"])
def test_no_answer_is_near_the_time_out_of_the_nodes(mood: str, mode: str) -> None:
    decided = [decide(mood, f"{number}-1", 1, mode) for number in range(3000)]
    assert not [took for _, took in decided if 1500 <= took < 4000]
    assert decided == [decide(mood, f"{number}-1", 1, mode) for number in range(3000)]
    answers = {answer for answer, _ in decided}
    assert answers <= {"ok", "error", "refused"}
    assert ("error" in answers) == (mood in ("flaky", "bad"))
