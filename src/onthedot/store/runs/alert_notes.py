"""Notes of ends that somebody is to be told of: written with the end itself, carried out like all notes (`notes`).

Which rules apply is decided here, by the job as the run had read it, so that whoever carries the note out need not have
the same settings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from onthedot.model.alerts import Alerting
from onthedot.model.incident import Trouble, job_subject
from onthedot.model.job import JobRecord, JobSpec
from onthedot.model.run import run_id
from onthedot.plan import RetryLater, Skipped, cause_of
from onthedot.plan.alerts import Raised, on_end, on_given_up, rules_of, title_of
from onthedot.store.driver import Transaction
from onthedot.store.runs.finish_rows import Item, storable
from onthedot.store.runs.notes import AlertNote, NewNote, alert_note
from onthedot.store.shapes import Rows

__all__ = ["GivenUp", "end_note", "note_given_up"]

OUTPUT = 2000
"""Characters of the output that a message carries: the last ones."""


def end_note(item: Item, alerting: Alerting) -> NewNote | None:
    """None: nobody wants to hear of this end. Of most jobs that is known at once. An attempt that is made again, or was
    cancelled, may have begun late or taken too long without anybody having looked while it ran."""
    job = item.job
    if job is None:
        return None
    rules = rules_of(job, alerting)
    if not rules:
        return None
    failed = item.status == "failed" and not isinstance(item.decision, RetryLater)
    if item.status == "skipped":
        raised = on_given_up(rules, getattr(item.decision, "reason", None) or "", 1)
    else:
        raised = on_end(
            rules,
            failed=failed,
            error=item.outcome.error,
            lateness_ms=item.lateness_ms,
            duration_ms=item.duration_ms,
            missed=failed and bool(item.outcome.detail.get("missed")),
        )
    if not raised:
        return None
    cause = cause_of(item.outcome, item.target) if failed else ""
    return _note(raised, item.tenant, item.job_id, job, item.id, item.finished_at, cause, _output(item))


class GivenUp(msgspec.Struct, frozen=True, gc=False):
    """Firings that will not happen, under one id of the ledger. `slots`: how many; None: too many to count."""

    tenant: int
    job_id: int
    spec: JobSpec
    run: str
    reason: str
    slots: int | None

    @staticmethod
    def of(job: JobRecord, gap: Skipped) -> GivenUp:
        return GivenUp(job.tenant, job.id, job.spec, run_id(job.id, gap.first), gap.reason, gap.slots)


async def note_given_up(tx: Transaction, given_up: Sequence[GivenUp], now: int) -> None:
    """Of firings that somebody wants to hear of. In the transaction that gives them up."""
    alerting, notes = tx.alerting, list[NewNote]()
    for each in given_up:
        if not alerting.rules and each.spec.alerts is msgspec.UNSET:
            continue
        if raised := on_given_up(rules_of(each.spec, alerting), each.reason, each.slots):
            notes.append(_note(raised, each.tenant, each.job_id, each.spec, each.run, now, "", None))
    if notes:
        await tx.execute("add_notes", Rows(notes))


def _note(
    raised: Sequence[Raised],
    tenant: int,
    job_id: int,
    job: JobSpec,
    run: str,
    at: int,
    cause: str,
    output: str | None,
) -> NewNote:
    troubles = [
        Trouble(
            tenant=tenant,
            subject=job_subject(job_id),
            condition=each.condition,
            reason=storable(each.reason) or "",
            cause=storable(cause or each.condition) or "",
            at=at,
            job_id=job_id,
            title=title_of(job, job_id),
            occurrence=run,
            output=storable(output),
            limit_ms=each.limit_ms,
            ways=each.ways,
            in_a_row=each.in_a_row,
            took_ms=each.took_ms,
        )
        for each in raised
    ]
    return alert_note(tenant, job_id, run, AlertNote(troubles=troubles), at)


def _output(item: Item) -> str | None:
    """What the run printed, or what it was answered."""
    said: Any = item.log or item.outcome.detail.get("response")
    if not said:
        return None
    return (said if isinstance(said, str) else str(said))[-OUTPUT:]
