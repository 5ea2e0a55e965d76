"""The proof: slots expected and decided, as the store keeps it and as the API shows it."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["BlindSpot", "Offence", "OffenceView", "Proof", "ProofRound", "TenantProof"]

Problem = Literal["missing", "twice"]


class Offence(msgspec.Struct, frozen=True, kw_only=True):
    """A slot without a row, or with two. In ms."""

    job_id: int
    key: str | None
    slot: int
    problem: Problem


class ProofRound(msgspec.Struct, frozen=True, kw_only=True):
    """One pass over the jobs of all tenants. In ms. unseen_since: nothing after this and before `since` was looked at
    by any round. complete False: it took too long, and the next one goes on where it ended."""

    since: int
    until: int
    finished_at: int
    jobs: int
    complete: bool
    unseen_since: int | None = None


class TenantProof(msgspec.Struct, kw_only=True):
    """What a round has found about one tenant's jobs."""

    jobs: int = 0
    unchecked_jobs: int = 0
    expected: int = 0
    decided: int = 0
    waiting: int = 0
    missing: int = 0
    twice: int = 0
    left_out: int = 0
    offences: list[Offence] = msgspec.field(default_factory=list)


class OffenceView(msgspec.Struct, frozen=True, kw_only=True):
    """A slot that has no entry in the history (missing), or more than one (twice)."""

    job_id: int
    key: str | None
    slot: str
    problem: Problem


class BlindSpot(msgspec.Struct, frozen=True, kw_only=True):
    """A time that no check has looked at."""

    since: str
    until: str


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Slots that should have been decided from `since` to `until`, and those that were. All times RFC 3339.

    `ok`: none is missing, none was decided twice, and the check is recent; null: no check has ended yet. `waiting`:
    due, and about to be claimed. `left_out`: slots before the last change of their job (other than of its name,
    owner or tags), or beyond its newest 5,000.
    `unchecked_jobs`: jobs whose schedule the check does not understand. `complete` false: there are so many jobs that
    the check covered only `jobs` of them; the next one continues with the others. The first 100
    offences of each problem are listed.
    """

    ok: bool | None
    since: str | None
    until: str | None
    checked_at: str | None
    complete: bool
    jobs: int
    unchecked_jobs: int
    expected: int
    decided: int
    waiting: int
    missing: int
    twice: int
    left_out: int
    offences: list[OffenceView]
    blind: list[BlindSpot]
