"""Dead letters that are driven again: a new run of the same slot, because a terminal run never changes."""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.model.job import JobRecord
from onthedot.model.run import run_id
from onthedot.plan import only_slot
from onthedot.store.driver import Row, Rows, Transaction
from onthedot.store.jobs.sequences import take_run_numbers
from onthedot.store.runs.new_runs import new_run

__all__ = ["dead_firing", "drive_again"]


async def dead_firing(tx: Transaction, job: JobRecord) -> Row | None:
    """The open dead letter of a one-off's own firing. A run by hand that failed is none: it has another slot."""
    if not job.spec.schedule.one_off or (slot := only_slot(job)) is None:
        return None
    own = run_id(job.id, slot)
    for row in await tx.rows("take_dead+where.dead_job", job.tenant, 100, job.id):
        if row["id"] == own or row["id"].startswith(f"{own}-r"):
            return row
    return None


async def drive_again(tx: Transaction, ended: Sequence[tuple[Row, JobRecord]], now: int, *, backlog: bool) -> list[str]:
    """New runs for these ended ones, under their jobs' locks. Their ids."""
    numbers = await take_run_numbers(tx, len(ended))
    rows = [
        new_run(
            job,
            row["slot"],
            now,
            lookahead=tx.lookahead,
            kind="redrive",
            n=n,
            backlog=backlog,
            parent=row["id"],
            not_before=now,
        )
        for (row, job), n in zip(ended, numbers, strict=True)
    ]
    if rows:
        await tx.rows("insert_runs", Rows(rows))
        pairs = [(new[0], old["id"]) for new, (old, _) in zip(rows, ended, strict=True)]
        await tx.execute("copy_params", now, Rows(pairs))
        await tx.execute("delete_dead", [row["id"] for row, _ in ended])
    return [row[0] for row in rows]
