"""Whoever can reach the port, without a key: memory stays, and others are answered meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.abuse import ABUSES, GET, MIB, Attack, victim

SECONDS = 2.0


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
