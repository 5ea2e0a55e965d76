"""The runs that the end of another one starts: one for each job named, in the transaction that deletes the note.

Like every verb it locks the jobs that get a run, in the order of their ids, but none of their runs. The id of a run is
made of the one that ended, so that no end can start a job twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.model.chains import LONGEST_CHAIN
from onthedot.model.decoding import encode_json
from onthedot.model.job import JobRecord
from onthedot.plan import chain_number
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.rows import KeyOfJob
from onthedot.store.runs.notes import ChainNote
from onthedot.store.runs.row import NewRun, new_run
from onthedot.store.runs.spec_cache import SpecCache
from onthedot.store.runs.terminate import Ending, end_runs
from onthedot.store.shapes import Rows, Shape

__all__ = ["FollowerSkipped", "FollowerStarted", "start_followers"]

TOO_LONG = "chain_too_long"
DELETED = "deleted"

_chain_note = msgspec.json.Decoder(ChainNote).decode


class FollowerStarted(msgspec.Struct, frozen=True, kw_only=True):
    tenant: int
    job_id: int
    run_id: str
    parent: str  # the run that ended


class FollowerSkipped(msgspec.Struct, frozen=True, kw_only=True):
    """`run_id`: its entry in the ledger, as skipped; None: there is no job that could have one."""

    tenant: int
    key: str
    parent: str
    reason: str
    job_id: int | None = None
    run_id: str | None = None


class FollowerParams(Shape, frozen=True, kw_only=True):
    run_id: str
    tenant: int
    params: str
    created_at: int
    parent: str
    depth: int


async def start_followers(
    tx: Transaction, notes: Sequence[Row], specs: SpecCache
) -> list[FollowerStarted | FollowerSkipped]:
    told = [(note, _chain_note(note["said"])) for note in notes]
    wanted = {(note["tenant"], key) for note, said in told for key in said.keys}
    holders = await tx.rows("holders_of_keys", Rows([KeyOfJob(tenant, key) for tenant, key in sorted(wanted)]))
    ids = sorted(row["id"] for row in holders)
    await tx.rows("lock_jobs", ids)
    jobs = await specs.read(tx, ids)
    by_key = {(row["tenant"], row["key"]): jobs[row["id"]] for row in holders if row["id"] in jobs}
    depths = await tx.rows("depths_of", [note["run_id"] for note in notes])
    batch = _Batch(await tx.now(), {row["run_id"]: row["depth"] for row in depths})
    for note, said in told:
        for key in said.keys:
            batch.start(note, said, key, by_key.get((note["tenant"], key)))
    await batch.write(tx)
    return batch.answers


class _Batch:
    def __init__(self, now: int, depths: dict[str, int]) -> None:
        self.answers: list[FollowerStarted | FollowerSkipped] = []
        self._now = now
        self._depths = depths
        self._runs: dict[str, NewRun] = {}
        self._params: list[FollowerParams] = []
        self._too_long: list[str] = []

    def start(self, note: Row, said: ChainNote, key: str, job: JobRecord | None) -> None:
        tenant, parent = note["tenant"], note["run_id"]
        if job is None:  # while it was named it could not be deleted: since the end it is named no more
            self.answers.append(FollowerSkipped(tenant=tenant, key=key, parent=parent, reason=DELETED))
            return
        run, depth = self._run(note, job), self._depths.get(parent, 0) + 1
        if run.id in self._runs:
            return
        params = encode_json({"trigger": said.trigger}).decode()
        self._runs[run.id] = run
        self._params.append(
            FollowerParams(
                run_id=run.id, tenant=tenant, params=params, created_at=self._now, parent=parent, depth=depth
            )
        )
        if depth <= LONGEST_CHAIN:
            self.answers.append(FollowerStarted(tenant=tenant, job_id=job.id, run_id=run.id, parent=parent))
            return
        self._too_long.append(run.id)
        self.answers.append(
            FollowerSkipped(tenant=tenant, key=key, parent=parent, reason=TOO_LONG, job_id=job.id, run_id=run.id)
        )

    def _run(self, note: Row, job: JobRecord) -> NewRun:
        """It waits for the resume of a job that is paused, and for the change of one that is quarantined. One that has
        ended runs once more, as it does by hand."""
        now = self._now
        run = new_run(
            job.tenant,
            job.id,
            job.spec,
            note["created_at"],
            "chain",
            now=now,
            due=now,
            ready=now,
            n=chain_number(note["run_id"]),
            parked=job.state in ("paused", "quarantined"),
            parent=note["run_id"],
            own_params=True,
        )
        return msgspec.structs.replace(run, parked="quarantined") if job.state == "quarantined" else run

    async def write(self, tx: Transaction) -> None:
        if not self._runs:
            return
        new = {row["id"] for row in await tx.rows("insert_runs", Rows(list(self._runs.values())))}
        self._params = [each for each in self._params if each.run_id in new]
        self.answers = [each for each in self.answers if each.run_id is None or each.run_id in new]
        if self._params:
            await tx.execute("add_follower_params", Rows(self._params))
        if self._too_long:
            await end_runs(
                tx,
                [
                    Ending(id=run, status="skipped", reason=TOO_LONG, finished_at=self._now)
                    for run in self._too_long
                    if run in new
                ],
            )
