"""Run ids read back: `<job id>-<slot>`, with `-m<n>`, `-b<n>`, `-r<n>` for manual, backfill and redriven runs."""

from __future__ import annotations

import re

from onthedot.errors import NotFound

__all__ = ["job_of", "parse_run_id", "slot_of"]

_SHAPE = re.compile(r"([1-9]\d{0,18})-(-?\d{1,19})(?:-[mbr]\d{1,19})?", re.ASCII)


def parse_run_id(run_id: str) -> tuple[int, int]:
    """(job id, slot), or NotFound: what has another form is no run of ours."""
    match = _SHAPE.fullmatch(run_id)
    if match is None or int(match[1]) >= 2**63 or abs(int(match[2])) >= 2**63:
        raise NotFound(f"there is no run {run_id[:100]!r}")
    return int(match[1]), int(match[2])


def job_of(run_id: str) -> int:
    return parse_run_id(run_id)[0]


def slot_of(run_id: str) -> int:
    return parse_run_id(run_id)[1]
