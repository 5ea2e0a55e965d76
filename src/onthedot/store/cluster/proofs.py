"""Has every slot of the last day been decided, and none twice? Computed by `audit`, which knows nothing of the code
that decides, from the rows as they are. In portions, by the node that holds the duty; the answer is kept to be read.

No false alarm is worth more than a slot more that was looked at. A job is checked from its last change on: an edit, a
pause or a resume may have moved slots before it. Only changes of its name, owner or tags are known to move none. Jobs
that are not active are left out. What looks wrong is looked at again at the end of the round, for rows move while we
read.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.audit import CannotTell, JobVerdict, LedgerEntry, ScheduleFacts, judge, slots_between
from onthedot.model.decoding import dec_hook
from onthedot.model.duration import DAY, MINUTE
from onthedot.model.instant import NEVER
from onthedot.model.proof import Offence, Problem, ProofRound, TenantProof
from onthedot.model.schedule import Schedule
from onthedot.store.cluster.timed_since import timed_since
from onthedot.store.driver import Driver, Row, Transaction
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["CheckedJob", "DutyFinding", "Proofs", "check_slots"]

ROUND_EVERY = 5 * MINUTE
ROUND_LONGEST = 10 * MINUTE
"""Then a round ends where it is, and the next one begins there."""
PORTION = 500
"""Jobs that one call looks at."""
MOST_SLOTS = 5000
"""The newest so many of a job's slots are checked, and about so many are in one question to the database."""
AFTER_CHANGE = 5000
"""ms after a change of a job in which slots of before may still be on their way."""
MOST_SUSPECTS = 1000
MOST_NAMED = 100
"""Offences of each problem that are named, for each tenant; all are counted."""
_NAME, _PLACE = "proof", "proof.after"


class CheckedJob(Shape, frozen=True):
    """Which rows to bring: of slots at or after `since` and before `until`."""

    job_id: int
    since: int
    until: int


class DutyFinding(Shape, frozen=True):
    """What was found about a tenant, or (0) about all."""

    name: str
    tenant: int
    found: str
    at: int


class _Timed(msgspec.Struct, frozen=True):
    """What of a spec this needs: the rest is not even decoded."""

    schedule: Schedule
    target: msgspec.Raw
    key: str | None = None


class _Expected(msgspec.Struct, frozen=True):
    row: CheckedJob
    tenant: int
    key: str | None
    slots: list[int]


class _Round:
    """What one pass over the jobs has found so far."""

    def __init__(self, now: int, after: int, kept: int) -> None:
        self.started_at = self.until = now
        self.since = now - min(DAY, kept)
        self.after = self.begun_after = after
        self.wrapped = False
        self.jobs = 0
        self.tenants: dict[int, TenantProof] = {}
        self.suspects: list[int] = []

    def of(self, tenant: int) -> TenantProof:
        return self.tenants.setdefault(tenant, TenantProof())


_spec = msgspec.json.Decoder(_Timed, dec_hook=dec_hook)
_proof = msgspec.json.Decoder(TenantProof)
_round = msgspec.json.Decoder(ProofRound)


class Proofs(Topic):
    _under_way: _Round | None = None

    async def prove(self, kept_ms: int = DAY) -> bool:
        """A portion of the round that is under way, or of the next one if it is time. kept_ms: how old rows get.
        Whether a round has ended with it."""
        round_ = self._under_way
        if round_ is None:
            round_ = await self.driver.read(lambda tx: _next_round(tx, kept_ms))
            if round_ is None:
                return False
            self._under_way = round_
        at_work = round_
        now, ended = await self.driver.read(lambda tx: _portion(tx, at_work))
        if not ended and now - round_.started_at < ROUND_LONGEST:
            return False
        await self.driver.read(lambda tx: _confirm(tx, at_work))
        await self.driver.transact_slow(lambda tx: _keep(tx, at_work, complete=ended))
        self._under_way = None
        return True

    async def proof(self, tenant: int) -> tuple[ProofRound | None, TenantProof]:
        """The last round, and what it found about one tenant."""

        async def body(tx: Transaction) -> tuple[ProofRound | None, TenantProof]:
            rounds, own = await tx.row("finding", _NAME, 0), await tx.row("finding", _NAME, tenant)
            return (
                None if rounds is None else _round.decode(rounds["found"]),
                TenantProof() if own is None else _proof.decode(own["found"]),
            )

        return await self.driver.read(body)


async def check_slots(driver: Driver, reach_ms: int) -> tuple[int, int, list[TenantProof]]:
    """All jobs, by somebody who only reads and keeps nothing: from when, until when, and the proof of each tenant."""
    now = await driver.read(lambda tx: tx.now())
    round_, ended = _Round(now, 0, reach_ms), False
    while not ended:
        _, ended = await driver.read(lambda tx: _portion(tx, round_))
    await driver.read(lambda tx: _confirm(tx, round_))
    return round_.since, round_.until, list(round_.tenants.values())


async def _next_round(tx: Transaction, kept: int) -> _Round | None:
    last, place, now = await tx.row("finding", _NAME, 0), await tx.row("duty_mark", _PLACE), await tx.now()
    if last is not None and last["at"] <= now < last["at"] + ROUND_EVERY:
        return None
    if await tx.row("current_freeze") is not None:  # what passes now is decided when that is over
        return None
    return _Round(now, 0 if place is None else place["at"], kept)


async def _portion(tx: Transaction, round_: _Round) -> tuple[int, bool]:
    """The time, and whether all jobs have been looked at: those after where the round began, then those before."""
    there = await tx.row("job_after", round_.after, PORTION)
    until = NEVER if there is None else there["id"]
    if round_.wrapped:
        until = min(until, round_.begun_after)
    jobs = await tx.rows("proof_jobs", round_.after, until, round_.since)
    for tenant, key, job, verdict in await _verdicts(tx, round_, jobs):
        if verdict.missing or verdict.twice:
            if len(round_.suspects) < MOST_SUSPECTS:
                round_.suspects.append(job)
                continue
            _name(round_.of(tenant), job, key, verdict)
        _add(round_.of(tenant), verdict)
    round_.jobs += len(jobs)
    ended = (there is None and not round_.begun_after) or (round_.wrapped and until >= round_.begun_after)
    if there is None and not round_.wrapped:
        round_.after, round_.wrapped = 0, True
    else:
        round_.after = until
    return await tx.now(), ended


async def _confirm(tx: Transaction, round_: _Round) -> None:
    """What looked wrong and still does."""
    for start in range(0, len(round_.suspects), PORTION):
        jobs = await tx.rows("proof_suspects", round_.suspects[start : start + PORTION])
        for tenant, key, job, verdict in await _verdicts(tx, round_, jobs):
            _add(round_.of(tenant), verdict)
            _name(round_.of(tenant), job, key, verdict)


async def _keep(tx: Transaction, round_: _Round, *, complete: bool) -> None:
    now, last = await tx.now(), await tx.row("finding", _NAME, 0)
    before = None if last is None else _round.decode(last["found"])
    found = ProofRound(
        since=round_.since,
        until=round_.until,
        finished_at=now,
        jobs=round_.jobs,
        complete=complete,
        unseen_since=before.until if before is not None and before.until < round_.since else None,
    )
    rows = [DutyFinding(_NAME, tenant, _text(proof), now) for tenant, proof in round_.tenants.items()]
    await tx.execute("drop_findings", _NAME)
    await tx.execute("add_findings", Rows([DutyFinding(_NAME, 0, _text(found), now), *rows]))
    await tx.execute("set_duty_mark", _PLACE, 0 if complete else round_.after)


async def _verdicts(
    tx: Transaction, round_: _Round, jobs: Sequence[Row]
) -> list[tuple[int, str | None, int, JobVerdict]]:
    """Of each job that has anything to check: tenant, key, id, and how it stands."""
    found = []
    portion, slots = list[_Expected](), 0
    since = await timed_since(tx, [row for row in jobs if row["updated_at"] > max(row["created_at"], round_.since)])
    for place, row in enumerate(jobs):
        expected = _expected(round_, row, since.get(row["id"], row["updated_at"]))
        if expected is not None:
            portion.append(expected)
            slots += len(expected.slots)
        if slots >= MOST_SLOTS or place == len(jobs) - 1:
            rows = await _rows_of(tx, portion)
            for each in portion:
                verdict = judge(each.slots, rows.get(each.row.job_id, ()))
                found.append((each.tenant, each.key, each.row.job_id, verdict))
            portion, slots = [], 0
        await tx.breathe()
    return found


def _expected(round_: _Round, row: Row, since: int) -> _Expected | None:
    """The slots of a job that must have been decided; None: none, or nobody can say. `since`: of its present times."""
    proof = round_.of(row["tenant"])
    try:
        facts = _facts(row)
        slots = slots_between(facts, max(round_.since, row["created_at"]), round_.until)
    except (CannotTell, msgspec.DecodeError):
        proof.unchecked_jobs += 1
        return None
    changed = since + (AFTER_CHANGE if since > row["created_at"] else 0)
    checked = [slot for slot in slots if slot >= changed][-MOST_SLOTS:]
    proof.left_out += len(slots) - len(checked)
    proof.jobs += 1
    if not checked:
        return None
    return _Expected(CheckedJob(row["id"], checked[0], round_.until), row["tenant"], row["key"], checked)


def _facts(row: Row) -> ScheduleFacts:
    timed = _spec.decode(row["spec"])
    schedule = timed.schedule
    if schedule.rrule is not None or schedule.exclude is not None:
        raise CannotTell("rrule and exclude")
    return ScheduleFacts(
        cron=schedule.cron,
        every=schedule.every,
        at=schedule.at,
        delay=schedule.in_,
        tz=schedule.tz,
        start=schedule.start,
        end=schedule.end,
        anchor=row["anchor_at"],
        seed=timed.key or bytes(timed.target).decode(),
    )


async def _rows_of(tx: Transaction, portion: Sequence[_Expected]) -> dict[int, list[LedgerEntry]]:
    """Runs that live before the ledger: one that ends in between is then found twice, under one id, and not missed."""
    found: dict[int, list[LedgerEntry]] = {}
    if portion:
        wanted = Rows([each.row for each in portion])
        for row in await tx.rows("proof_runs", wanted):
            entry = LedgerEntry(row["id"], row["slot"], None, bool(row["cursor"]))
            found.setdefault(row["job_id"], []).append(entry)
        for row in await tx.rows("proof_history", wanted):
            entry = LedgerEntry(row["id"], row["slot"], row["until_slot"])
            found.setdefault(row["job_id"], []).append(entry)
    return found


def _add(proof: TenantProof, verdict: JobVerdict) -> None:
    proof.expected += verdict.expected
    proof.decided += verdict.decided
    proof.waiting += verdict.waiting
    proof.missing += len(verdict.missing)
    proof.twice += len(verdict.twice)


def _name(proof: TenantProof, job_id: int, key: str | None, verdict: JobVerdict) -> None:
    """The first of each problem: many that are missing must not hide one that is there twice."""
    found: dict[Problem, list[int]] = {"missing": verdict.missing, "twice": verdict.twice}
    for problem, slots in found.items():
        room = MOST_NAMED - sum(offence.problem == problem for offence in proof.offences)
        proof.offences += [Offence(job_id=job_id, key=key, slot=slot, problem=problem) for slot in slots[:room]]


def _text(found: ProofRound | TenantProof) -> str:
    return msgspec.json.encode(found).decode()
