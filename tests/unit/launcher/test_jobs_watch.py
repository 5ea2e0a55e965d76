"""The jobs file that changes while the node runs."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
import structlog

from onthedot.clock import FakeClock
from onthedot.errors import Invalid
from onthedot.launcher.jobs_watch import LOOK_EVERY, JobsWatch, stamp
from onthedot.main import load_jobs
from onthedot.settings import Settings
from onthedot.store import SyncReport


class Recording:
    """A service that only takes files."""

    def __init__(self) -> None:
        self.synced: list[list[str | None]] = []
        self.refuse: Invalid | None = None

    settings = Settings()

    async def sync(self, tenant: int, source: str, specs: list[Any], prune: bool, **more: Any) -> SyncReport:
        if self.refuse is not None:
            raise self.refuse
        assert (tenant, prune) == (1, True)
        self.synced.append([spec.key for spec in specs])
        return SyncReport(created=[], updated=[], unchanged=[], removed=[])


def write(path: Path, *keys: str, at: int) -> None:
    jobs = ",".join(f'{{"identifier": "{k}", "path": "f", "function_name": "g", "periodicity": "1m"}}' for k in keys)
    path.write_text(f'{{"jobs": [{jobs}]}}')
    os.utime(path, ns=(at, at))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.json"
    write(path, "a", at=1)
    return path


@pytest.fixture
def service() -> Recording:
    return Recording()


@pytest.fixture
def asked() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
def watch(path, service, asked, fake_clock: FakeClock) -> JobsWatch:
    return JobsWatch(Settings(jobs_file_path=path), lambda jobs: load_jobs(service, jobs), asked, fake_clock)


async def look(watch: JobsWatch, clock: FakeClock) -> None:
    step = asyncio.create_task(watch.step())
    await clock.advance(LOOK_EVERY)
    await step


async def test_an_unchanged_file_is_left_alone(watch, service, fake_clock):
    await look(watch, fake_clock)
    assert service.synced == []


async def test_a_changed_file_is_loaded_once(watch, service, fake_clock, path):
    write(path, "a", "b", at=2)
    await look(watch, fake_clock)
    await look(watch, fake_clock)
    assert service.synced == [["a", "b"]]


async def test_the_signal_loads_it_at_once_changed_or_not(watch, service, asked):
    asked.set()
    await watch.step()
    assert service.synced == [["a"]]
    assert not asked.is_set()


async def test_a_file_that_is_gone_for_a_moment_removes_nothing(watch, service, fake_clock, path):
    path.unlink()
    await look(watch, fake_clock)
    assert service.synced == []
    write(path, "c", at=3)
    await look(watch, fake_clock)
    assert service.synced == [["c"]]


async def test_a_bad_file_is_said_once_and_changes_nothing(watch, service, fake_clock, path):
    path.write_text('{"jobs": [\n{"identifier": 5}]}')
    with structlog.testing.capture_logs() as said:
        await look(watch, fake_clock)
        await look(watch, fake_clock)
    assert service.synced == []
    assert [line["event"] for line in said] == ["jobs file not applied: it is invalid"]
    assert "jobs.json:2" in said[0]["error"]


async def test_what_the_service_refuses_is_told_with_its_line(watch, service, asked):
    service.refuse = Invalid.one("jobs[0].target.function", "not registered")
    asked.set()
    with structlog.testing.capture_logs() as said:
        await watch.step()
    assert "jobs.json:1: jobs[0].path: not registered" in said[0]["error"]


def test_a_stamp_changes_with_the_file(path, tmp_path):
    before = stamp(path)
    write(path, "a", "b", at=1)
    assert stamp(path) != before
    assert stamp(tmp_path / "gone") is None
