"""Celery beat: the firings are those of Celery's own crontab, asked as beat asks it."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab

from onthedot.errors import Unreadable
from onthedot.importers.celery_beat import import_celery_beat
from onthedot.importers.findings import ImportedJobs
from onthedot.timing.zones import zone
from tests.importers.firings import AUTUMN, SPRING, file_of, firings, ms, reasons, shown

BERLIN = "Europe/Berlin"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a module with this text, and imports what it schedules."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    numbers = iter(range(100))

    def imported(text: str, *, now: datetime = SPRING, name: str = "") -> ImportedJobs:
        path = tmp_path / f"beat_{tmp_path.name.replace('-', '_')}_{next(numbers)}.py"
        path.write_text("from celery.schedules import crontab\nfrom datetime import timedelta\n" + text)
        found = ImportedJobs("celery-beat", str(path), now=ms(now))
        import_celery_beat(f"{path}{name}", found)
        file_of(found)
        return found

    return imported


def own_firings(tz: str, after: datetime, **fields: Any) -> list[str]:
    """What beat does: it waits for as long as it is told, asks again, and sends what is due."""
    app = Celery(set_as_current=False)
    app.conf.timezone = tz
    clock = [after.astimezone(zone(tz))]
    schedule = crontab(nowfun=lambda: clock[0], app=app, **fields)
    last, found = clock[0], list[str]()
    while len(found) < 20:
        due, wait = schedule.is_due(last)
        if due:
            found.append(shown(clock[0]))
            last = clock[0]
        clock[0] = (clock[0].astimezone(UTC) + timedelta(seconds=max(wait, 1))).astimezone(zone(tz))
    return found


@pytest.mark.parametrize("start", [SPRING, AUTUMN], ids=["spring", "autumn"])
@pytest.mark.parametrize(
    "fields",
    [
        {"minute": 0, "hour": 3},
        {"minute": "*/20", "hour": "9-17"},
        {"minute": 15, "hour": "21-5/4"},
        {"minute": 0, "hour": "8,12", "day_of_week": "fri-mon"},
        {"minute": 30, "hour": 7, "day_of_month": "1-7", "day_of_week": "mon"},
        {"minute": 30, "hour": 7, "day_of_month": "*/2", "day_of_week": "tue,wed"},
        {"minute": 0, "hour": 0, "day_of_month": "10-20", "day_of_week": "sun"},
        {"minute": 5, "hour": 6, "month_of_year": "*/3", "day_of_month": "2"},
    ],
    ids=str,
)
def test_the_next_firings_are_those_of_celery(module: Any, fields: dict[str, Any], start: datetime):
    text = f'timezone = "{BERLIN}"\nbeat_schedule = {{"it": {{"task": "t", "schedule": crontab(**{fields!r})}}}}\n'
    found = module(text, now=start)
    (job,) = found.jobs
    assert firings(job, start) == own_firings(BERLIN, start, **fields)


def test_what_celery_does_when_clocks_change_is_listed_where_it_differs(module: Any):
    """In autumn Celery stays silent for an hour, in spring it does not: no expression does both."""
    text = f'timezone = "{BERLIN}"\nbeat_schedule = {{"it": {{"task": "t", "schedule": crontab(minute=30)}}}}\n'
    found = module(text, now=AUTUMN)
    assert found.jobs[0]["schedule"]["cron"] == "30 * * * *"
    assert reasons(found) == [
        "task it: the day on which clocks change: at 2027-10-31T01:30:00.000Z this job fires and the source does not"
    ]


def test_an_app_with_arguments_and_options(module: Any):
    found = module(
        """
from celery import Celery
app = Celery("shop", broker="redis://127.0.0.1:1/0")
app.conf.task_default_queue = "shop"
app.conf.beat_schedule = {
    "nightly report": {"task": "shop.report", "schedule": crontab(minute=0, hour=4), "args": (1, "two"),
                       "kwargs": {"full": True}, "options": {"queue": "slow", "expires": 60}},
    "poll": {"task": "shop.poll", "schedule": 30.0},
    "half": {"task": "shop.poll", "schedule": timedelta(milliseconds=1500), "kwargs": {"n": 1}},
    "odd": {"task": "shop.poll", "schedule": 30, "args": [object()]},
    "strange": {"task": "shop.poll", "schedule": "whenever"},
}

@app.on_after_finalize.connect
def more(sender, **_):
    sender.add_periodic_task(crontab(minute=1), sender.signature("shop.more"), name="more")
"""
    )
    report, poll, half, more = file_of(found).specs
    assert found.jobs[0]["target"] == {
        "type": "queue",
        "broker": "celery",
        "topic": "slow",
        "format": "celery",
        "task": "shop.report",
        "body": [1, "two"],
    }
    assert (report.key, report.name, report.params) == ("nightly-report", "nightly report", {"full": True})
    assert found.jobs[1]["target"]["topic"] == "shop"
    assert (poll.schedule.every, half.schedule.every, half.params) == (30_000, 1500, {"n": 1})
    assert (more.key, more.schedule.cron) == ("more", "1 * * * *")
    assert [(lost.item, lost.what) for lost in found.not_carried_over] == [
        ("task nightly report", "option expires"),
        ("task odd", "the job"),
        ("task strange", "the job"),
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('CELERY_TIMEZONE = "Asia/Tokyo"\nCELERY_BEAT_SCHEDULE = {"a": {"task": "t", "schedule": crontab(0, 9)}}', ""),
        ('timezone = "Asia/Tokyo"\nbeat_schedule = {"a": {"task": "t", "schedule": crontab(0, 9)}}', ""),
        (
            (
                'from celery import Celery\nmine = Celery()\nmine.conf.timezone = "Asia/Tokyo"\n'
                'mine.conf.beat_schedule = {"a": {"task": "t", "schedule": crontab(0, 9)}}'
            ),
            ":mine",
        ),
    ],
)
def test_where_the_schedule_may_be(module: Any, text: str, name: str):
    (job,) = module(text, name=name).jobs
    assert job["schedule"] == {"cron": "0 9 * * *", "tz": "Asia/Tokyo"}


def row(model: str, pk: int, **fields: Any) -> dict[str, Any]:
    return {"model": f"django_celery_beat.{model}", "pk": pk, "fields": fields}


def test_a_fixture_of_django_celery_beat(tmp_path: Path):
    star = {"minute": "30", "hour": "2", "day_of_week": "*", "day_of_month": "*", "month_of_year": "*"}
    rows = [
        row("crontabschedule", 7, **{**star, "hour": "4"}, timezone=BERLIN),
        row("intervalschedule", 7, every=10, period="minutes"),
        row("clockedschedule", 1, clocked_time="2027-12-24T18:00:00.123456Z"),
        row("periodictask", 1, name="Nightly", task="t.a", crontab=7, args='["x"]', kwargs='{"a": 1}', enabled=True),
        row("periodictask", 2, name="often", task="t.b", interval=7, enabled=False, queue="q", priority=3, one_off=1),
        row("periodictask", 3, name="xmas", task="t.c", clocked=1, one_off=True, description="Once"),
        row("periodictask", 4, name="sun", task="t.d", solar=1),
        row("periodictask", 5, name="celery.backend_cleanup", task="celery.backend_cleanup", crontab=7),
        row("periodictask", 6, name="bad", task="t.e", interval=7, args="["),
        row("periodictask", 7, name="bounded", task="t.f", interval=7, start_time="2027-04-01T00:00:00Z",
            expires="2027-04-02T00:00:00Z"),
    ]  # fmt: skip
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(rows))
    found = ImportedJobs("celery-beat", str(path), now=ms(SPRING))
    import_celery_beat(str(path), found, broker="tasks")
    nightly, often, xmas, bounded = file_of(found).specs
    assert (nightly.key, nightly.params, found.jobs[0]["target"]["body"]) == ("Nightly", {"a": 1}, ["x"])
    assert found.jobs[0]["schedule"] == {"cron": "30 4 * * *", "tz": BERLIN}
    assert (often.schedule.count, often.paused, found.jobs[1]["target"]["topic"]) == (1, True, "q")
    assert (firings(found.jobs[2], SPRING), xmas.name) == (["2027-12-24 18:00:00"], "Once")
    assert firings(found.jobs[3], SPRING, 2) == ["2027-04-01 00:00:00", "2027-04-01 00:10:00"]
    assert bounded.schedule.end == "2027-04-02T00:00:00Z"
    assert [lost.item for lost in found.not_carried_over] == ["task often", "task sun", "task bad"]


@pytest.mark.parametrize(
    "wrong",
    [{"interval": {"a": 1}}, {"args": 5}, {"interval": 2}, {"crontab": 1, "kwargs": [1]}],
)
def test_a_row_that_is_wrong_does_not_stop_the_others(tmp_path: Path, wrong: dict[str, Any]):
    rows = [
        {"model": "django_celery_beat.crontabschedule", "pk": [1], "fields": 5},
        row("intervalschedule", 1, every=10, period="minutes"),
        row("intervalschedule", 2, every="ten", period="minutes"),
        row("periodictask", 1, name="wrong", task="t.a", **{"interval": 1, **wrong}),
        row("periodictask", 2, name="right", task="t.b", interval=1),
    ]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(rows))
    found = ImportedJobs("celery-beat", str(path), now=ms(SPRING))
    import_celery_beat(str(path), found)
    assert [job["key"] for job in found.jobs] == ["right"]
    assert [lost.item for lost in found.not_carried_over] == ["task wrong"]


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("x.json", "{", "not valid JSON"),
        ("x.json", "{}", "dumpdata"),
        ("nothing_scheduled.py", "a = 1", "neither an app of Celery nor a beat_schedule"),
        ("missing_in_it.py:app", "a = 1", "has no 'app'"),
    ],
)
def test_what_has_no_schedule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, told: str):
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / name.partition(":")[0]).write_text(text)
    with pytest.raises(Unreadable, match=told):
        import_celery_beat(str(tmp_path / name), ImportedJobs("celery-beat", name))
