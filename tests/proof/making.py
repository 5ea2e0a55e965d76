"""Small histories written by hand, for tests of the checker: one job that fires every ten seconds, all well."""

from __future__ import annotations

from typing import Any

from proof.checker.events import Changed, Claimed, Event, Fault, History, Lost, Made, Received, Recorded
from proof.checker.ledger import Entry, Job, Ledger, Live
from proof.checker.verdict import check

BEGIN = 1_700_000_000_000
END = 60_000


class Tale:
    """`Tale().fires(10_000).kinds()`: what the checker says of it. Times in ms since the beginning."""

    def __init__(self, schedule: dict[str, Any] | None = None, **policy: Any) -> None:
        schedule = schedule or {"every": "10s"}
        spec = {"schedule": schedule, "target": {"type": "webhook"}, "policy": policy, "params": {"mark": 1}}
        self.events: History = [Made(at=0, until=5, mark=1, job=1, spec=spec, created_at=BEGIN)]
        self.jobs = [Job(id=1, spec=spec, state="active")]
        self.entries: list[Entry] = []
        self.live: list[Live] = []

    def add(self, *events: Event) -> Tale:
        self.events.extend(events)
        return self

    def sent(
        self, slot: int, *, at: int | None = None, token: int = 1, answer: Any = "ok", node: str = "a", took: int = 5
    ) -> Tale:
        moment = slot + 2 if at is None else at
        return self.add(
            Received(
                at=moment, db=BEGIN + moment, run=_run(slot), job=1, token=token, answer=answer, took=took, node=node
            )
        )

    def claimed(self, slot: int, *, token: int = 1, node: str = "a", at: int | None = None) -> Tale:
        moment = slot - 2000 if at is None else at
        return self.add(Claimed(at=moment, db=BEGIN + moment, node=node, run=_run(slot), token=token))

    def recorded(
        self, slot: int, *, token: int = 1, node: str = "a", at: int | None = None, outcome: str | None = None
    ) -> Tale:
        moment = slot + 10 if at is None else at
        return self.add(Recorded(at=moment, node=node, run=_run(slot), token=token, outcome=outcome))

    def entry(self, slot: int, status: str = "done", **more: Any) -> Tale:
        until = more.pop("until", None)
        fields = {
            "token": 1,
            "tries": 1 if status in ("done", "failed") else 0,
            "losses": 0,
            "reason": None,
            "slots": None,
            "kind": "scheduled",
            "finished_at": BEGIN + slot + 10,
            **more,
        }
        until = None if until is None else BEGIN + until
        self.entries.append(
            Entry(id=_run(slot), job=1, slot=BEGIN + slot, until=until, due_at=BEGIN + slot, status=status, **fields)
        )
        return self

    def waits(self, slot: int, **more: Any) -> Tale:
        fields = {
            "kind": "scheduled",
            "cursor": True,
            "state": "pending",
            "ready_at": BEGIN + slot - 2000,
            "parked": None,
            "token": 0,
            "node": None,
            **more,
        }
        self.live.append(Live(id=_run(slot), job=1, slot=BEGIN + slot, due_at=BEGIN + slot, **fields))
        return self

    def fires(self, *slots: int) -> Tale:
        for slot in slots:
            self.claimed(slot).sent(slot).recorded(slot).entry(slot)
        return self

    def changed(self, verb: Any, at: int, **more: Any) -> Tale:
        db = BEGIN + at
        return self.add(Changed(at=at, until=at, job=1, verb=verb, changed_at=db, **more))

    def fault(self, what: str, at: int, until: int, node: str | None = None) -> Tale:
        return self.add(Fault(at=at, until=until, what=what, node=node))

    def lost(self, node: str, at: int, silent: int = 5001) -> Tale:
        return self.add(Lost(at=at, node=node, silent=silent))

    def ledger(self) -> Ledger:
        return Ledger(at=END, now=BEGIN + END, jobs=self.jobs, live=self.live, entries=self.entries)

    def history(self) -> History:
        return sorted(self.events, key=lambda event: event.at)

    def kinds(self) -> set[str]:
        return {violation.kind for violation in check(self.history(), self.ledger())[0]}


def _run(slot: int) -> str:
    return f"1-{BEGIN + slot}"


def all_well() -> Tale:
    return Tale().fires(10_000, 20_000, 30_000, 40_000, 50_000).waits(60_000)
