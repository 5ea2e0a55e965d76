"""Runs that needed no lock but their own: one-offs, retries, what was asked for by hand. Read by the thousand, so by
the order of their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from onthedot.model.job import JobSpec
from onthedot.model.run import ClaimedRun
from onthedot.plan import expired
from onthedot.store.driver import Row, Transaction
from onthedot.store.runs.claim_batch import ClaimBatch
from onthedot.store.runs.rows import decode_attempts

__all__ = ["free_runs", "with_own_params"]


def free_runs(rows: Sequence[Row], specs: dict[int, tuple[int, JobSpec]], batch: ClaimBatch) -> list[ClaimedRun]:
    """Rows of `claim_free` with their jobs as they are now. What is too late, or has no job any more, ends here."""
    runs = []
    for row in rows:
        id_, tenant, job_id, slot, kind, recurring, due, _, token, tries, losses, first, attempts, _ = row
        known = specs.get(job_id)
        if known is None:
            batch.end(row, "cancelled", "the job is gone")
            continue
        version, spec = known
        if token == 1 and spec.policy.expires_in is not None and expired(spec.policy, due, batch.now):
            batch.end(row, "skipped", "late")
            continue
        runs.append(
            ClaimedRun(
                id=id_,
                tenant=tenant,
                job_id=job_id,
                version=version,
                spec=spec,
                kind=kind,
                slot=slot,
                due_at=due,
                token=token,
                tries=tries,
                losses=losses,
                first_claimed_at=first,
                recurring=bool(recurring),
                attempts=decode_attempts(attempts) if attempts else (),
            )
        )
    return runs


_params = msgspec.json.Decoder(dict[str, Any], float_hook=float)


async def with_own_params(tx: Transaction, runs: list[ClaimedRun]) -> list[ClaimedRun]:
    """Runs that were asked for by hand may have params of their own: they are looked up for those alone."""
    by_hand = [run.id for run in runs if run.kind in ("manual", "redrive")]
    if not by_hand:
        return runs
    own = {row["run_id"]: _params.decode(row["params"]) for row in await tx.rows("params_of", by_hand)}
    return [msgspec.structs.replace(run, params=own[run.id]) if run.id in own else run for run in runs] if own else runs
