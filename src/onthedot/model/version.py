"""What a job was: its definition at each version, and who changed it."""

from __future__ import annotations

from typing import Literal

import msgspec

from onthedot.model.job import OpenJobSpec

__all__ = ["ChangeVerb", "JobVersion"]

ChangeVerb = Literal["create", "edit", "pause", "resume", "restore"]


class JobVersion(msgspec.Struct, frozen=True, kw_only=True):
    """`spec` as it was from `at` on, with secrets masked. `verb`, `actor`: how it came about and by whom (the name of
    a key, "open", the source of a jobs file, an intake); null where that is not known."""

    version: int
    at: str
    verb: ChangeVerb | None
    actor: str | None
    actor_kind: str | None
    current: bool
    spec: OpenJobSpec
