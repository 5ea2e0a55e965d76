"""Check-ins: reports of jobs that run elsewhere, and the runs that wait for them.

Such a run is open as one that waits for a callback (see `callbacks`), until the grace time after its slot is over. A
report ends every run of its job that waits, also one that a node holds and has not recorded as open yet. What the job
last reported is in `pings`, one row per job, which is locked before its runs: two reports at once come one after the
other. Who opens a run, or finds that its time is up, reads it there: a report that came a moment before its run was
open counts.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import msgspec

from onthedot.model.decoding import encode_json
from onthedot.model.instant import format_instant
from onthedot.model.job import JobSpec
from onthedot.model.ping import KEPT_PINGS, LONGEST_BODY, Ping, PingSignal
from onthedot.model.run import Outcome
from onthedot.plan import Decision, PingTimes, on_outcome, on_report, on_silence
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.rows import decode_spec
from onthedot.store.runs.finish_batch import FinishBatch
from onthedot.store.runs.finish_rows import AttemptLog, EndOfTry, Item, storable
from onthedot.store.runs.open_rows import ended_item, run_of, work_of
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["NO_SILENCE", "CheckIn", "CheckIns", "PingedJob", "Silence", "end_silence", "waits_for_ping"]

MISSED = "missed:"
MESSAGE = 200
"""Characters of a report that are shown with the job."""

_recent = msgspec.json.Decoder(list[Ping])
_Row = dict[str, Any]


class CheckIn(msgspec.Struct, frozen=True, kw_only=True):
    """What a job reports."""

    signal: PingSignal
    body: str = ""
    exit_status: int | None = None
    rid: str | None = None

    def outcome(self) -> Outcome:
        detail: dict[str, Any] = {} if self.exit_status is None else {"exit_code": self.exit_status}
        if self.signal == "success":
            return Outcome(kind="ok", detail=detail)
        said = storable(self.body.strip()) or ""
        if not said:
            said = "the job reported a failure" if self.exit_status is None else f"exit status {self.exit_status}"
        return Outcome(kind="error", error=said[:2000], detail=detail)


class PingedJob(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a report. `ended`: the runs that it ended."""

    tenant: int
    job_id: int
    key: str | None
    ping: Ping
    ended: list[Item]
    laned: bool = False


class LongerWait(Shape, frozen=True):
    id: str
    token: int
    until: int


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of runs whose report did not come in time: those that end, and those that go on waiting."""

    ended: list[Item]
    waiting: list[LongerWait]
    missed: list[int]  # jobs


NO_SILENCE = Silence(ended=[], waiting=[], missed=[])


class CheckIns(Topic):
    async def check_in(self, job_id: int, told: CheckIn) -> PingedJob | None:
        """A job reports. None: there is no such job, or it does not report."""

        async def body(tx: Transaction) -> PingedJob | None:
            job = await tx.row("find_pinged_job", job_id)
            if job is None or (spec := decode_spec(job["spec"])).target.report_within is None:
                return None
            await tx.execute("add_pings", job_id, job["tenant"])
            before = await tx.row("lock_pings", job_id)
            assert before is not None
            rows = [dict(row) for row in await tx.rows("lock_reporting_runs", job_id)]
            report = _Report(told, spec, before, await tx.now(), self.driver.dialect)
            return await report.write(tx, job, [{**row, "now": report.now} for row in rows])

        return await self.driver.transact_slow(body)

    async def last_pings(self, job_ids: Sequence[int]) -> dict[int, Ping]:
        if not job_ids:
            return {}
        rows = await self.driver.read(lambda tx: tx.rows("pings_of", list(job_ids)))
        return {row["job_id"]: pings[0] for row in rows if (pings := _recent.decode(row["recent"]))}

    async def recent_pings(self, job_id: int) -> list[Ping]:
        """The newest first."""
        rows = await self.driver.read(lambda tx: tx.rows("pings_of", [job_id]))
        return _recent.decode(rows[0]["recent"]) if rows else []


class _Report:
    """One report, in its transaction."""

    def __init__(self, told: CheckIn, spec: JobSpec, before: Row, now: int, dialect: str) -> None:
        self.now = now
        self._told = told
        self._spec = spec
        self._before = before
        self._dialect = dialect

    async def write(self, tx: Transaction, job: Row, rows: list[_Row]) -> PingedJob:
        due = [row for row in rows if row["due_at"] <= self.now]
        told, ended, late_for = self._told, list[Item](), None
        if told.signal in ("success", "fail"):
            ended = await self._end(tx, due)
            if not due:
                late_for = await self._late_for(tx, job)
        else:
            due = [row for row in due if row["open"] is not None]
            await self._go_on(tx, due)
        ping = Ping(
            at=format_instant(self.now),
            signal=told.signal,
            run_id=due[-1]["id"] if due else None,
            late_for=late_for,
            exit_status=told.exit_status,
            message=(storable(told.body.strip()) or "")[:MESSAGE] or None,
            rid=told.rid,
        )
        recent = [ping, *_recent.decode(self._before["recent"])][:KEPT_PINGS]
        times = self._times()
        await tx.execute("set_pings", job["id"], times.ok_at, times.started_at, encode_json(recent).decode())
        laned = any(row["lane"] is not None for row in due)
        return PingedJob(tenant=job["tenant"], job_id=job["id"], key=job["key"], ping=ping, ended=ended, laned=laned)

    def _times(self) -> PingTimes:
        ok_at, started_at = self._before["ok_at"], self._before["started_at"]
        match self._told.signal:
            case "success":
                return PingTimes(ok_at=self.now)
            case "fail":
                return PingTimes(ok_at=ok_at)
            case "start":
                return PingTimes(ok_at=ok_at, started_at=self.now)
            case _:
                return PingTimes(ok_at=ok_at, started_at=started_at)

    async def _end(self, tx: Transaction, rows: list[_Row]) -> list[Item]:
        if not rows:
            return []
        outcome, items = self._told.outcome(), list[Item]()
        for row in rows:
            await tx.execute("hold_for_callback", row["id"])
            decision = on_report(outcome, row["tries"], row["losses"])
            items.append(_item(row, outcome, decision, self._before["started_at"], log=self._log()))
        batch = FinishBatch(items, dialect=self._dialect)
        await batch.attempt(tx)
        return batch.written()

    async def _go_on(self, tx: Transaction, rows: list[_Row]) -> None:
        if self._told.signal == "start":
            progress = encode_json({"message": "started", "at": format_instant(self.now)}).decode()
            until = self.now + (self._spec.target.report_within or 0)
            for row in rows:
                await tx.execute("start_reported", row["id"], self.now, until, progress)
        if rows and (log := self._log()):
            await tx.execute("add_logs", Rows([AttemptLog(row["id"], row["tenant"], log, self.now) for row in rows]))

    def _log(self) -> str | None:
        text = storable(self._told.body)
        if not text:
            return None
        text = text[-LONGEST_BODY:]
        return text if text.endswith("\n") else text + "\n"

    async def _late_for(self, tx: Transaction, job: Row) -> str | None:
        """The run that was missed, if that was the last one. It is over and does not change; its log tells."""
        last = await tx.row("last_ended_run", job["id"])
        if last is None or not (last["error"] or "").startswith(MISSED):
            return None
        late = (self.now - last["due_at"]) / 1000
        text = f"{format_instant(self.now)} a check-in ({self._told.signal}) came {late:.0f} s after the slot\n"
        log = text + (self._log() or "")
        await tx.execute("add_logs", Rows([AttemptLog(last["id"], job["tenant"], log, self.now)]))
        return str(last["id"])


def waits_for_ping(row: Row) -> bool:
    """Whether an open run waits for a report; `row` has the spec of its job, if that is there."""
    return row["spec"] is not None and decode_spec(row["spec"]).target.report_within is not None


async def end_silence(tx: Transaction, rows: Sequence[Row]) -> Silence:
    """What becomes of open runs whose time to be reported is up."""
    found = await tx.rows("pings_of", sorted({row["job_id"] for row in rows}))
    known = {each["job_id"]: PingTimes(ok_at=each["ok_at"], started_at=each["started_at"]) for each in found}
    silence = Silence(ended=[], waiting=[], missed=[])
    for row in map(dict, rows):
        run = run_of(row, work_of(row))
        said = known.get(row["job_id"], PingTimes())
        came = on_silence(run.spec, row["slot"], row["due_at"], said, row["now"])
        if isinstance(came, int):
            silence.waiting.append(LongerWait(row["id"], row["token"], came))
        elif came.ok:
            decision = on_report(came, row["tries"], row["losses"])
            silence.ended.append(_item(row, came, decision, None))
        else:
            silence.missed.append(row["job_id"])
            chance = random.Random(f"{run.id} {run.token}")
            silence.ended.append(_item(row, came, on_outcome(run, came, row["now"], chance), said.started_at))
    return silence


def _item(row: _Row, outcome: Outcome, decision: Decision, started_at: int | None, log: str | None = None) -> Item:
    """How long it took is known only of a run whose start was reported."""
    work = work_of(row)
    end = EndOfTry(try_number=row["tries"] + 1, completion="callback", sender="" if work is None else work.place)
    item = ended_item(row, run_of(row, work), work, outcome, decision, end)
    took = None if started_at is None else max(0, row["now"] - started_at)
    return msgspec.structs.replace(item, log=log, started_at=started_at or item.started_at, duration_ms=took)
