"""Whoever can reach the port, without a key: memory stays, and others are answered meanwhile."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.api.abuse import ABUSES, GET, MIB, Attack, victim
from tests.targets.receivers import server as receiving

SECONDS = 1.0


@pytest.mark.alone
@pytest.mark.timeout(180)
async def test_the_server_keeps_its_memory_and_answers_others(tmp_path: Path) -> None:
    """One server for all of them: what they leave adds up."""
    async with victim(tmp_path, descriptors=4096) as server:
        await server.ask(GET % b"/openapi.json")  # it is made once, and kept
        at_first = server.memory()
        for name, abuse in ABUSES.items():
            attack = Attack(server)
            report = await attack.measured(abuse(attack), SECONDS)
            print(f"{name}: {report}")
            assert server.node.exit_code is None
            assert report.grown <= 50 * MIB, f"{name}: {report}"
            assert report.slowest < 5.0, f"{name}: {report}"
        grown = server.memory() - at_first
        assert grown <= 75 * MIB, f"{grown} bytes after all of them"


@pytest.mark.alone
async def test_receivers_that_never_end_their_answers_take_no_memory(tmp_path: Path) -> None:
    begun = 0

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal begun
        begun += 1
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n")
        while not writer.transport.is_closing():
            writer.write(b"x-more: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" * 1000)
            await writer.drain()

    async with victim(tmp_path) as server, receiving(endless) as hook:
        job = {"schedule": {"in": "1s"}, "target": {"type": "webhook", "url": hook}}
        body = json.dumps([job] * 150).encode()
        batch = b"POST /v1/jobs/batch HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
        assert (await server.ask(batch)).startswith(b"HTTP/1.1 200")
        attack = Attack(server)
        report = await attack.measured([], 4.0)
        print(f"150 receivers that never end: {report}")
        assert begun == 150
        assert report.grown <= 50 * MIB, report
        assert report.slowest < 2.0, report
