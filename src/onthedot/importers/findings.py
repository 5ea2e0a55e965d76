"""What an import makes: jobs and commands, what must be configured for them, and what could not be carried over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from onthedot.clock import SystemClock
from onthedot.errors import Invalid
from onthedot.importers.cron_sets import NotExpressible
from onthedot.model.checks import check_spec
from onthedot.model.decoding import convert
from onthedot.model.job import JobSpec
from onthedot.timing import check_schedule

__all__ = ["ImportedJobs", "NotCarriedOver"]

LONGEST_KEY = 200
LONGEST_NAME = 500


class NotCarriedOver(msgspec.Struct, frozen=True, kw_only=True):
    """Something of the source that the jobs file does not have. `key`: the job that lacks it; null if there is no such
    job, or if it concerns all of them."""

    item: str  # where it is in the source: "line 7", the name of a schedule
    what: str
    reason: str
    key: str | None = None


class ImportedJobs:
    """Collects what one import finds. Jobs are kept as they are written, without fields that have their defaults."""

    def __init__(self, kind: str, origin: str, *, now: int | None = None) -> None:
        self.kind, self.origin = kind, origin
        self.now = SystemClock().now_ms() if now is None else now
        self.jobs: list[dict[str, Any]] = []
        self.commands: dict[str, dict[str, Any]] = {}
        self.needs: list[str] = []
        self.not_carried_over: list[NotCarriedOver] = []

    def free_key(self, wanted: str) -> str:
        """A valid key that no job has yet, like `wanted`."""
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", wanted).strip("-._")[: LONGEST_KEY - 10] or "job"
        taken = {job["key"] for job in self.jobs}
        number, key = 1, base
        while key in taken:
            number += 1
            key = f"{base}-{number}"
        return key

    def add(self, item: str, job: dict[str, Any]) -> bool:
        """Take a job, unless the server would refuse it: then it is listed as not carried over, with the reason."""
        if isinstance(name := job.get("name"), str):
            job["name"] = " ".join(name.split())[:LONGEST_NAME]
        written = {field: value for field, value in job.items() if value not in (None, {}, [], "")}
        try:
            spec = convert(written, JobSpec)
            check_spec(spec)
            check_schedule(spec.schedule, now=self.now)
        except Invalid as invalid:
            self.lose(item, "the job", _reason(invalid))
            return False
        self.jobs.append(written)
        return True

    @contextmanager
    def listed_if_wrong(self, item: str, what: str = "the job") -> Iterator[None]:
        """Around one of many jobs of the source: whatever is wrong with it is listed, and the others are imported."""
        try:
            yield
        except NotExpressible as error:
            self.lose(item, what, str(error))
        except Invalid as invalid:
            self.lose(item, what, _reason(invalid))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # a field of another type than the source itself would have written
            self.lose(item, what, f"not as the source writes it: {type(error).__name__}: {error}")

    def lose(self, item: str, what: str, reason: str, *, key: str | None = None) -> None:
        lost = NotCarriedOver(item=item, what=what, reason=reason, key=key)
        if lost not in self.not_carried_over:
            self.not_carried_over.append(lost)

    def need(self, what: str) -> None:
        """Something that a node must have before it accepts the jobs."""
        if what not in self.needs:
            self.needs.append(what)


def _reason(invalid: Invalid) -> str:
    told = []
    for problem in invalid.problems:
        given = f" (given: {problem.given})" if problem.given is not None else ""
        told.append(f"{problem.path}: {problem.message}{given}")
    return "; ".join(told)
