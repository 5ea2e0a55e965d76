"""Notes: what the end of a run causes elsewhere: jobs that follow it, alerts, or one that is parked as its receiver is
gone.

Finish locks runs and must not lock jobs: every verb locks its job first, and the two would wait for each other. So the
transaction that ends a run only writes down what is to be done, and to which job. A second one does it, and deletes the
note: the same node right after the commit, any other within a second, whoever died in between. Done and deleted
together, nothing is lost and nothing is done twice.
"""

from __future__ import annotations

import msgspec

from onthedot.model.chains import ChainTrigger
from onthedot.model.decoding import encode_json
from onthedot.model.incident import Trouble
from onthedot.store.shapes import Shape

__all__ = [
    "ALERT",
    "CHAIN",
    "PARK",
    "AlertNote",
    "ChainNote",
    "NewNote",
    "ParkNote",
    "alert_note",
    "chain_note",
    "park_note",
]

PARK = "park"
CHAIN = "chain"
ALERT = "alert"


class NewNote(Shape, frozen=True, kw_only=True):
    kind: str
    tenant: int
    job_id: int  # what it is done to; of a chain: whose run ended
    run_id: str  # whose end caused it
    said: str
    created_at: int


class ParkNote(msgspec.Struct, frozen=True, kw_only=True):
    """The job is to be paused. `version`: of the job as the run read it. One that was changed since is another job to
    whoever changed it: its next run says whether its receiver is gone."""

    version: int
    reason: str


def park_note(tenant: int, job_id: int, run_id: str, said: ParkNote, now: int) -> NewNote:
    return NewNote(
        kind=PARK, tenant=tenant, job_id=job_id, run_id=run_id, said=encode_json(said).decode(), created_at=now
    )


class ChainNote(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs with these keys are to be run. They were named by the job as the run that ended had read it: what is
    changed after that is for the next run."""

    keys: list[str]
    trigger: ChainTrigger


def chain_note(tenant: int, said: ChainNote, ended_at: int) -> NewNote:
    """`ended_at` becomes the slot of the runs, and is part of their ids."""
    return NewNote(
        kind=CHAIN,
        tenant=tenant,
        job_id=said.trigger.job_id,
        run_id=said.trigger.run_id,
        said=encode_json(said).decode(),
        created_at=ended_at,
    )


class AlertNote(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, and who is to be told."""

    troubles: list[Trouble]


def alert_note(tenant: int, job_id: int, run_id: str, said: AlertNote, at: int) -> NewNote:
    return NewNote(
        kind=ALERT, tenant=tenant, job_id=job_id, run_id=run_id, said=encode_json(said).decode(), created_at=at
    )
