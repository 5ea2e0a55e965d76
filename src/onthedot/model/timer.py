"""Timers: shorthand for a job that fires one webhook once."""

from __future__ import annotations

from typing import Annotated

import msgspec

from onthedot.model.struct import Strict

__all__ = ["TimerSpec", "TimerView"]

Amount = Annotated[int, msgspec.Meta(ge=0, le=3_000_000_000)]


class TimerSpec(Strict, frozen=True, kw_only=True):
    hours: Amount = 0
    minutes: Amount = 0
    seconds: Amount = 0
    url: str


class TimerView(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    time_left: int
