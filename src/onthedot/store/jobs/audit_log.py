"""Who changed what: each verb of a user writes one row, in its own transaction.

Creating a job writes none: that is the hot path, and its row says when it was made and whose it is. Nor does what On
the Dot does by itself, such as ending a pause.
"""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.model.actor import ChangeActor
from onthedot.model.audit_entry import AuditEntry, AuditVerb
from onthedot.model.decoding import to_builtins
from onthedot.model.instant import NEVER, format_instant
from onthedot.model.job import JobRecord, JobSpec
from onthedot.store.abandoned_requests import acting
from onthedot.store.driver import Row, Transaction
from onthedot.store.paging import Page, check_limit, fingerprint, open_cursor, seal_cursor
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["AuditFilter", "AuditLog", "changed_fields", "write_audit"]

LONGEST = 500
"""Characters of a summary."""


class NewAuditEntry(Shape, frozen=True, kw_only=True):
    tenant: int
    at: int
    verb: str
    actor: str
    actor_kind: str
    key_id: int | None
    address: str | None
    job_id: int | None
    job_key: str | None
    run_id: str | None
    version_before: int | None
    version_after: int | None
    summary: str | None


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """`job_key` also finds jobs that were deleted. `since` and `until`: ms, both included."""

    job_id: int | None = None
    job_key: str | None = None
    actor: str | None = None
    verb: AuditVerb | None = None
    since: int | None = None
    until: int | None = None
    limit: int = 50
    cursor: str | None = None


class AuditLog(Topic):
    async def list_audit(self, tenant: int, wanted: AuditFilter) -> Page[AuditEntry]:
        """Newest first."""
        limit = check_limit(wanted.limit)
        chosen = {
            "audit_job": wanted.job_id,
            "audit_key": wanted.job_key,
            "audit_actor": wanted.actor,
            "audit_verb": wanted.verb,
        }
        given = {name: value for name, value in chosen.items() if value is not None}
        asked = fingerprint("audit", tenant, given, wanted.since, wanted.until)
        place = [NEVER, NEVER] if wanted.cursor is None else open_cursor(wanted.cursor, asked, (int, int))
        name = "+".join(["list_audit", *(f"where.{each}" for each in given or ["any_audit"])])
        span = wanted.since or 0, NEVER if wanted.until is None else wanted.until
        rows = await self.driver.read(lambda tx: tx.rows(name, tenant, *place, *span, limit + 1, *given.values()))
        last = rows[limit - 1] if len(rows) > limit else None
        return Page(
            items=[_entry(row) for row in rows[:limit]],
            next=None if last is None else seal_cursor(asked, last["at"], last["id"]),
        )


async def write_audit(
    tx: Transaction,
    verb: AuditVerb,
    tenant: int,
    at: int,
    *,
    job: JobRecord | None = None,
    job_id: int | None = None,
    run_id: str | None = None,
    changed: bool = False,
    summary: str | None = None,
    actor: ChangeActor | None = None,
    always: bool = False,
) -> None:
    """`changed`: the job gets its next version by it. `actor`: who does it, if not who asks. `always`: also what nobody
    asked for."""
    who = actor or acting()
    if who.kind == "system" and not always:
        return
    entry = NewAuditEntry(
        tenant=tenant,
        at=at,
        verb=verb,
        actor=who.name,
        actor_kind=who.kind,
        key_id=who.key_id,
        address=who.address,
        job_id=job_id if job is None else job.id,
        job_key=None if job is None else job.spec.key,
        run_id=run_id,
        version_before=job.version if job is not None and changed else None,
        version_after=job.version + 1 if job is not None and changed else None,
        summary=summary if summary is None or len(summary) <= LONGEST else summary[: LONGEST - 1] + "…",
    )
    await tx.execute("write_audit", Rows([entry]))


def changed_fields(old: JobSpec, new: JobSpec) -> str | None:
    """Names of the fields that differ, never what is in them: "name, schedule.cron"."""
    before, after = to_builtins(old), to_builtins(new)
    return ", ".join(_differing(before, after)) or None


def _differing(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    found = []
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        inner = _differing(old, new) if isinstance(old, dict) and isinstance(new, dict) and name != "params" else []
        found += [f"{name}.{each}" for each in inner] or [name]
    return found


def _entry(row: Row) -> AuditEntry:
    said = {name: row[name] for name in AuditEntry.__struct_fields__}
    return AuditEntry(**{**said, "at": format_instant(row["at"])})
