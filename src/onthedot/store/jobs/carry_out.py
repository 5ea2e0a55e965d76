"""Carrying out notes (see `runs.notes`): each transaction takes those of one kind; it locks jobs as every verb does."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot import telemetry
from onthedot.errors import StoreUnavailable
from onthedot.plan import on_pause
from onthedot.store.alerts.incidents import OpenedIncident, announce, open_incidents
from onthedot.store.driver import Driver, Row, Transaction
from onthedot.store.jobs.apply_plan import apply_change, lock
from onthedot.store.jobs.start_followers import FollowerSkipped, FollowerStarted, start_followers
from onthedot.store.runs.notes import ALERT, CHAIN, PARK, AlertNote, ParkNote
from onthedot.store.runs.spec_cache import SpecCache
from onthedot.store.topic import Topic

__all__ = ["CarriedOut", "NotesOfRuns", "Parked"]

AT_ONCE = 200

_park_note = msgspec.json.Decoder(ParkNote).decode
_alert_note = msgspec.json.Decoder(AlertNote).decode


class Parked(msgspec.Struct, frozen=True, kw_only=True):
    tenant: int
    job_id: int
    run_id: str
    reason: str


class CarriedOut(msgspec.Struct, frozen=True, kw_only=True):
    """`passed`: the newest note that could not be carried out, and is still there; 0: all could."""

    parked: list[Parked] = msgspec.field(default_factory=list)
    followers: list[FollowerStarted | FollowerSkipped] = msgspec.field(default_factory=list)
    incidents: list[OpenedIncident] = msgspec.field(default_factory=list)
    passed: int = 0

    @property
    def started(self) -> list[FollowerStarted]:
        return [each for each in self.followers if isinstance(each, FollowerStarted)]

    def announce(self) -> None:
        """After the commit."""
        announce(self.incidents)
        for job in self.parked:
            telemetry.emit("job.parked", tenant=job.tenant, job_id=job.job_id, run_id=job.run_id, reason=job.reason)
        for each in self.followers:
            names = {"tenant": each.tenant, "job_id": each.job_id, "run_id": each.run_id, "parent": each.parent}
            if isinstance(each, FollowerStarted):
                telemetry.emit("chain.started", **names)
            else:
                telemetry.emit("chain.not_started", **names, key=each.key, reason=each.reason)


class NotesOfRuns(Topic):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._followed = SpecCache()

    async def count_old_notes(self, age_ms: int) -> tuple[int, int]:
        """How many notes have waited for longer than this to be carried out, of the ten thousand oldest, and how long
        the first of them has, in milliseconds."""

        async def body(tx: Transaction) -> tuple[int, int]:
            now = await tx.now()
            row = await tx.row("count_old_notes", now - age_ms)
            assert row is not None
            return row["notes"], 0 if row["since"] is None else max(0, now - row["since"])

        return await self.driver.read(body)

    async def carry_out_notes(self, after: int = 0) -> CarriedOut | None:
        """Do what the notes of one kind (and, unless they are chains, of one job) say, and delete them. None: there are
        none (with an id over `after`) that somebody else does not have in hand."""
        if await self.driver.read(lambda tx: tx.row("any_notes", after), watched=True) is None:
            return None
        batch = _NoteBatch(after, self._followed)
        try:
            carried = await self.driver.transact_slow(batch.attempt)
        except StoreUnavailable:
            raise
        except Exception as error:  # some must not keep the others waiting
            if not batch.taken:
                raise
            if batch.kind in (CHAIN, ALERT) and len(batch.taken) > 1:  # they have nothing to do with each other
                carried = await self._carry_out_first(after)
            else:
                carried = _failed(error, batch)
        if carried is not None:
            carried.announce()
        return carried

    async def _carry_out_first(self, after: int) -> CarriedOut | None:
        batch = _NoteBatch(after, self._followed, most=1)
        try:
            return await self.driver.transact_slow(batch.attempt)
        except StoreUnavailable:
            raise
        except Exception as error:
            return _failed(error, batch)


class _NoteBatch:
    """One transaction."""

    def __init__(self, after: int, specs: SpecCache, most: int = AT_ONCE) -> None:
        self.taken: list[int] = []
        self.kind = ""
        self._after = after
        self._specs = specs
        self._most = most

    async def attempt(self, tx: Transaction) -> CarriedOut | None:
        notes = await tx.rows("take_notes", self._after, self._most)
        self.taken = [note["id"] for note in notes]
        if not notes:
            return None
        self.kind = notes[0]["kind"]
        if self.kind == PARK:
            parked = await _park(tx, notes)
            carried = CarriedOut(parked=[] if parked is None else [parked])
        elif self.kind == CHAIN:
            carried = CarriedOut(followers=await start_followers(tx, notes, self._specs))
        elif self.kind == ALERT:
            troubles = [trouble for note in notes for trouble in _alert_note(note["said"]).troubles]
            carried = CarriedOut(incidents=await open_incidents(tx, troubles))
        else:  # a newer release knows what to do with these
            return CarriedOut(passed=max(self.taken))
        await tx.execute("delete_notes", self.taken)
        return carried


def _failed(error: Exception, batch: _NoteBatch) -> CarriedOut:
    telemetry.emit("note.failed", kind=batch.kind, error=f"{type(error).__name__}: {error}")
    return CarriedOut(passed=max(batch.taken, default=0))


async def _park(tx: Transaction, notes: Sequence[Row]) -> Parked | None:
    """Pause the job, if it is still the one that the run read."""
    job = await lock(tx, notes[0]["tenant"], notes[0]["job_id"])
    if job is None or job.record.state != "active":
        return None
    for note in notes:
        said = _park_note(note["said"])
        if said.version != job.record.version:
            continue
        reason = f"system: {said.reason} (run {note['run_id']})"
        change = on_pause(job.record, job.cursor_slot)
        paused = msgspec.structs.replace(job.record.spec, paused=True)
        await apply_change(tx, job, paused, change, (reason, None), verb="pause")
        return Parked(tenant=job.record.tenant, job_id=job.record.id, run_id=note["run_id"], reason=reason)
    return None
