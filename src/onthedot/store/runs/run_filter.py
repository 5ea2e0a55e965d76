"""Which runs a list shows."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from onthedot.model.run import RunKind, RunStatus, RunView, TriggerKind, kind_of_trigger
from onthedot.store.driver import Row
from onthedot.store.paging import fingerprint
from onthedot.store.queries import LATE_MS

__all__ = ["RunFilter", "asked_of_runs", "has_narrow_filters", "passes"]


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs. `since` and `until` bound `scheduled_for`, in ms, both included."""

    job_id: int | None = None
    status: RunStatus | None = None
    since: int | None = None
    until: int | None = None
    q: str | None = None  # in the error, or in the reason, in any case
    node: str | None = None  # the id of the node that has it, or had it last
    trigger: TriggerKind | None = None
    late: bool | None = None
    """It began more than a second after it was due; of a run that has not begun: it is due for longer than that."""
    limit: int = 50
    cursor: str | None = None

    @property
    def kind(self) -> RunKind | None:
        return None if self.trigger is None else kind_of_trigger(self.trigger)


def asked_of_runs(tenant: int, wanted: RunFilter) -> str:
    """What a cursor belongs to."""
    plain = msgspec.structs.replace(wanted, limit=0, cursor=None)
    return fingerprint("runs", tenant, msgspec.structs.astuple(plain))


def has_narrow_filters(wanted: RunFilter) -> bool:
    """Whether there is a filter that no index serves: then a page looks at so many runs and no more."""
    return any(given is not None for given in (wanted.q, wanted.node, wanted.trigger, wanted.late))


def passes(wanted: RunFilter, row: Row | Mapping[str, object], view: RunView, now: int) -> bool:
    """Whether a live run passes those filters; of ended ones the database says it."""
    if wanted.q is not None:
        words = wanted.q.lower()
        if not any(words in (text or "").lower() for text in (view.error, view.reason)):
            return False
    if wanted.node is not None and view.node != wanted.node:
        return False
    if wanted.kind is not None and view.kind != wanted.kind:
        return False
    if wanted.late is None:
        return True
    begun, due = row["begun_at"], row["due_at"]
    assert isinstance(due, int)
    late = (begun if isinstance(begun, int) else now) - due > LATE_MS
    return late is wanted.late
