"""Check-ins: the job runs elsewhere and reports each run to a URL. A run without a report in time was missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from onthedot.errors import FieldProblem
from onthedot.model.duration import DAY, MINUTE, SECOND, Duration
from onthedot.model.field_note import FieldNote
from onthedot.model.run_request import RunRequest, SentRun
from onthedot.model.targets.spec import Flag, TargetSpec, TargetSummary

__all__ = ["CheckinTarget"]

LEAST_GRACE, MOST_GRACE = SECOND, 365 * DAY


class CheckinTarget(TargetSpec, frozen=True, kw_only=True, tag="checkin"):
    notes: ClassVar[Mapping[str, FieldNote]] = {
        "grace": FieldNote("How long after its slot, or after its start, the job may report.", {"grace": "30m"}),
    }
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("grace", "Check-in: how long after each slot the report of the job may come, such as 5m", ("--checkin",)),
    )
    reports: ClassVar[bool] = True
    label: ClassVar[str | None] = "check-in"
    writes_log: ClassVar[bool] = False  # what it reports is in the store

    grace: Duration = Duration(5 * MINUTE)  # after the slot, and after the report that it has started

    @property
    def report_within(self) -> int:
        return self.grace

    def problems(self) -> Iterator[FieldProblem]:
        if not LEAST_GRACE <= self.grace <= MOST_GRACE:
            yield FieldProblem(
                path="target.grace", message="is out of range", given=str(self.grace), accepted="1s to 365d"
            )

    def summary(self) -> TargetSummary:
        return TargetSummary("check-in", f"within {self.grace}", f"check-in within {self.grace}")

    def request(self, sent: SentRun) -> RunRequest:
        return RunRequest(type=self.type, what=self.summary().line)
