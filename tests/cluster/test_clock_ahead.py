"""PostgreSQL's own clock is an hour ahead for a few seconds (libfaketime), under two real nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from proof.chaos.database import Database, running_database
from proof.chaos.faketime import FakeTime, find_faketime
from tests.cluster.nodes import post, runs_heard
from tests.cluster.walking import ask
from tests.services.missing import missing
from tests.services.waiting import until

HOUR = 3_600_000


@pytest.fixture
async def database() -> AsyncIterator[Database]:
    library = find_faketime()
    if library is None:
        missing("no libfaketime here: PostgreSQL's clock can't be set (Debian: faketime)")
    with TemporaryDirectory(prefix="onthedot-clock-") as directory:
        Path(directory).chmod(0o755)  # PostgreSQL runs as somebody else
        async with running_database(clock=FakeTime(library, Path(directory) / "offset")) as database:
            yield database


async def test_nobody_is_silent_for_that_hour(database, cluster, receiver):
    assert database.clock is not None
    nodes = [cluster.start("--store", database.url) for _ in range(2)]
    for node in nodes:
        await node.ready()
    target = {"type": "webhook", "url": receiver.url}
    jobs = [{"schedule": {"cron": "* * * * * *"}, "target": target} for _ in range(3)]
    await post(nodes[0], "/v1/jobs/batch", jobs, expect=200)
    await receiver.wait_for(9, timeout=30)
    database.clock.step(HOUR)
    there = receiver.count
    await receiver.wait_for(there + 18, timeout=30)
    database.clock.step(-HOUR)

    async def put_right() -> bool:
        notes = [(await ask(node, "GET", "/readyz"))[1].get("clock") for node in nodes]
        return any("repaired" in note for note in notes if note)

    await until(put_right, "one of them finds out", within=20)
    there = receiver.count
    began = asyncio.get_running_loop().time()
    await receiver.wait_for(there + 30, timeout=30)
    assert asyncio.get_running_loop().time() - began < 15, "three each second"
    assert set(runs_heard(receiver).values()) == {1}, "a slot was fired twice"
    rows = await database.fetch(
        "SELECT count(*) FROM history WHERE status = 'skipped' AND coalesce(until_slot, slot) >"
        " extract(epoch FROM clock_timestamp()) * 1000"
    )
    assert rows[0][0] == 0, "slots to come are still given up"
