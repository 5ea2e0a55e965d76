"""Jobs that a clock which was ahead carried into the future go on now (`plan.ahead` decides).

Found by every verb on such a job, by one node after the database's clock was set back, and after a start. What was
fired stays fired; rows of slots that were only given up end at now; the cursor goes back. Spec and version stay.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.errors import NoRoom
from onthedot.model.job import JobRecord
from onthedot.plan import Back, Cut, Taken, cut_off, on_clock_back
from onthedot.store.driver import Transaction
from onthedot.store.runs.row import add_runs, scheduled_run

__all__ = ["Correction", "correct", "find_correction"]


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of slots given up ahead of their time (id, slot, what is left), and where the job goes on; None: where it
    stands, it begins then as its answer said."""

    cuts: Sequence[tuple[str, int, Cut]]
    back: Back | None


async def find_correction(tx: Transaction, job: JobRecord, cursor_slot: int | None, now: int) -> Correction | None:
    """What is to be put right about a job whose newest slot lies in the future; None: it is a run that was cancelled
    long before its time, or was fired, and the cursor is where it belongs."""
    try:
        given_up = await tx.rows("given_up_ahead", job.id, now)
        cuts = [
            (row["id"], row["slot"], cut_off(job, row["slot"], row["until_slot"] or row["slot"], now))
            for row in given_up
        ]
        due_again = {slot for _, slot, _ in cuts}
        rows = await tx.rows("slots_with_rows", job.id, now, 2**62)
        taken = Taken.of((row["slot"], row["until_slot"]) for row in rows if row["slot"] not in due_again)
        back = on_clock_back(job, cursor_slot, now, taken, sum(cut.given_back for _, _, cut in cuts))
    except NoRoom:  # not the schedule's fault
        raise
    except Exception:  # its schedule can't be computed: the claim will meet that and quarantine the job
        return None
    if back is None:
        cuts = [cut for cut in cuts if cut[2].replaced]
    return Correction(cuts=cuts, back=back) if cuts or back is not None else None


async def correct(tx: Transaction, job: JobRecord, correction: Correction, now: int) -> None:
    """Under the job's lock."""
    for run_id, slot, cut in correction.cuts:
        if cut.last is None:
            await tx.execute("drop_given_up", job.tenant, slot, run_id)
        else:
            until = None if cut.last == slot else cut.last
            await tx.execute("cut_given_up", job.tenant, slot, run_id, until, cut.slots)
    if (back := correction.back) is None:
        return
    await tx.execute("set_back_job", job.id, back.state, back.slots_used)
    await tx.execute("drop_cursor", job.id)
    parked = back.state == "paused"
    cursor = scheduled_run(
        job.tenant, job.id, job.spec, back.cursor_slot, now=now, lookahead=tx.lookahead, parked=parked
    )
    await add_runs(tx, [cursor])
    await tx.execute("set_back_runs", job.id, now, tx.lookahead)
