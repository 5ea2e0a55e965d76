"""The database's own diary: what was committed, by whom, in which order, whether anybody was told of it or not.

Beside the receiver and the users it is all that the checker believes. What users wished for is taken from what they
asked, never from what the product answered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onthedot.model.decoding import to_builtins
from onthedot.model.job import JobSpec, JobView
from onthedot.model.run import Outcome
from onthedot.plan import Accepted
from onthedot.store import NewJob
from onthedot.store.abandoned_requests import ASKER
from onthedot.store.driver import Driver, Transaction
from proof.checker.events import (
    Begun,
    Changed,
    Claimed,
    Completed,
    Froze,
    History,
    Lost,
    Made,
    Recorded,
    Waited,
    WaitingRow,
    Wrote,
)
from proof.sim.clocks import DatabaseTime
from proof.sim.front import Client
from proof.sim.loop import VirtualLoop, at_once

__all__ = ["Diary", "Wish"]

_VERBS: dict[str, Any] = {
    "update_job": "edit",
    "pause_job": "pause",
    "resume_job": "resume",
    "delete_job": "delete",
    "run_job": "run",
    "retry_run": "redrive",
    "backfill_job": "backfill",
    "redrive": "redrive",
    "cancel_run": "cancel",
    "skip_slot": "skip",
    "unskip_slot": "unskip",
    "undelete_job": "undelete",
}


class Wish:
    """What an edit is to make of a spec: these fields of it are replaced. Callable, as the store wants it."""

    def __init__(self, **parts: Any) -> None:
        self.parts = parts

    def __call__(self, spec: Any) -> Any:
        return type(spec)(**{name: getattr(spec, name) for name in spec.__struct_fields__} | self.parts)

    def written(self) -> dict[str, Any]:
        return {name: to_builtins(value) for name, value in self.parts.items()}


class Diary:
    """`point`: told at each moment that something was committed, so that a process can be struck right there."""

    def __init__(self, loop: VirtualLoop, time: DatabaseTime, history: History) -> None:
        self._loop = loop
        self._time = time
        self._history = history
        self._beats: dict[str, float] = {}
        self._of_files: dict[str, tuple[int, dict[str, Any]]] = {}  # jobs of a file by key: id and spec
        self._claims: dict[tuple[str, int], tuple[int, int]] = {}  # when it was due, and its tries
        self._frozen = False
        self.driver: Driver | None = None
        self.point: Callable[[str, str], None] = lambda what, process: None

    def note(self, process: str, method: str, answer: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        match method:
            case "claim_each":
                self._claimed(process, answer, arguments[0])
            case "adopt":
                self._adopted(process, answer, arguments[0])
            case "begin_work":
                self._begun(arguments[0], [(each.run_id, each.token) for each in arguments[1]], answer)
                self.point("begun", process)
            case "beat":
                if answer.alive:
                    self._beats[arguments[0]] = self._loop.now
            case "register":
                self._beats[arguments[0].id] = self._loop.now
            case "begin":
                self._begun(arguments[0], arguments[1], answer)
                self.point("begun", process)
            case "finish":
                self._recorded(arguments[0], arguments[1], {*answer.refused, *answer.repeated})
                self.point("recorded", process)
            case "complete":
                self._completed(arguments[0], arguments[1], arguments[2], answer)
                self.point("recorded", process)
            case "carry_out_notes":
                for park in [] if answer is None else answer.parked:
                    self._wrote("pause", park.job_id, by=park.run_id, view={"state": "paused"})
                    self.point("parked", process)
            case "wait_for_destinations":
                self._waited(arguments[0], arguments[1])
            case "declare_lost":
                if answer:
                    silent = self._loop.now - self._beats.get(arguments[0], 0.0)
                    self._history.append(Lost(at=self._now, node=arguments[0], silent=round(silent * 1000)))
            case "freeze" | "unfreeze":
                self._froze(method == "freeze")
            case "create_jobs":
                self._created(arguments[0], answer)
            case "sync_jobs":
                self._synced(arguments[2], answer)
            case _ if method in _VERBS:
                self._changed(_VERBS[method], answer, arguments, named)

    @property
    def _now(self) -> int:
        return round(self._loop.now * 1000)

    def _claimed(self, process: str, claims: Sequence[Any], node: str) -> None:
        found = [(claim.now, run) for claim in claims for run in claim.runs]
        for db, run in found:
            self._claims[run.id, run.token] = run.due_at, run.tries
            self._history.append(Claimed(at=self._now, db=db, node=node, run=run.id, token=run.token))
        if found:
            self.point("claimed", process)

    def _waited(self, node: str, runs: Sequence[Any]) -> None:
        """Runs that were put back to wait for their destination, as their rows are after it."""
        for run in runs:
            row = self._row(run.run_id)
            if row is None or row["state"] != "pending" or not row["waiting"]:
                continue
            due, tries = self._claims.get((run.run_id, run.token), (row["due_at"], row["tries"]))
            self._history.append(
                Waited(
                    at=self._now,
                    db=self._time.now_ms(),
                    node=node,
                    run=run.run_id,
                    token=run.token,
                    host=row["requires"].partition("@")[2],
                    now=WaitingRow(token=row["token"], due=row["due_at"], tries=row["tries"]),
                    before=WaitingRow(token=run.token, due=due, tries=tries),
                )
            )

    def _row(self, run: str) -> Any:
        async def body(tx: Transaction) -> Any:
            rows = await tx.sql("SELECT state, waiting, requires, token, due_at, tries FROM runs WHERE id = ?1", run)
            return rows[0] if rows else None

        assert self.driver is not None
        return at_once(self.driver.read(body))

    def _adopted(self, process: str, adopted: Sequence[Any], node: str) -> None:
        for each in adopted:
            run, db = each.run, self._time.now_ms()
            self._history.append(Claimed(at=self._now, db=db, node=node, run=run.id, token=run.token))
        if adopted:
            self.point("claimed", process)

    def _begun(self, node: str, fences: Sequence[tuple[str, int]], allowed: set[str]) -> None:
        for run, token in fences:
            if run in allowed:
                db = self._time.now_ms()
                self._history.append(Begun(at=self._now, db=db, node=node, run=run, token=token))

    def _recorded(self, node: str, results: Any, not_taken: set[str]) -> None:
        for result in results:
            if result.run.id not in not_taken:
                self._history.append(
                    Recorded(
                        at=self._now,
                        node=node,
                        run=result.run.id,
                        token=result.run.token,
                        outcome="accepted" if isinstance(result.decision, Accepted) else result.outcome.kind,
                        db=self._time.now_ms(),
                    )
                )

    def _completed(self, run: str, of: int, outcome: Outcome, answer: Any) -> None:
        self._history.append(
            Completed(
                at=self._now,
                db=self._time.now_ms(),
                run=run,
                of=of,
                told="done" if outcome.ok else "failed" if outcome.retryable else "final",
                standing=answer.standing.value,
                wrote=answer.written is not None,
                mark=outcome.detail.get("result", 0),
            )
        )

    def _created(self, items: Sequence[NewJob], answers: Sequence[Any]) -> None:
        for item, answer in zip(items, answers, strict=True):
            if isinstance(answer, JobView):
                self._wrote("create", answer.id, wish=to_builtins(item.spec), view=to_builtins(answer))

    def _changed(self, verb: Any, answer: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        job = named.get("job_id") or arguments[1]
        wish, runs = None, []
        if verb == "edit":
            wish = arguments[2].written()
        elif verb in ("backfill", "redrive") and isinstance(answer, list):
            runs = list(answer)
        elif verb in ("run", "redrive"):
            runs = [answer.id]
        elif verb in ("skip", "unskip"):
            runs = [f"{job}-{arguments[2]}"]
        elif verb == "cancel":
            job, runs = int(arguments[1].partition("-")[0]), [arguments[1]]
        view = to_builtins(answer) if isinstance(answer, JobView) else None
        self._wrote(verb, job, wish=wish, runs=runs, if_match=named.get("if_match"), view=view)

    def _synced(self, specs: Sequence[JobSpec], report: Any) -> None:
        """A file says what each of its jobs is to be: made, changed or removed. Nobody else is told of their ids."""
        wished = {str(spec.key): to_builtins(spec) for spec in specs}
        for key in report.created:
            job, created_at = self._find(key)
            self._of_files[key] = job, wished[key]
            self._wrote("create", job, wish=wished[key])
            mark = wished[key]["params"]["mark"]
            self._history.append(
                Made(at=self._now, until=self._now, mark=mark, job=job, spec=wished[key], created_at=created_at)
            )
        for key in report.updated:
            job, before = self._of_files[key]
            self._of_files[key] = job, wished[key]
            self._wrote("edit", job, wish={k: v for k, v in wished[key].items() if v != before.get(k)})
        for key in report.removed:
            job, _ = self._of_files.pop(key)
            self._wrote("delete", job)
            self._history.append(Changed(at=self._now, until=self._now, job=job, verb="delete"))

    def _find(self, key: str) -> tuple[int, int]:
        async def body(tx: Transaction) -> tuple[int, int]:
            (row,) = await tx.sql("SELECT id, created_at FROM jobs WHERE key = ?1", key)
            return row["id"], row["created_at"]

        assert self.driver is not None
        found: tuple[int, int] = at_once(self.driver.read(body))
        return found

    def _froze(self, on: bool) -> None:
        """Or it was so already: somebody asked twice."""
        if on != self._frozen:
            self._frozen = on
            self._history.append(Froze(at=self._now, db=self._time.now_ms(), on=on, given_up=self._late()))

    def _wrote(self, verb: Any, job: int, **more: Any) -> None:
        late = self._late()
        self._history.append(Wrote(at=self._now, db=self._time.now_ms(), verb=verb, job=job, given_up=late, **more))

    def _late(self) -> int | None:
        """ms since the client hung up for which something is done."""
        client = ASKER.get()
        if isinstance(client, Client) and client.gone is not None:
            return round((self._loop.now - client.gone) * 1000)
        return None
