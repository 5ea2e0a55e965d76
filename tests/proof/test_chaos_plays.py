"""What chaos brings along: programs and functions that call the receiver, a process with few descriptors, a diary of
what users did to jobs, two databases of which one takes over."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import asyncpg
import pytest

from onthedot.store import open_store
from proof.chaos.clock import TrueTime
from proof.chaos.diary import READ, Note, postgres_diary, timed
from proof.chaos.failover import running_pair
from proof.chaos.harm import Harm
from proof.chaos.life import Life
from proof.chaos.nodes import lookahead_of
from proof.chaos.receiver import decide
from proof.chaos.record import read_received
from proof.chaos.ring import Refused, ring
from proof.chaos.wire import PYTHON_PATH, Helper
from tests.services.postgres import PostgresMissing
from tests.services.waiting import until
from tests.store.hands import Hands, every

RUN = {"ONTHEDOT_RUN_ID": "7-1700000000000", "ONTHEDOT_JOB_ID": "7", "ONTHEDOT_ATTEMPT": "2"}


async def test_functions_and_programs_tell_the_receiver_which_run_they_are(tmp_path: Path, monkeypatch) -> None:
    received = tmp_path / "received.jsonl"
    receiver = await Helper.start("proof.chaos.receiver", str(received))
    try:
        url = f"http://127.0.0.1:{(await receiver.ask())['port']}"
        for name, value in RUN.items():
            monkeypatch.setenv(name, value)
        assert await asyncio.to_thread(ring, f"{url}/ok", 5) == 200
        with pytest.raises(Refused, match="500"):
            await asyncio.to_thread(ring, f"{url}/bad")
        program = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "proof.chaos.ring",
            env={**os.environ, "PYTHONPATH": PYTHON_PATH, "ONTHEDOT_PARAMS": json.dumps({"url": f"{url}/ok"})},
        )
        assert await program.wait() == 0
    finally:
        await receiver.stop()
    calls = read_received(received, TrueTime(), [], {}, {("7-1700000000000", 2): "n1"})
    assert [(call.run, call.job, call.token, call.answer, call.node) for call in calls] == [
        ("7-1700000000000", 7, 2, answer, "n1") for answer in ("ok", "error", "ok")
    ]


def test_a_receiver_may_ask_for_time() -> None:
    answers = {decide("later", "1-1", token, "up")[0] for token in range(50)}
    assert answers == {"later", "ok"}


def test_some_seeds_hold_runs_as_far_ahead_as_the_product_does_by_default() -> None:
    assert {lookahead_of(seed) for seed in range(6)} == {"2s", "500ms"}


async def test_a_process_is_started_with_few_descriptors(tmp_path: Path) -> None:
    """`serve` without a database says so; what counts is the limit it was born with."""
    zygote = await Helper.start("proof.chaos.zygote")
    life = None
    try:
        life = await Life.begin(
            zygote,
            ("--store", "postgresql://postgres@127.0.0.1:1/nothing"),
            directory=tmp_path,
            log=tmp_path / "log",
            environ={"HOME": str(tmp_path)},
            files=64,
        )
        pid = life.pid
        await until(lambda: _open_files(pid) == ["64", "64"], "its limits are 64")
    finally:
        if life is not None:
            await life.end()
        await zygote.stop()


def _open_files(pid: int) -> list[str]:
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(line.split()[3:5] for line in lines if line.startswith("Max open files"))


async def test_what_users_do_to_jobs_is_written_down(postgres_url: str) -> None:
    session = await asyncpg.connect(postgres_url)
    await session.execute(postgres_diary())
    store = await open_store(postgres_url)
    try:
        job = await Hands(store).job(every(60_000))
        await store.pause_job(1, job)
        await store.resume_job(1, job)
        await store.delete_job(1, job)
        notes = [note for row in await session.fetch(READ) if (note := Note.of(row)).job]
    finally:
        await store.close()
        await session.close()
    assert [(note.what, note.version) for note in notes] == [
        ("create", 1),
        ("update", 2),
        ("update", 3),
        ("delete", 3),
    ]
    assert [json.loads(note.spec).get("paused", False) for note in notes[:3]] == [False, True, False]
    at = [note.at for note in timed(notes, TrueTime())]
    assert at == sorted(at)


@pytest.mark.timeout(120)
async def test_a_synchronous_standby_has_all_that_was_acknowledged() -> None:
    proxy: Helper | None = None
    try:
        async with running_pair(sync=True) as pair:
            proxy = await Helper.start("proof.chaos.proxy", str(pair.server.port))
            door = await proxy.ask(do="open", door="n")
            url = f"postgresql://postgres@127.0.0.1:{door}/chaos"
            await pair.execute("CREATE TABLE kept (n int)")
            old = pair.server.port
            for number in range(2):
                session = await asyncpg.connect(url)
                await session.execute(f"INSERT INTO kept VALUES ({number})")
                await pair.fail_over(proxy)
                with pytest.raises((OSError, asyncpg.PostgresError, asyncpg.InterfaceError)):
                    await session.fetch("SELECT 1")
                session.terminate()
                session = await asyncpg.connect(url)
                rows = await session.fetch("SELECT n FROM kept ORDER BY n")
                await session.close()
                assert [row["n"] for row in rows] == list(range(number + 1))
                await pair.pair_up()
            assert pair.server.port != old
            assert pair.failovers == 2
    except PostgresMissing as why:
        pytest.skip(str(why))
    finally:
        if proxy is not None:
            await proxy.stop()


def test_a_failover_is_told_as_what_it_is() -> None:
    from proof.chaos.figures import figures_of
    from proof.checker.ledger import Ledger
    from proof.checker.story import Story

    nothing = Ledger(at=1, now=1, jobs=[], live=[], entries=[])
    harm = Harm(at=1, until=2, what="short_outage", detail="failover to a synchronous standby")
    assert figures_of(Story([], nothing), [], [harm], {}).kinds == {"failover": 1}
