"""Concurrency groups: one too many, a place that is never free again, a run that nobody calls, another's group."""

from __future__ import annotations

from onthedot.model.policy import Concurrency
from proof.planted.focus import Focus
from proof.planted.plant import Bug, Code, code, sql

__all__ = ["BUGS"]

_STORE = ("tests/store/test_groups.py",)
_FULL = Focus(policy={"overlap": "allow", "concurrency": Concurrency(group="g", limit=2)}, mood="slow")
_ONE = Focus(policy={"overlap": "allow", "concurrency": Concurrency(group="g", limit=1)})

BUGS = (
    code(
        "groups: one too many",
        "a group has one run more at once than it may",
        "onthedot.plan.groups:GroupState.room",
        "self.limit - self.running",
        "self.limit - self.running + 1",
        shows=("group",),
        focus=_FULL,
    ),
    sql(
        "groups: a lost run keeps its place",
        "the place of a run whose node died is never free again, while the run waits",
        "group_states",
        "r.state = 'running'",
        "(r.state = 'running' OR r.losses > 0)",
        faults=("kill", "kill_at"),
        shows=("group", "stuck"),
        focus=_ONE,
    ),
    Bug(
        name="groups: nobody is called",
        what="who waits is called by none of those who make room",
        edits=(
            Code("onthedot.store.runs.groups:_call", "if ids else 0", "if False else 0"),
            Code("onthedot.store.runs.groups:ClaimedGroups.decide", "if wake:", "if wake and False:"),
        ),
        shows=("group", "stuck"),
        focus=_ONE,
    ),
    code(
        "groups: shared by tenants",
        "runs of one tenant take the places of another",
        "onthedot.model.group:membership",
        'f"{tenant}/{policy.concurrency.group}"',
        'f"1/{policy.concurrency.group}"',
        tests=_STORE,
        unseen="the simulation has one tenant",
    ),
    sql(
        "groups: the newest first",
        "who waits longest waits on",
        "waiting_of_groups",
        "ORDER BY r.due_at, r.id",
        "ORDER BY r.due_at DESC, r.id",
        tests=_STORE,
        unseen="who is claimed next of those that wait is not judged by a history",
    ),
    code(
        "groups: a retry frees no place",
        "who waits is called only when a run ends for good",
        "onthedot.store.runs.finish_batch:FinishBatch.attempt",
        "settle_groups(tx, lanes)",
        "settle_groups(tx, ended)",
        tests=_STORE,
        unseen="the duty calls them within seconds",
    ),
)
