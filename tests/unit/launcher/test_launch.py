"""From settings to what is launched."""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path

import pytest

from onthedot.errors import SettingsError, Unreadable
from onthedot.launcher import launch_scheduler
from onthedot.launcher.launch import jobs_file_of
from onthedot.launcher.serving import Stopping, listening
from onthedot.launcher.worker import decode_order, encode_order
from onthedot.model.duration import Duration
from onthedot.settings import CommandSetting, Settings, load_settings


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_an_order_to_a_worker_arrives_as_it_was_given():
    settings = Settings(
        store="postgresql://otd@db/otd",
        jobs_file_path=Path("a/b.yaml"),
        lease=Duration.parse("9s"),
        roles=("executor",),
        commands={"x": CommandSetting(argv=("x", "y"), env={"A": "1"}, cwd="/tmp")},
        given=frozenset({"lease", "store"}),
        workers=3,
    )
    line = encode_order(settings, 7)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode_order(line) == (settings, 7)


def test_several_workers_need_postgres():
    with pytest.raises(SettingsError, match="SQLite supports only one process"):
        launch_scheduler(workers=2)


def test_an_unknown_setting_in_code_is_an_error_too():
    with pytest.raises(SettingsError, match="Did you mean PORT"):
        launch_scheduler(prot=1)


def test_without_a_jobs_file_there_is_none(tmp_path):
    assert jobs_file_of(Settings()) is None
    (tmp_path / "jobs.json").write_text('{"jobs": []}')
    found = jobs_file_of(Settings())
    assert found is not None
    assert found.specs == []


def test_a_jobs_file_that_was_named_must_be_there():
    with pytest.raises(Unreadable, match="No such file"):
        jobs_file_of(load_settings({"jobs_file_path": "jobs.json"}, {}))


def test_a_taken_port_is_a_message():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"can't listen on 127.0.0.1:{port}: Address already in use"):
            listening("127.0.0.1", port)


def test_a_free_port_is_listened_on():
    with listening("127.0.0.1", 0) as listener, socket.socket() as client:
        client.connect(listener.getsockname())
        assert listener.getsockname()[1] > 0


def test_a_host_nobody_knows_is_a_message():
    with pytest.raises(SettingsError, match="can't listen on"):
        listening("no-such-host.invalid", 0)


async def test_signals_stop_in_order_then_at_once_and_reload():
    stopping = Stopping()
    with stopping.on_signals():
        signal.raise_signal(signal.SIGHUP)
        await asyncio.wait_for(stopping.reload.wait(), 5)
        signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(stopping.asked.wait(), 5)
        assert not stopping.at_once.is_set()
        signal.raise_signal(signal.SIGINT)
        await asyncio.wait_for(stopping.at_once.wait(), 5)
    assert stopping.asked.is_set()


def test_the_package_has_it_at_its_door():
    import onthedot

    assert onthedot.launch_scheduler is launch_scheduler
