"""Periodic tasks of Celery: the beat_schedule of an app or a module, or the tables of django-celery-beat as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from onthedot.errors import Unreadable
from onthedot.importers.celery_fields import celery_cron
from onthedot.importers.clock_changes import NextFiring, fit_cron
from onthedot.importers.cron_sets import NotExpressible
from onthedot.importers.findings import ImportedJobs
from onthedot.importers.python_source import json_problem, load_python
from onthedot.timing.zones import is_zone, zone

__all__ = ["import_celery_beat"]

QUEUE = "celery"
_CRON = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
_PERIODS = {"days": "d", "hours": "h", "minutes": "m", "seconds": "s"}
_CARRIED_OPTIONS = {"queue"}
_LOOKS = 1000
"""How often a schedule is asked until it is due. It answers how long to wait, which is not exact when clocks change."""


class _Entry(msgspec.Struct, kw_only=True):
    """One periodic task, wherever it was found."""

    name: str
    task: str
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    cron: dict[str, str] | None = None
    every: timedelta | None = None
    at: str | None = None
    tz: str = "UTC"
    options: dict[str, Any] = {}
    paused: bool = False
    once: bool = False
    start: str | None = None
    end: str | None = None
    description: str = ""
    problem: str | None = None


def import_celery_beat(reference: str, found: ImportedJobs, *, broker: str = "celery") -> None:
    """`reference`: a Python file or `module:app`, or a JSON file that `dumpdata django_celery_beat` wrote."""
    if reference.endswith(".json"):
        queue, entries = QUEUE, _fixture(reference, found)
    else:
        queue, entries = _module(reference)
    for entry in entries:
        with found.listed_if_wrong(f"task {entry.name}"):
            _add(found, entry, queue, broker)
    if found.jobs:
        found.need(
            f"the broker of the workers: the table [brokers.{broker}] in the settings, with its `url` "
            "(Redis, RabbitMQ or SQS)"
        )


def _add(found: ImportedJobs, entry: _Entry, queue: str, broker: str) -> None:
    item = f"task {entry.name}"
    schedule, differences = _schedule(entry, found.now)
    problem = json_problem([entry.args, entry.kwargs])
    if problem is not None:
        raise NotExpressible(f"arguments: {problem}")
    target: dict[str, Any] = {
        "type": "queue",
        "broker": broker,
        "topic": str(entry.options.get("queue") or queue),
        "format": "celery",
        "task": entry.task,
    }
    if entry.args:
        target["body"] = entry.args
    key = found.free_key(entry.name)
    job = {
        "key": key,
        "name": entry.description or entry.name,
        "schedule": schedule,
        "target": target,
        "params": entry.kwargs,
        "paused": entry.paused or None,
    }
    if not found.add(item, job):
        return
    for difference in differences:
        found.lose(item, "the day on which clocks change", difference, key=key)
    for option in sorted(entry.options.keys() - _CARRIED_OPTIONS):
        if entry.options[option] not in (None, "", {}, "{}"):
            found.lose(item, f"option {option}", "not a field of a queue target", key=key)


def _schedule(entry: _Entry, now: int) -> tuple[dict[str, Any], list[str]]:
    if entry.problem is not None:
        raise NotExpressible(entry.problem)
    if not is_zone(entry.tz):
        raise NotExpressible(f"time zone {entry.tz!r} is not an IANA name")
    bounds: dict[str, Any] = {name: value for name, value in (("start", entry.start), ("end", entry.end)) if value}
    if entry.once and entry.at is None:
        bounds["count"] = 1
    if entry.at is not None:
        return {"at": entry.at, "tz": entry.tz}, []
    if entry.every is not None:
        ms = round(entry.every.total_seconds() * 1000)
        return {"every": f"{ms // 1000}s" if ms % 1000 == 0 else f"{ms}ms", **bounds}, []
    assert entry.cron is not None
    texts = celery_cron(**entry.cron).texts()
    fitted = fit_cron(texts, entry.tz, _firings(entry.cron, entry.tz), now=now)
    return {"cron": fitted.cron, "tz": entry.tz, **bounds}, fitted.differences


def _firings(cron: dict[str, str], tz: str) -> NextFiring | None:
    """When Celery itself finds the crontab due, as beat asks it; None where Celery is not installed."""
    try:
        from celery import Celery
        from celery.schedules import crontab
    except ImportError:
        return None
    app = Celery(set_as_current=False)
    app.conf.timezone = tz
    clock = [datetime.fromtimestamp(0, UTC)]  # set to what is asked about, each time
    schedule = crontab(nowfun=lambda: clock[0], app=app, **cron)

    def following(after: int) -> int | None:
        last = clock[0] = datetime.fromtimestamp(after / 1000, UTC).astimezone(zone(tz))
        for _ in range(_LOOKS):
            due, wait = schedule.is_due(last)
            if due:
                return round(clock[0].timestamp()) * 1000
            clock[0] = (clock[0].astimezone(UTC) + timedelta(seconds=max(wait, 1))).astimezone(zone(tz))
        return None

    return following


def _module(reference: str) -> tuple[str, list[_Entry]]:
    """The beat_schedule of an app, or of a module of settings; with the queue of tasks that name none."""
    source = load_python(reference)
    names = vars(source.module)
    found = source.chosen if source.chosen is not None else _app_in(names)
    if isinstance(found, Mapping):
        config: Any = {"beat_schedule": found}
    elif found is not None and hasattr(found, "conf"):
        if hasattr(found, "finalize"):
            found.finalize()
        config = found.conf
    else:
        config = _settings(names)
    entries = config.get("beat_schedule")
    if not isinstance(entries, Mapping):
        raise Unreadable(
            f"{reference}: neither an app of Celery nor a beat_schedule (or CELERY_BEAT_SCHEDULE) found at the "
            "top of the module"
        )
    tz = str(config.get("timezone") or "UTC")
    return str(config.get("task_default_queue") or QUEUE), [_entry(name, table, tz) for name, table in entries.items()]


def _app_in(names: Mapping[str, Any]) -> Any:
    with suppress(ImportError):
        from celery import Celery

        return next((each for each in names.values() if isinstance(each, Celery)), None)
    return None


def _settings(names: Mapping[str, Any]) -> dict[str, Any]:
    """New names in lower case, old ones and those of Django in upper case."""
    found: dict[str, Any] = {}
    for wanted, others in {
        "beat_schedule": ("CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE"),
        "timezone": ("CELERY_TIMEZONE",),
        "task_default_queue": ("CELERY_TASK_DEFAULT_QUEUE", "CELERY_DEFAULT_QUEUE"),
    }.items():
        for name in (wanted, *others):
            if names.get(name):
                found.setdefault(wanted, names[name])
    return found


def _entry(name: Any, table: Any, tz: str) -> _Entry:
    made = _Entry(name=str(name), task=str(name), tz=tz)
    if not isinstance(table, Mapping) or "task" not in table or "schedule" not in table:
        made.problem = "an entry has `task` and `schedule`"
        return made
    made.task = str(table["task"])
    made.args, made.kwargs = [*(table.get("args") or ())], {**(table.get("kwargs") or {})}
    made.options = {**(table.get("options") or {})}
    if table.get("relative"):
        made.options["relative"] = True
    schedule = table["schedule"]
    if isinstance(schedule, (int, float)):
        made.every = timedelta(seconds=schedule)
    elif isinstance(schedule, timedelta):
        made.every = schedule
    elif all(hasattr(schedule, f"_orig_{field}") for field in _CRON):
        made.cron = {field: _text(getattr(schedule, f"_orig_{field}")) for field in _CRON}
        if type(schedule).__name__ == "TzAwareCrontab":  # of django-celery-beat; the others have the zone of the app
            made.tz = str(schedule.tz)
    elif isinstance(getattr(schedule, "run_every", None), timedelta):
        made.every = schedule.run_every
        if getattr(schedule, "relative", False):
            made.options["relative"] = True
    else:
        made.problem = f"a schedule of type {type(schedule).__name__}: only crontab and intervals can be carried over"
    return made


def _text(field: Any) -> str:
    """As it was given: a text, a number, or several of them."""
    return ",".join(map(str, field)) if isinstance(field, (list, tuple, set, frozenset, range)) else str(field)


def _fixture(path: str, found: ImportedJobs) -> list[_Entry]:
    """Rows of django-celery-beat: tasks that refer to schedules by their number."""
    try:
        rows = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise Unreadable(f"{path}: can't be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"{path}: not valid JSON: {error}") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "model" in row for row in rows):
        raise Unreadable(f"{path}: not a fixture: expected what `manage.py dumpdata django_celery_beat` prints")
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        fields = row.get("fields")
        tables.setdefault(str(row["model"]).lower(), {})[str(row.get("pk"))] = (
            fields if isinstance(fields, dict) else {}
        )
    entries: list[_Entry] = []
    for fields in tables.get("django_celery_beat.periodictask", {}).values():
        with found.listed_if_wrong(f"task {fields.get('name')}"):
            entries.append(_of_row(fields, tables))
    return [each for each in entries if each.task != "celery.backend_cleanup"]  # made by Celery itself, on each start


def _of_row(fields: dict[str, Any], tables: dict[str, dict[str, dict[str, Any]]]) -> _Entry:
    def schedule(kind: str) -> dict[str, Any] | None:
        number = fields.get(kind)
        return None if number is None else tables.get(f"django_celery_beat.{kind}schedule", {}).get(str(number))

    made = _Entry(
        name=str(fields.get("name")),
        task=str(fields.get("task")),
        paused=fields.get("enabled") is False,
        once=bool(fields.get("one_off")),
        start=fields.get("start_time"),
        end=fields.get("expires"),
        description=str(fields.get("description") or ""),
    )
    options = ("queue", "exchange", "routing_key", "priority", "headers", "expire_seconds")
    made.options = {name: fields[name] for name in options if fields.get(name)}
    try:
        made.args, made.kwargs = json.loads(fields.get("args") or "[]"), json.loads(fields.get("kwargs") or "{}")
    except ValueError:
        made.problem = "args or kwargs are not JSON"
    if (crontab := schedule("crontab")) is not None:
        made.cron = {field: str(crontab.get(field, "*")) for field in _CRON}
        made.tz = str(crontab.get("timezone") or "UTC")
    elif (interval := schedule("interval")) is not None and interval.get("period") in _PERIODS:
        made.every = timedelta(**{interval["period"]: int(interval["every"])})
    elif (clocked := schedule("clocked")) is not None:
        made.at = re.sub(r"(\.\d{3})\d+", r"\1", str(clocked.get("clocked_time")))
    else:
        made.problem = "only crontab, interval and clocked schedules can be carried over"
    return made
