"""Since when jobs have had the times that they have: changes of their name, owner or tags move no slot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise

import msgspec

from onthedot.store.driver import Row, Transaction

__all__ = ["timed_since"]

LABELS = frozenset({"name", "owner", "tags"})
LOOKED_AT = 10
"""Versions of a job: who changes its labels more often in a day is believed to have changed more."""
AT_ONCE = 50
"""Jobs whose versions are read at once."""

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])


async def timed_since(tx: Transaction, jobs: Sequence[Row]) -> dict[int, int]:
    """By id, of jobs that were changed, in ms."""
    found = {}
    for start in range(0, len(jobs), AT_ONCE):
        asked = {job["id"]: job for job in jobs[start : start + AT_ONCE]}
        rows = await tx.rows("newest_versions", list(asked), LOOKED_AT)
        for job_id, versions in groupby(rows, lambda row: row["job_id"]):
            found[job_id] = _since(asked[job_id], list(versions))
        await tx.breathe()
    return found


def _since(job: Row, versions: Sequence[Row]) -> int:
    """`versions`: the newest first."""
    if versions[0]["version"] != job["version"]:
        return int(job["updated_at"])
    for present, before in pairwise(versions):
        follows = present["version"] == before["version"] + 1
        if present["verb"] != "edit" or not follows or _timed(present) != _timed(before):
            return int(present["at"])
    return int(versions[-1]["at"])


def _timed(version: Row) -> dict[str, bytes]:
    return {name: bytes(value) for name, value in _fields.decode(version["spec"]).items() if name not in LABELS}
