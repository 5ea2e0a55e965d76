"""Carrying out notes (see `runs.notes`): one transaction for one job, which it locks as every verb does."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot import telemetry
from onthedot.errors import StoreUnavailable
from onthedot.plan import on_pause
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.apply_plan import apply_change, lock
from onthedot.store.runs.notes import PARK, ParkNote
from onthedot.store.topic import Topic

__all__ = ["CarriedOut", "NotesOfRuns", "Parked"]

AT_ONCE = 1000

_park_note = msgspec.json.Decoder(ParkNote).decode


class Parked(msgspec.Struct, frozen=True, kw_only=True):
    tenant: int
    job_id: int
    run_id: str
    reason: str


class CarriedOut(msgspec.Struct, frozen=True, kw_only=True):
    """`passed`: the newest note that could not be carried out, and is still there; 0: all could."""

    parked: list[Parked]
    passed: int = 0


class NotesOfRuns(Topic):
    async def carry_out_notes(self, after: int = 0) -> CarriedOut | None:
        """Do what the notes of one job say, and delete them. None: there are none (with an id over `after`) that
        somebody else does not have in hand."""
        if await self.driver.read(lambda tx: tx.row("any_notes", after), watched=True) is None:
            return None
        last = 0

        async def body(tx: Transaction) -> CarriedOut | None:
            nonlocal last
            notes = await tx.rows("take_notes", after, AT_ONCE)
            if not notes:
                return None
            last = max(note["id"] for note in notes)
            parked = await _park(tx, [note for note in notes if note["kind"] == PARK])
            await tx.execute("delete_notes", [note["id"] for note in notes if note["kind"] == PARK])
            return CarriedOut(parked=[] if parked is None else [parked], passed=_unknown(notes))

        try:
            carried = await self.driver.transact_slow(body)
        except StoreUnavailable:
            raise
        except Exception as error:  # the notes of one job must not keep those of others waiting
            if not last:
                raise
            telemetry.emit("note.failed", error=f"{type(error).__name__}: {error}")
            return CarriedOut(parked=[], passed=last)
        for job in [] if carried is None else carried.parked:
            telemetry.emit("job.parked", tenant=job.tenant, job_id=job.job_id, run_id=job.run_id, reason=job.reason)
        return carried


def _unknown(notes: Sequence[Row]) -> int:
    """A newer release knows what to do with these."""
    return max((note["id"] for note in notes if note["kind"] != PARK), default=0)


async def _park(tx: Transaction, notes: Sequence[Row]) -> Parked | None:
    """Pause the job, if it is still the one that the run read."""
    if not notes:
        return None
    job = await lock(tx, notes[0]["tenant"], notes[0]["job_id"])
    if job is None or job.record.state != "active":
        return None
    for note in notes:
        said = _park_note(note["said"])
        if said.version != job.record.version:
            continue
        reason = f"system: {said.reason} (run {note['run_id']})"
        change = on_pause(job.record, job.cursor_slot)
        await apply_change(tx, job, msgspec.structs.replace(job.record.spec, paused=True), change, (reason, None))
        return Parked(tenant=job.record.tenant, job_id=job.record.id, run_id=note["run_id"], reason=reason)
    return None
