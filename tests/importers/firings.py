"""The next firings of an imported job, by our own timetable, to compare with those of its source."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from onthedot.importers.findings import ImportedJobs
from onthedot.importers.jobs_text import as_json, as_yaml
from onthedot.jobsfile import JobsFile, parse_jobs
from onthedot.model.decoding import convert
from onthedot.model.schedule import Schedule
from onthedot.timing import compile_schedule

SPRING = datetime(2027, 3, 26, 12, tzinfo=UTC)  # clocks change on the 28th in Europe, on the 14th in America
AUTUMN = datetime(2027, 10, 29, 12, tzinfo=UTC)  # on the 31st, and on November 7th


def ms(at: datetime) -> int:
    return int(at.timestamp()) * 1000


def firings(job: dict[str, Any], after: datetime, count: int = 20) -> list[str]:
    """`after` is also when the schedule was given."""
    times = compile_schedule(convert(job["schedule"], Schedule), anchor=ms(after), seed=job["key"])
    found: list[str] = []
    at = times.next_after(ms(after))
    while at is not None and len(found) < count:
        found.append(shown(datetime.fromtimestamp(at / 1000, UTC)))
        at = times.next_after(at)
    return found


def shown(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def file_of(found: ImportedJobs) -> JobsFile:
    """What `jobs apply` reads: the YAML and the JSON say the same."""
    file = parse_jobs(as_yaml(found), "yaml", "jobs.yaml")
    again = parse_jobs(as_json(found), "json", "jobs.json")
    assert file.specs == again.specs
    assert file.commands == again.commands
    assert [spec.key for spec in file.specs] == [job["key"] for job in found.jobs]
    return file


def reasons(found: ImportedJobs) -> list[str]:
    return [f"{lost.item}: {lost.what}: {lost.reason}" for lost in found.not_carried_over]
