"""When: schedules compiled to timetables. Pure: no clock is read, no random number drawn."""

from __future__ import annotations

from onthedot.timing.check import check_schedule
from onthedot.timing.compile import compile_schedule, plain_delay
from onthedot.timing.describe import describe
from onthedot.timing.remarks import remarks
from onthedot.timing.timetable import Timetable

__all__ = ["Timetable", "check_schedule", "compile_schedule", "describe", "plain_delay", "remarks"]
