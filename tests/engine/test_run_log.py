"""Run logs: on disk with execution time, attempts appended; the last 64 KB for the store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from onthedot.engine.running.run_log import TAIL, RunLog, log_path
from onthedot.engine.running.run_log_files import MOST_WAITING, LogFiles, remove_older
from onthedot.telemetry import Event, subscribe
from tests.engine.making import FAILED, FUNCTION, OK, claimed

START = 1_700_000_000_000


async def inline(work: Callable[[], None]) -> None:
    work()


@pytest.fixture
def files(tmp_path: Path) -> LogFiles:
    return LogFiles(tmp_path / "logs", inline)


async def test_a_run_writes_output_and_execution_time(files):
    run = claimed("7-1000", target=FUNCTION, key="nightly")
    log = RunLog(run, files)
    log.start(START)
    log.write("half a ")
    log.write("line\n")
    assert log.end(START + 1234, OK, 1234) == "half a line\n"
    await files.flush()
    lines = (files.directory / "nightly" / "7-1000.log").read_text().splitlines()
    assert lines == [
        "2023-11-14T22:13:20.000Z attempt 1 of 7-1000 started",
        "half a line",
        "2023-11-14T22:13:21.234Z attempt 1 ok execution time 1.234 s",
    ]


async def test_attempts_are_appended_and_say_why_they_failed(files):
    for token, outcome in ((1, FAILED), (2, OK)):
        log = RunLog(claimed("7-1000", target=FUNCTION, token=token), files)
        log.start(START)
        log.write(f"try {token}")
        log.end(START, outcome, 5)
        await files.flush()
    text = (files.directory / "7" / "7-1000.log").read_text()
    assert "try 1\n2023-11-14T22:13:20.000Z attempt 1 error execution time 0.005 s: HTTP 500\n" in text
    assert text.index("try 1") < text.index("try 2")


async def test_the_store_gets_the_last_64_kb_cut_between_characters(files):
    log = RunLog(claimed(target=FUNCTION), files)
    log.start(START)
    for _ in range(40):
        log.write("ä" * 5000)
    log.write("the end")
    kept = log.end(START, OK, 1)
    assert kept is not None
    assert kept.endswith("ä the end".replace(" ", "", 1))
    assert TAIL - 4 <= len(kept.encode()) <= TAIL


async def test_a_timer_that_says_nothing_leaves_no_file(files):
    log = RunLog(claimed("7-1000"), files)
    log.start(START)
    assert log.end(START, OK, 3) is None
    assert files.idle


async def test_a_recurring_webhook_has_its_execution_time_on_disk(files):
    log = RunLog(claimed("7-1000", recurring=True), files)
    log.start(START)
    assert log.end(START, OK, 3) is None
    await files.flush()
    assert "execution time 0.003 s" in (files.directory / "7" / "7-1000.log").read_text()


async def test_a_timer_that_says_something_has_a_file(files):
    log = RunLog(claimed("7-1000"), files)
    log.start(START)
    log.write("redirected\n")
    log.end(START, OK, 3)
    await files.flush()
    assert "redirected" in (files.directory / "7" / "7-1000.log").read_text()


async def test_without_a_directory_only_the_store_has_the_log():
    log = RunLog(claimed(target=FUNCTION), None)
    log.start(START)
    log.write("said")
    assert log.end(START, OK, 3) == "said"


@pytest.mark.parametrize("key", ["../../etc/cron.d/x", "..", "/etc/passwd", "a/b", "", "a\nb", ".hidden"])
def test_no_key_leads_out_of_the_directory(tmp_path, key):
    path = log_path(tmp_path, claimed("7-1000", key=key))
    assert path == tmp_path / "7" / "7-1000.log"


async def test_a_disk_that_refuses_is_said_and_stops_nothing(tmp_path):
    (tmp_path / "logs").write_text("a file where the directory should be")
    events: list[Event] = []
    unsubscribe = subscribe(events.append)
    try:
        files = LogFiles(tmp_path / "logs", inline)
        files.add(files.directory / "7" / "7-1.log", "text")
        await files.step()
    finally:
        unsubscribe()
    assert [event.name for event in events] == ["log.unwritten"]
    assert files.idle


async def test_a_flood_is_cut_and_the_file_says_so(files):
    path = files.directory / "7" / "7-1.log"
    files.add(path, "x" * MOST_WAITING)
    files.add(path, "lost")
    files.add(path, "lost too")
    await files.flush()
    text = path.read_text()
    assert text.endswith("… output lost: the disk could not keep up\n")
    assert text.count("output lost") == 1


async def test_one_batch_writes_many_files(files):
    for number in range(3):
        files.add(files.directory / "7" / f"7-{number}.log", f"text {number}")
    assert not files.idle
    await files.step()
    assert files.idle
    assert sorted(path.name for path in (files.directory / "7").iterdir()) == ["7-0.log", "7-1.log", "7-2.log"]


def test_old_logs_go_with_their_folders(tmp_path):
    for name, age in (("old/1-1.log", 100), ("mixed/2-1.log", 100), ("mixed/2-2.log", 0)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
        os.utime(path, (1_000_000 - age, 1_000_000 - age))
    (tmp_path / "notes.txt").write_text("not ours")
    remove_older(tmp_path, before=999_950)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        "mixed",
        "mixed/2-2.log",
        "notes.txt",
    ]


def test_without_any_log_there_is_nothing_to_remove(tmp_path):
    remove_older(tmp_path / "none", before=1.0)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("umask", [0o022, 0o000])
async def test_logs_are_not_for_everybody_on_the_machine(tmp_path, umask):
    files = LogFiles(tmp_path / "var" / "logs", inline)
    before = os.umask(umask)
    try:
        files.add(log_path(files.directory, claimed("7-1000", key="nightly")), "secret\n")
        await files.flush()
    finally:
        os.umask(before)
    file = files.directory / "nightly" / "7-1000.log"
    assert file.stat().st_mode & 0o777 == 0o640
    folders = (file.parent, files.directory, files.directory.parent)
    assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o750] * 3


async def test_a_folder_that_the_operator_made_stays_as_it_is(tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs").chmod(0o777)
    files = LogFiles(tmp_path / "logs", inline)
    files.add(log_path(files.directory, claimed("7-1000", key="nightly")), "x\n")
    await files.flush()
    assert (tmp_path / "logs").stat().st_mode & 0o777 == 0o777
