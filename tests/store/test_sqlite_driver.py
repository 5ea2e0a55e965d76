"""SQLite: one process, one file, errors that say what to do."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from onthedot.clock import FakeClock, SystemClock
from onthedot.errors import SettingsError, StoreError, StoreInUse, StoreMoved, StoreUnavailable
from onthedot.store import JobFilter, open_store
from onthedot.store.driver import Collision, Transaction
from onthedot.store.sqlite.connection import _statements
from onthedot.store.sqlite.driver import SqliteDriver
from tests.services.waiting import until
from tests.store.given import create


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "otd.db"


async def pragma(driver: SqliteDriver, name: str, *, read: bool) -> object:
    async def body(tx: Transaction) -> object:
        return (await tx.sql(f"PRAGMA {name}"))[0][0]  # type: ignore[index]

    return await (driver.read if read else driver.transact_slow)(body)


async def test_durable_and_private(path: Path) -> None:
    driver = SqliteDriver(str(path), SystemClock())
    try:
        assert await pragma(driver, "journal_mode", read=False) == "wal"
        assert await pragma(driver, "synchronous", read=False) == 2
        assert await pragma(driver, "busy_timeout", read=True) == 5000
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        for beside in path.parent.iterdir():
            assert stat.S_IMODE(beside.stat().st_mode) == 0o600, beside
    finally:
        await driver.close()


async def test_readers_can_not_write(path: Path) -> None:
    driver = SqliteDriver(str(path), SystemClock())

    async def body(tx: Transaction) -> None:
        await tx.sql("CREATE TABLE t (x)")

    try:
        with pytest.raises(StoreUnavailable):
            await driver.read(body)
        await driver.transact_slow(body)
    finally:
        await driver.close()


async def test_what_was_written_is_there_after_reopening(path: Path) -> None:
    first = await open_store(f"sqlite:///{path}")
    job = await create(first, key="a")
    await first.close()
    second = await open_store(f"sqlite:///{path}")
    assert await second.get_job_by_key(1, "a") == job
    await second.close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["otd.db", "otd.db-lock"]


@pytest.mark.parametrize("threads", [True, False])
async def test_memory(threads: bool) -> None:
    store = await open_store("sqlite:///:memory:", clock=FakeClock(), threads=threads)
    await create(store)
    assert len((await store.list_jobs(1, JobFilter())).items) == 1
    other = await open_store("sqlite:///:memory:")
    assert (await other.list_jobs(1, JobFilter())).items == []
    await store.close()
    await other.close()


async def test_without_threads_everything_happens_in_turn(path: Path) -> None:
    """The simulation repeats exactly only if no thread decides an order."""
    clock = FakeClock()
    store = await open_store(f"sqlite:///{path}", clock=clock, threads=False)
    assert await store.now() == clock.now_ms()
    answers = await asyncio.gather(*(create(store, key=f"k{n}") for n in range(5)))
    assert [answer.id for answer in answers] == [1, 2, 3, 4, 5]
    assert len((await store.list_jobs(1, JobFilter())).items) == 5
    await store.close()


async def test_many_readers_and_a_writer_at_once(path: Path) -> None:
    store = await open_store(f"sqlite:///{path}")
    jobs = await asyncio.gather(*(create(store) for _ in range(20)))
    more = asyncio.ensure_future(create(store))
    pages = await asyncio.gather(*(store.list_jobs(1, JobFilter()) for _ in range(20)))
    assert all(len(page.items) >= 20 for page in pages)
    assert (await more).version == 1
    assert len({job.id for job in jobs}) == 20
    await store.close()


async def test_a_collision_is_told_apart(path: Path) -> None:
    store = await open_store(f"sqlite:///{path}")

    async def body(tx: Transaction) -> None:
        await tx.sql("INSERT INTO tenants (name, created_at) VALUES ('default', 0)")

    with pytest.raises(Collision):
        await store.driver.transact_slow(body)
    await store.close()


class TestHints:
    async def test_within_the_process(self, path: Path) -> None:
        store = await open_store(f"sqlite:///{path}")
        heard: list[str] = []
        end = store.listen(heard.append)
        await store.notify("due")
        await asyncio.sleep(0)
        assert heard == ["due"]
        end()
        end()
        await store.notify("due")
        await asyncio.sleep(0)
        assert heard == ["due"]
        await store.close()


class TestOneProcess:
    async def test_the_same_process_twice(self, path: Path) -> None:
        store = await open_store(f"sqlite:///{path}")
        with pytest.raises(StoreInUse, match=f"this process .{os.getpid()}"):
            await open_store(f"sqlite:///{path}")
        (path.parent / "link").symlink_to(path.parent)
        with pytest.raises(StoreInUse):
            await open_store(f"sqlite:///{path.parent / 'link' / path.name}")
        assert await store.now() > 0
        await store.close()
        again = await open_store(f"sqlite:///{path}")
        await again.close()

    async def test_another_process(self, path: Path) -> None:
        child = _child(path)
        try:
            with pytest.raises(StoreInUse) as caught:
                await open_store(f"sqlite:///{path}")
            assert f"process {child.pid}" in str(caught.value)
            assert "--url" in str(caught.value)
        finally:
            child.send_signal(signal.SIGKILL)
            child.communicate()
        store = await open_store(f"sqlite:///{path}")
        assert (await store.get_job_by_key(1, "kept")).version == 1
        await store.close()

    async def test_by_another_name(self, path: Path) -> None:
        """What is locked is the file, not what lies beside one of its names."""
        child = _child(path)
        other = path.with_name("hard")
        other.hardlink_to(path)
        try:
            with pytest.raises(StoreInUse):
                await open_store(f"sqlite:///{other}")
        finally:
            child.send_signal(signal.SIGKILL)
            child.communicate()

    async def test_nothing_is_acknowledged_that_a_replaced_file_would_lose(self, path: Path) -> None:
        store = await open_store(f"sqlite:///{path}")
        path.with_name("new").write_bytes(b"")
        path.with_name("new").replace(path)
        with pytest.raises(StoreMoved, match="replaced"):
            await create(store)
        await store.close()

    async def test_a_forked_worker_does_not_keep_the_lock(self, path: Path) -> None:
        """The node is killed, its worker lives on a moment: the next start must not be refused."""
        child = _child(path, fork=True)
        assert child.stdout is not None
        worker = int(child.stdout.readline())
        try:
            child.send_signal(signal.SIGKILL)
            child.wait()
            os.kill(worker, 0)

            async def opened() -> bool:
                """Not at once: the worker lets go of it when it first gets a core."""
                try:
                    store = await open_store(f"sqlite:///{path}")
                except StoreInUse:
                    return False
                await store.close()
                return True

            await until(opened, "the worker has let go of the lock")
        finally:
            os.kill(worker, signal.SIGKILL)
            child.stdout.close()


def _child(path: Path, *, fork: bool = False) -> subprocess.Popen[str]:
    """A process that opened the store, committed a job, and holds on."""
    program = f"""
        import asyncio, os, time
        from onthedot.store import open_store
        from tests.store.given import create
        async def main():
            store = await open_store("sqlite:///{path}")
            await create(store, key="kept")
        loop = asyncio.new_event_loop()
        loop.run_until_complete(main())
        print("ready", flush=True)
        if {fork}:
            worker = os.fork()
            if worker:
                print(worker, flush=True)
        while True:
            time.sleep(60)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


async def test_a_log_that_a_crash_left_behind_is_no_loss(path: Path) -> None:
    """The file was removed and its log was not: SQLite removes that, and we take the new one for ours."""
    path.with_name("otd.db-wal").write_bytes(b"x" * 5000)
    store = await open_store(f"sqlite:///{path}")
    await create(store, key="a")
    await store.close()


async def test_a_second_opening_drops_no_lock_of_the_first(path: Path) -> None:
    """Closing any descriptor of the file drops this process's record locks on it: another program could then remove the
    log that is in use."""
    store = await open_store(f"sqlite:///{path}")
    for name in ("link", "hard"):
        other = path.with_name(name)
        other.symlink_to(path) if name == "link" else other.hardlink_to(path)
        with pytest.raises(StoreInUse):
            await open_store(f"sqlite:///{other}")
    looking = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM jobs').fetchone()"
    subprocess.run([sys.executable, "-c", looking, str(path)], check=True, capture_output=True)
    assert path.with_name("otd.db-wal").exists(), "the last one to close removes it, and we are still there"
    await create(store, key="a")
    await store.close()


class TestClearErrors:
    @pytest.mark.parametrize("url", ["mysql://x", "sqlite://", "sqlite:///", "", "onthedot.db", "postgresql"])
    async def test_no_address(self, url: str) -> None:
        with pytest.raises(SettingsError, match="sqlite:///path"):
            await open_store(url)

    async def test_a_password_is_not_repeated(self) -> None:
        with pytest.raises(SettingsError) as caught:
            await open_store("mysql://user:hunter2@host/db")
        assert "hunter2" not in str(caught.value)

    async def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="does not exist; create it"):
            await open_store(f"sqlite:///{tmp_path}/no/where.db")

    async def test_a_folder(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="is a directory"):
            await open_store(f"sqlite:///{tmp_path}")

    async def test_not_writable(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(StoreError, match="is not writable"):
            await open_store(f"sqlite:///{path}")

    async def test_no_database(self, path: Path) -> None:
        path.write_text("this is no database, but long enough to be looked at" * 100)
        with pytest.raises(StoreError, match="as a SQLite store"):
            await open_store(f"sqlite:///{path}")
        path.unlink()
        store = await open_store(f"sqlite:///{path}")
        await store.close()

    async def test_too_old(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 2))
        with pytest.raises(StoreError, match="too old"):
            await open_store(f"sqlite:///{path}")

    async def test_a_full_disk_is_trouble_not_a_mistake(self, path: Path) -> None:
        store = await open_store(f"sqlite:///{path}")

        async def shrink(tx: Transaction) -> None:
            await tx.sql("PRAGMA max_page_count = 1")

        await store.driver.transact_slow(shrink)
        with pytest.raises(StoreUnavailable, match="full"):
            for _ in range(1000):
                await create(store, params={"x": "y" * 10_000})
        jobs = (await store.list_jobs(1, JobFilter())).items
        assert all(job.params for job in jobs)
        await store.close()


def test_scripts_are_taken_apart() -> None:
    script = "CREATE TABLE a (x TEXT DEFAULT ';'); -- a comment; with one\nINSERT INTO a VALUES ('b;c');\n-- the end\n"
    statements = _statements(script)
    raw = sqlite3.connect(":memory:")
    for statement in statements:
        raw.execute(statement)
    assert raw.execute("SELECT * FROM a").fetchall() == [("b;c",)]
    raw.close()


class TestAtOnce:
    async def test_cancelled_before_the_commit_nothing_stays(self, path: Path) -> None:
        driver = SqliteDriver(str(path), SystemClock())
        begun, go_on = threading.Event(), threading.Event()

        async def body(tx: Transaction) -> None:
            await tx.sql("CREATE TABLE t (x)")
            begun.set()
            go_on.wait(10)

        try:
            task = asyncio.ensure_future(driver.transact(body))
            await asyncio.to_thread(begun.wait, 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            go_on.set()
            await driver.transact_slow(lambda tx: tx.sql("CREATE TABLE t (x)"))
        finally:
            go_on.set()
            await driver.close()

    async def test_it_waits_for_nothing_else(self, path: Path) -> None:
        driver = SqliteDriver(str(path), SystemClock())

        async def body(tx: Transaction) -> None:
            await tx.sql("CREATE TABLE t (x)")
            await asyncio.sleep(0)

        try:
            with pytest.raises(RuntimeError, match="other than its transaction"):
                await driver.transact(body)
            await driver.transact_slow(lambda tx: tx.sql("CREATE TABLE t (x)"))
        finally:
            await driver.close()
