"""Jobs of APScheduler: the firings are those of its own triggers."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.combining import AndTrigger, OrTrigger
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from onthedot.errors import Unreadable
from onthedot.importers.apscheduler import import_apscheduler
from onthedot.importers.apscheduler_trigger import schedules_of
from onthedot.importers.cron_sets import NotExpressible
from onthedot.importers.findings import ImportedJobs
from tests.importers.firings import AUTUMN, SPRING, file_of, firings, ms, reasons, shown

BERLIN = "Europe/Berlin"


def own_firings(trigger: Any, after: datetime, count: int = 20) -> list[str]:
    """As a scheduler asks for them."""
    found: list[str] = []
    at = trigger.get_next_fire_time(None, after + timedelta(microseconds=1))
    while at is not None and len(found) < count:
        found.append(shown(at))
        at = trigger.get_next_fire_time(at, at)
    return found


def fitted(trigger: Any, now: datetime) -> Any:
    (one,) = schedules_of(trigger, now=ms(now), lost=[])
    return one


@pytest.mark.parametrize("start", [SPRING, AUTUMN], ids=["spring", "autumn"])
@pytest.mark.parametrize(
    "fields",
    [
        {"minute": "*/15"},
        {"hour": 3},
        {"hour": "1-3", "minute": "*/30"},
        {"day_of_week": "mon-fri", "hour": "9-17", "minute": 5},
        {"day": "last", "hour": 12},
        {"day": "2nd fri", "hour": 12},
        {"day": "last mon,1st tue", "hour": 12},
        {"day": "1-7", "day_of_week": "mon", "hour": 12},
        {"day": "1,15", "day_of_week": "mon-wed", "hour": 12},
        {"day": "10-20", "day_of_week": "sun,sat", "hour": 12},
        {"month": "jan,jun-aug", "day": 31, "hour": 12},
        {"second": "*/20", "hour": 12},
    ],
    ids=str,
)
def test_cron_triggers(fields: dict[str, Any], start: datetime):
    trigger = CronTrigger(timezone=BERLIN, **fields)
    found = fitted(trigger, start)
    assert firings({"key": "x", "schedule": found.schedule}, start) == own_firings(trigger, start)
    assert found.differences == []


def test_a_time_that_clocks_repeat_fires_twice_and_what_differs_in_the_gap_is_listed():
    trigger = CronTrigger(hour=2, minute=30, timezone=BERLIN)
    found = fitted(trigger, AUTUMN)
    assert found.schedule == {"cron": "30-30 2 * * *", "tz": BERLIN}
    assert firings({"key": "x", "schedule": found.schedule}, AUTUMN) == own_firings(trigger, AUTUMN)
    assert found.differences == ["at 2028-03-26T01:30:00.000Z the source fires and this job does not"]


@pytest.mark.parametrize("trigger", [
    IntervalTrigger(minutes=90, start_date="2027-03-01 10:00:30", timezone=BERLIN),
    IntervalTrigger(days=1, start_date="2027-03-26 02:30:00", end_date="2027-04-03 00:00:00", timezone=BERLIN),
    IntervalTrigger(seconds=0.5 + 1, start_date="2027-03-26 02:30:00", timezone="UTC"),
    CronTrigger(hour=4, start_date="2027-04-01", end_date="2027-04-05 04:00:00", timezone=BERLIN),
    DateTrigger("2027-11-01 08:00:00", timezone=BERLIN),
    CronTrigger.from_crontab("*/5 8-18 * * *", timezone="America/New_York"),
], ids=str)  # fmt: skip
def test_intervals_dates_and_bounds(trigger: Any):
    found = fitted(trigger, SPRING)
    ours = firings({"key": "x", "schedule": found.schedule}, SPRING)
    assert ours == own_firings(trigger, SPRING)
    assert ours


@pytest.mark.parametrize(
    ("trigger", "why"),
    [
        (CronTrigger(week="2", timezone="UTC"), "week=2"),
        (CronTrigger(year="2030", timezone="UTC"), "year=2030"),
        (CronTrigger(day="3-5", day_of_week="tue", timezone="UTC"), "match either"),
        (CronTrigger(day="last", day_of_week="fri", timezone="UTC"), "can't have both"),
        (AndTrigger([IntervalTrigger(hours=1), CronTrigger(hour=1)]), "AndTrigger"),
    ],
    ids=lambda value: str(value),
)
def test_triggers_without_a_counterpart(trigger: Any, why: str):
    with pytest.raises(NotExpressible, match=why):
        list(schedules_of(trigger, now=ms(SPRING), lost=[]))


def test_jitter_is_no_part_of_the_firings():
    found = fitted(CronTrigger(hour=4, jitter=90, timezone="UTC"), SPRING)
    assert (found.schedule, found.jitter) == ({"cron": "0 4 * * *", "tz": "UTC"}, 90)


def test_one_job_for_each_trigger_of_several():
    lost: list[tuple[str, str]] = []
    both = OrTrigger([CronTrigger(hour=1, timezone="UTC"), CronTrigger(hour=13, timezone="UTC")])
    assert [each.schedule["cron"] for each in schedules_of(both, now=ms(SPRING), lost=lost)] == [
        "0 1 * * *",
        "0 13 * * *",
    ]
    assert lost[0][0] == "OrTrigger"


PROGRAM = """
from apscheduler.schedulers.blocking import BlockingScheduler

def report(day, *, full=False):
    return day

def positional(a, /):
    pass

sched = BlockingScheduler(timezone="Europe/Berlin", job_defaults={"max_instances": 3})
sched.add_job(report, "cron", hour=3, id="nightly", name="Nightly", args=["mon"], kwargs={"full": True})
often = dict(coalesce=False, misfire_grace_time=60, max_instances=1)
sched.add_job("MODULE:report", "interval", minutes=10, args=["tue"], **often)
sched.add_job(report, "interval", hours=1, args=["x"], id="paused", next_run_time=None, misfire_grace_time=None)
sched.add_job(positional, "interval", hours=1, args=[1], id="positional")
sched.add_job(report, "interval", hours=1, args=[object()], id="odd")
sched.add_job(lambda: None, "interval", hours=1, id="lambda")
sched.add_job(report, "date", run_date="2020-01-01", args=["x"], id="past")
sched.start()
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = tmp_path / f"program_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(PROGRAM.replace("MODULE", path.stem))
    return path


@pytest.mark.parametrize("name", ["", ":sched"])
def test_a_program(program: Path, name: str):
    """`start` of a blocking scheduler at its end does not block, and runs nothing."""
    found = ImportedJobs("apscheduler", str(program))
    import_apscheduler(f"{program}{name}", found)
    nightly, often, paused = file_of(found).specs
    assert (nightly.key, nightly.name, nightly.params) == ("nightly", "Nightly", {"day": "mon", "full": True})
    assert found.jobs[0]["target"] == {"type": "function", "function": f"{program.stem}:report"}
    assert found.jobs[0]["schedule"] == {"cron": "0 3 * * *", "tz": BERLIN}
    assert (nightly.policy.max_running, nightly.policy.catch_up, nightly.policy.retry.attempts) == (3, "skip", 1)
    assert (often.key, often.policy.overlap, often.policy.catch_up) == ("report", "skip", "all")
    assert str(often.policy.expires_in) == "1m"
    assert (paused.paused, paused.policy.catch_up, paused.policy.expires_in) == (True, "latest", None)
    told = "\n".join(reasons(found))
    for why in ("job positional", "job odd: the job: arguments: not JSON", "job lambda", "job past", "max_instances"):
        assert why in told


def test_a_job_store_in_sqlite(program: Path, tmp_path: Path):
    """Written as APScheduler's own store writes it: one row for each job, with a pickle of its state."""
    import pickle
    import sqlite3

    from onthedot.importers.python_source import load_python

    program.write_text(program.read_text().replace("sched.start()", ""))
    scheduler = vars(load_python(str(program)).module)["sched"]
    job = scheduler.get_job("nightly")
    for field, value in {"coalesce": True, "misfire_grace_time": 1, "max_instances": 1, "executor": "default"}.items():
        setattr(job, field, value)
    job.next_run_time = datetime(2027, 1, 1, tzinfo=UTC) + timedelta(hours=3)
    path = tmp_path / "jobs.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE apscheduler_jobs (id VARCHAR(191), next_run_time FLOAT, job_state BLOB)")
        state = pickle.dumps(job.__getstate__(), pickle.HIGHEST_PROTOCOL)
        database.execute("INSERT INTO apscheduler_jobs VALUES ('nightly', 1798772400.0, ?)", (state,))
    database.close()
    for reference in (f"sqlite:///{path}", str(path)):
        found = ImportedJobs("apscheduler", reference)
        import_apscheduler(reference, found)
        (job,) = found.jobs
        assert job["schedule"] == {"cron": "0 3 * * *", "tz": BERLIN}
        assert job["params"] == {"day": "mon", "full": True}


def test_an_export_of_a_running_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of a scheduler that was started paused, as its own method writes it."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    (tmp_path / "exported_chores.py").write_text("def chore(a, b=1):\n    pass\n")
    scheduler = BackgroundScheduler(timezone=BERLIN)
    options: dict[str, Any] = {"coalesce": False, "misfire_grace_time": None}
    scheduler.add_job("exported_chores:chore", "cron", hour=5, args=["x"], kwargs={"b": 2}, id="chore", **options)
    scheduler.add_job("exported_chores:chore", "interval", minutes=7, args=["y"], id="rest", next_run_time=None)
    scheduler.start(paused=True)
    try:
        scheduler.export_jobs(str(tmp_path / "jobs.json"))
    finally:
        scheduler.shutdown()
    found = ImportedJobs("apscheduler", "jobs.json")
    import_apscheduler(str(tmp_path / "jobs.json"), found)
    chore, rest = sorted(file_of(found).specs, key=lambda spec: str(spec.key))
    assert (chore.schedule.cron, chore.schedule.tz, chore.params) == ("0 5 * * *", BERLIN, {"a": "x", "b": 2})
    assert (chore.policy.catch_up, chore.policy.overlap, chore.paused) == ("all", "skip", False)
    assert (rest.schedule.every, rest.paused) == (420_000, True)


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 2, "jobs": []}', '{"version": 1, "jobs": [{}]}'])
def test_what_is_no_export(tmp_path: Path, text: str):
    (tmp_path / "jobs.json").write_text(text)
    with pytest.raises(Unreadable, match="export"):
        import_apscheduler(str(tmp_path / "jobs.json"), ImportedJobs("apscheduler", "x"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n", "no scheduler of APScheduler 3 found"),
        ("import nothing_like_it\n", "can't be imported"),
        ("1 / 0\n", "ZeroDivisionError"),
    ],
)
def test_what_is_no_program_with_a_scheduler(program: Path, text: str, told: str):
    program.write_text(text)
    with pytest.raises(Unreadable, match=told):
        import_apscheduler(str(program), ImportedJobs("apscheduler", "x"))


@pytest.mark.parametrize("reference", ["missing.py", "sqlite:////no/such.db", "no-module", "os:sched"])
def test_what_is_not_there(reference: str):
    with pytest.raises(Unreadable):
        import_apscheduler(reference, ImportedJobs("apscheduler", reference))
