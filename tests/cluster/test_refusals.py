"""What `onthedot serve` refuses to start with, and the way out that it names."""

from __future__ import annotations

import socket

import pytest

from tests.services.process import NodeProcess


@pytest.fixture
def refused(tmp_path, free_port):
    async def serve(*args: str, env: dict[str, str] | None = None) -> tuple[int, str]:
        node = NodeProcess("serve", *args, directory=tmp_path, port=free_port(), env=env)
        try:
            return await node.exited(), node.output()
        finally:
            node.kill()

    return serve


async def test_beyond_this_machine_without_a_key(refused, tmp_path):
    code, told = await refused("--host", "0.0.0.0", "--port", "0")
    assert code == 2
    assert "there is no API key yet" in told
    assert "onthedot keys create --name admin --scope admin --store 'sqlite:///onthedot.db'" in told
    assert "Traceback" not in told


async def test_beyond_this_machine_with_a_key(launch, sqlite_url, tmp_path, free_port):
    made = NodeProcess("keys", "create", "--name", "a", "--store", sqlite_url, directory=tmp_path, port=free_port())
    assert await made.exited() == 0
    node = await launch("--host", "0.0.0.0", "--store", sqlite_url)
    assert await node.stop() == 0


async def test_a_port_that_is_taken(refused):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code, told = await refused("--port", str(taken.getsockname()[1]))
    assert code == 2
    assert "Address already in use" in told
    assert "choose another port with --port" in told
    assert "Traceback" not in told


async def test_several_workers_on_sqlite(refused):
    code, told = await refused("--workers", "2")
    assert code == 2
    assert "SQLite supports only one process" in told


async def test_a_second_process_on_the_same_file(refused, launch, sqlite_url, free_port):
    node = await launch("--store", sqlite_url)
    code, told = await refused("--store", sqlite_url, "--port", str(free_port()))
    assert code == 1
    assert "Traceback" not in told
    assert await node.stop() == 0


async def test_a_setting_nobody_knows(refused):
    code, told = await refused(env={"ONTHEDOT_PROT": "1"})
    assert code == 2
    assert "Did you mean ONTHEDOT_PORT?" in told


async def test_a_bad_jobs_file(refused, tmp_path):
    (tmp_path / "jobs.json").write_text('{"jobs": [\n{"identifier": "a", "path": "x"}]}')
    code, told = await refused("--port", "0")
    assert code == 1
    assert "jobs.json:2: jobs[0].function_name: required field is missing" in told


async def test_a_jobs_file_that_is_not_there(refused):
    code, told = await refused("--jobs", "gone.json")
    assert code == 1
    assert "gone.json: can't be read: No such file" in told


async def test_echo_on_a_port_that_is_taken(tmp_path, free_port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        echo = NodeProcess("echo", "--port", port, directory=tmp_path, port=free_port())
        assert await echo.exited() == 1
    assert "try another --port" in echo.output()
    assert "Traceback" not in echo.output()
