"""The provisioning itself: what the other tests stand on has to work, and the leak checks have to find leaks."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from onthedot.store import Store
from tests.services.leaks import children, outlived, sessions_left, sockets, sockets_left, tasks_left
from tests.services.ports import free_port
from tests.services.postgres import PostgresMissing, PostgresServer, find_binaries

ROOT = Path(__file__).resolve().parents[2]


async def test_a_test_gets_an_empty_database_that_promises_durability(empty_postgres_url: str) -> None:
    connection = await asyncpg.connect(empty_postgres_url)
    try:
        assert await connection.fetchval("SHOW fsync") == "on"
        assert await connection.fetchval("SHOW synchronous_commit") == "on"
        assert await connection.fetchval("SELECT count(*) FROM pg_stat_user_tables") == 0
    finally:
        await connection.close()


async def test_a_test_gets_a_migrated_database_of_its_own(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    try:
        assert await connection.fetchval("SELECT count(*) FROM jobs") == 0
    finally:
        await connection.close()


async def test_a_store_is_open_on_both(store: Store) -> None:
    assert await store.now() > 1_700_000_000_000


async def test_the_server_never_runs_as_root(postgres_server: PostgresServer) -> None:
    assert postgres_server.process is not None
    status = Path(f"/proc/{postgres_server.process.pid}/status").read_text()
    uids = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
    assert "0" not in uids


def test_binaries_can_be_chosen_and_a_wrong_choice_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_BIN", "/nowhere/bin")
    with pytest.raises(PostgresMissing, match="PG_BIN=/nowhere/bin"):
        find_binaries()


async def test_an_open_connection_is_found(postgres_server: PostgresServer, empty_postgres_url: str) -> None:
    database = empty_postgres_url.rsplit("/", 1)[1]
    connection = await asyncpg.connect(empty_postgres_url)
    assert len(postgres_server.sessions(database)) == 1
    await connection.close()
    assert sessions_left(postgres_server, database) == []


async def test_a_forgotten_task_is_found_and_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.services.leaks.PATIENCE", 0.01)
    forgotten = asyncio.create_task(asyncio.Event().wait(), name="forgotten")
    left = await tasks_left()
    assert len(left) == 1
    assert "forgotten" in left[0]
    with pytest.raises(asyncio.CancelledError):
        await forgotten


def test_a_forgotten_process_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.services.leaks.PATIENCE", 0.01)
    before = children()
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        left = outlived(before)
        assert [line for line in left if line.startswith(f"{process.pid} ")]
    finally:
        process.communicate(b"\n")
    assert outlived(before) == []


def test_a_forgotten_socket_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.services.leaks.PATIENCE", 0.01)
    before = sockets()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            assert any(f" to {port}," in line for line in sockets_left(before))
    assert sockets_left(before) == []


def test_ports_are_never_given_twice() -> None:
    assert len({free_port() for _ in range(50)}) == 50


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a port is only looked for")
def test_a_port_is_kept_for_its_server_and_refuses_until_then() -> None:
    port = free_port()
    for _ in range(2):  # a server that is started again finds it too
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        with pytest.raises(OSError, match="in use"), socket.socket() as other:
            other.bind(("127.0.0.1", port))
        with socket.create_server(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)):
            pass


@pytest.mark.parametrize(("ci", "outcome"), [({}, "1 skipped"), ({"CI": "true"}, "1 error")])
def test_a_missing_server_is_a_failure_in_ci_and_a_reason_elsewhere(ci: dict[str, str], outcome: str) -> None:
    """Through pytest itself, as it is what decides between the two."""
    this = f"{Path(__file__).relative_to(ROOT)}::{test_the_server_never_runs_as_root.__name__}"
    environ = {"PATH": os.environ["PATH"], "PG_BIN": "/nowhere/bin", **ci}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:schemathesis", this]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert outcome in done.stdout.splitlines()[-1]
    assert "PG_BIN=/nowhere/bin holds no postgres" in done.stdout
