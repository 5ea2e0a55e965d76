"""What was called, compared with what was due: nothing lost, nothing doubled that a failover does not explain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

__all__ = ["Alert", "Call", "Compared", "Duty", "Run", "Window", "compare", "read_record"]

Run = tuple[int, int]
"""The job, and the slot in milliseconds: what a webhook-id says."""


class Call(NamedTuple):
    at: float  # seconds since 1970, when it had been received
    job: int
    slot: int
    attempt: int
    status: int  # what it was answered


class Alert(NamedTuple):
    at: float
    event: str
    condition: str
    incidents: int


@dataclass(frozen=True)
class Duty:
    """What a job owes: `count` slots from `first` on, or one at a time that its creation decided."""

    at_most_once: bool
    first: int | None = None
    every: int = 1000
    count: int = 1

    def slots(self) -> Iterator[int]:
        assert self.first is not None
        return (self.first + n * self.every for n in range(self.count))


@dataclass(frozen=True)
class Window:
    """A failover: a call of the time from `opens` to `closes` may come again, because nobody could record it."""

    opens: float
    closes: float


@dataclass
class Compared:
    due: int
    calls: int
    lost: list[Run] = field(default_factory=list)
    unsent: list[Run] = field(default_factory=list)  # of at-most-once jobs: allowed if the ledger says so
    doubled: list[Run] = field(default_factory=list)
    repeated: list[Run] = field(default_factory=list)  # doubled, and explained
    twice: list[Run] = field(default_factory=list)  # of at-most-once jobs: never allowed
    strange: list[Run] = field(default_factory=list)  # called, and not due


def read_record(file: Path) -> tuple[list[Call], list[Alert]]:
    """What the recorder wrote; a last line that is not complete yet is left for the next reading."""
    calls: list[Call] = []
    alerts: list[Alert] = []
    with file.open() as lines:
        for line in lines:
            if not line.endswith("\n"):
                break
            kind, at, *rest = line.split()
            if kind == "call":
                job, slot = _run(rest[0])
                calls.append(Call(float(at), job, slot, int(rest[1]), int(rest[2])))
            else:
                alerts.append(Alert(float(at), rest[0], rest[1], int(rest[2])))
    return calls, alerts


def _run(webhook_id: str) -> Run:
    job, slot = webhook_id.split("-")
    return int(job), int(slot)


def compare(due: Mapping[int, Duty], calls: Iterable[Call], windows: Sequence[Window]) -> Compared:
    """Every job here is answered so that it is not retried by its own policy, so each run is owed one call."""
    times: dict[Run, list[float]] = {}
    for call in calls:
        times.setdefault((call.job, call.slot), []).append(call.at)
    seen = Counter(job for job, _ in times)
    found = Compared(
        due=sum(duty.count for duty in due.values()), calls=sum(len(received) for received in times.values())
    )
    for job, duty in due.items():
        if duty.first is None:
            missing = [] if seen[job] else [(job, 0)]
        else:
            missing = [(job, slot) for slot in duty.slots() if (job, slot) not in times]
        (found.unsent if duty.at_most_once else found.lost).extend(missing)
    for run, received in times.items():
        owed = due.get(run[0])
        if owed is None or not _owed(owed, run[1]) or (owed.first is None and seen[run[0]] > 1):
            found.strange.append(run)
        elif len(received) > 1:
            _several(found, run, sorted(received), owed, windows)
    return found


def _owed(duty: Duty, slot: int) -> bool:
    if duty.first is None:
        return True
    steps, rest = divmod(slot - duty.first, duty.every)
    return not rest and 0 <= steps < duty.count


def _several(found: Compared, run: Run, received: list[float], duty: Duty, windows: Sequence[Window]) -> None:
    if duty.at_most_once:
        found.twice.append(run)
    elif all(any(window.opens <= at <= window.closes for window in windows) for at in received[:-1]):
        found.repeated.append(run)  # each call but the last could not be recorded
    else:
        found.doubled.append(run)
