"""From what was written down during a run to one history and one ledger: the receiver's file, the users' answers, the
nemesis's list, the database's diary and tables. No node is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from onthedot.store import open_driver
from onthedot.store.driver import Driver, Transaction
from proof.chaos.clock import TrueTime
from proof.chaos.diary import READ, Note, events_of, pids_of
from proof.chaos.nemesis import Harm
from proof.chaos.verdict import Timeouts
from proof.checker.events import Event, Fault, History, Made, Received
from proof.checker.ledger import Ledger
from proof.checker.story import SLACK
from proof.sim.final import read_ledger

NO_DATABASE = ("outage", "short_outage", "db_restart", "disk_full", "silence", "refuse", "delay")
STOPPING = 5000
ON_ITS_WAY = 500
"""ms that a request takes on the loopback interface only if its sender is overwhelmed."""
__all__ = ["Record", "read_received", "read_record"]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    history: History
    ledger: Ledger
    harms: list[Harm]
    timeouts: Timeouts


async def read_record(
    url: str, *, time: TrueTime, users: Sequence[Event], unsure: dict[int, Any], harms: Sequence[Harm], received: Path
) -> Record:
    """When everything has stopped."""
    driver = await open_driver(url + "?timeout=300" if url.startswith("postgresql") else url)
    try:
        ledger = await read_ledger(driver, at=time.now, now=time.db_now())
        notes = await _read_diary(driver)
        timeouts = await _read_timeouts(driver)
    finally:
        await driver.close()
    ids = pids_of(notes)
    history: History = [*users, *time.stepped]
    history += _unsure(ledger, unsure, users, time)
    for harm in [*harms, *_stopped_in_trouble(harms)]:
        nodes: Sequence[str | None] = [None] if harm.pid is None else ids.get(harm.pid, [])
        history += [Fault(at=harm.at, until=harm.until, what=harm.what, node=node) for node in nodes]
    freezes = [event for event in history if isinstance(event, Fault) and event.what == "freeze"]
    history += events_of(notes, time)
    history += read_received(received, time, freezes, timeouts)
    history.sort(key=lambda event: event.at)
    return Record(history=history, ledger=ledger, harms=list(harms), timeouts=timeouts)


def _stopped_in_trouble(harms: Sequence[Harm]) -> list[Harm]:
    """An orderly stop repeats nothing, unless the node could not reach the database to record what it had done: it
    waits a lease for it, then it goes."""
    trouble = [harm for harm in harms if harm.what in NO_DATABASE]
    found = []
    for harm in harms:
        if harm.what not in ("sigterm", "twin_stopped"):
            continue
        end = harm.until + STOPPING
        if any(t.pid in (None, harm.pid) and t.at <= end and t.until >= harm.at - STOPPING for t in trouble):
            found.append(msgspec.structs.replace(harm, what="stop", until=end))
    return found


async def _read_diary(driver: Driver) -> list[Note]:
    async def body(tx: Transaction) -> list[Note]:
        return [Note.of(row) for row in await tx.sql(READ)]

    return await driver.read(body)


async def _read_timeouts(driver: Driver) -> Timeouts:
    """The attempts that the ledger says had no answer in time: when they began and were given up (database's time)."""

    async def body(tx: Transaction) -> Timeouts:
        found: Timeouts = {}
        for table in ("history", "runs"):
            for row in await tx.sql(f"SELECT id, attempts FROM {table} WHERE attempts LIKE '%timeout%'"):
                for attempt in msgspec.json.decode(row["attempts"]):
                    if attempt["outcome"] == "timeout":
                        found[row["id"], attempt["attempt"]] = attempt.get("started_at") or 0, attempt["finished_at"]
        return found

    return await driver.read(body)


def read_received(path: Path, time: TrueTime, freezes: Sequence[Fault], timeouts: Timeouts) -> list[Received]:
    """`took` is when the sender could hear the answer: not before it was thawed; and if it had given up by then, it
    hung up without one. That it gave up only the ledger knows; whether it had reason to is checked against the
    receiver's time: the answer came later than that, or the request itself was long on its way (a node with hundreds to
    send at once)."""
    found = []
    for line in path.read_bytes().splitlines():
        mono, real, run, job, token, node, answer, took = msgspec.json.decode(line)
        at = time.of_mono(mono)
        for freeze in freezes:
            if freeze.node == node and freeze.at <= at + took and at <= freeze.until:
                took = max(took, freeze.until - at)
        db = time.db_of(real, at)
        if (attempt := timeouts.get((run, token))) is not None:
            started, gave_up = attempt
            if gave_up <= db + took + SLACK or db - started >= ON_ITS_WAY:
                answer, took = "cut", max(0, min(took, gave_up - db))  # the sender hung up
        found.append(
            Received(
                at=at,
                db=db,
                run=run,
                job=job,
                token=token,
                answer=answer,
                took=took,
                node=node or None,
            )
        )
    return found


def _unsure(ledger: Ledger, unsure: dict[int, Any], users: Sequence[Event], time: TrueTime) -> list[Made]:
    """What was refused after an answer was lost may have been made all the same: the first request was carried out, and
    the second came when its instant had passed."""
    known = {event.job for event in users if isinstance(event, Made)}
    marked = {job.spec.get("params", {}).get("mark"): job for job in ledger.jobs if job.id not in known}
    return [
        Made(at=0, until=time.now, mark=mark, job=marked[mark].id, spec=spec, created_at=time.db_now())
        for mark, spec in unsure.items()
        if mark in marked
    ]
