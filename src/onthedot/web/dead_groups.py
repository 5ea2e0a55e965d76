"""Dead letters by cause and hour: a thousand failures of one outage are one line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec

from onthedot.model.run import RunView

__all__ = ["LetterGroup", "cause_of", "group_letters"]

CAUSE = 200
_VARYING = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8}-[0-9a-f-]{20,}|\b(?=[a-f]*[0-9])[0-9a-f]{12,}\b|\d{5,}")
"""What differs from one failure of a kind to the next: ids, addresses in memory, long numbers."""


class LetterGroup(msgspec.Struct, kw_only=True):
    """`hour`: of the failures, "2026-11-18T02" in UTC. `jobs`: key or id, each once."""

    id: str
    cause: str
    hour: str
    first: str
    last: str
    letters: list[RunView] = msgspec.field(default_factory=list)
    jobs: list[str] = msgspec.field(default_factory=list)


def cause_of(run: RunView) -> str:
    """The first line of the error without what varies."""
    text = run.error or run.reason or "no reason was given"
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
    plain = _VARYING.sub("…", line)
    return plain if len(plain) <= CAUSE else plain[: CAUSE - 1] + "…"


def group_letters(letters: Iterable[RunView]) -> list[LetterGroup]:
    """Those that failed last come first, as in the list."""
    groups: dict[tuple[str, str], LetterGroup] = {}
    for run in letters:
        cause, at = cause_of(run), run.finished_at or run.due_at
        hour = at[:13]
        group = groups.get((cause, hour))
        if group is None:
            name = sha256(f"{hour} {cause}".encode()).hexdigest()[:16]
            group = groups[cause, hour] = LetterGroup(id=name, cause=cause, hour=hour, first=at, last=at)
        group.letters.append(run)
        group.first, group.last = min(group.first, at), max(group.last, at)
        job = run.key or f"job {run.job_id}"
        if job not in group.jobs:
            group.jobs.append(job)
    return _in_order(list(groups.values()))


def _in_order(groups: Sequence[LetterGroup]) -> list[LetterGroup]:
    return sorted(groups, key=lambda group: (group.last, len(group.letters)), reverse=True)
