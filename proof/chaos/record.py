"""From what was written down during a run to one history and one ledger: the receiver's file, the users' answers, the
nemesis's list, the database's diary and tables. No node is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from onthedot.store import open_driver
from onthedot.store.driver import Driver, Transaction
from proof.chaos.clock import TrueTime
from proof.chaos.diary import READ, Note, events_of, pids_of, timed
from proof.chaos.harm import Harm
from proof.chaos.receiver import RETRY_AFTER
from proof.chaos.specs import TIMEOUTS
from proof.chaos.verdict import Timeouts
from proof.chaos.versions import Request
from proof.checker.events import Acted, CalledBack, Claimed, Event, Fault, History, Received, Wrote
from proof.checker.ledger import Ledger
from proof.checker.story import SLACK
from proof.sim.final import read_ledger

__all__ = ["NO_DATABASE", "Record", "in_trouble", "read_called_back", "read_received", "read_record", "timeouts_of"]

NO_DATABASE = ("outage", "short_outage", "db_restart", "disk_full", "silence", "refuse")
COMING_BACK = 2500
"""ms that a node may take to knock again after the database came back: the longest backoff, and the call."""
NOTED, CALLED_BACK = 4, 6
"""How many parts a line of the receiver's file has that tells of no call: what became of one, what was told later."""
TIMEOUT = min(TIMEOUTS)
"""ms that a job of the workload gives its receiver, at the least. Whether an attempt had what its own job gave is
judged by `orders`."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    history: History
    ledger: Ledger
    harms: list[Harm]
    timeouts: Timeouts
    requests: list[Request] = []  # of users, that may have changed something


async def read_record(
    url: str,
    *,
    time: TrueTime,
    users: Sequence[Event],
    harms: Sequence[Harm],
    received: Path,
    requests: Sequence[Request] = (),
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
    for harm in [*harms, *_stopped_in_trouble(harms)]:
        nodes: Sequence[str | None] = [None] if harm.pid is None else ids.get(harm.pid, [])
        history += [Fault(at=harm.at, until=harm.until, what=harm.what, node=node) for node in nodes]
    freezes = [event for event in history if isinstance(event, Fault) and event.what == "freeze"]
    diary = list(events_of(timed(notes, time), time))
    history += [*diary, *_cancels(users)]
    owners = {(event.run, event.token): event.node for event in diary if isinstance(event, Claimed)}
    history += read_received(received, time, freezes, timeouts, owners)
    history += read_called_back(received, time)
    history.sort(key=lambda event: event.at)
    return Record(
        history=history,
        ledger=ledger,
        harms=list(harms),
        timeouts=timeouts,
        requests=list(requests),
    )


def in_trouble(harms: Sequence[Harm], pid: int | None, begin: int, end: int) -> bool:
    """Whether the process could not reach the database at some moment between these true times."""
    return any(
        harm.what in NO_DATABASE
        and (harm.pid is None or harm.pid == pid)
        and harm.at <= end
        and harm.until + COMING_BACK >= begin
        for harm in harms
    )


def _stopped_in_trouble(harms: Sequence[Harm]) -> list[Harm]:
    """An orderly stop repeats nothing, unless the node could not reach the database to record what it had done: it
    waits a lease for it, then it goes."""
    return [
        msgspec.structs.replace(harm, what="stop")
        for harm in harms
        if harm.what in ("sigterm", "twin_stopped") and in_trouble(harms, harm.pid, harm.at, harm.until)
    ]


async def _read_diary(driver: Driver) -> list[Note]:
    async def body(tx: Transaction) -> list[Note]:
        return [Note.of(row) for row in await tx.sql(READ)]

    return await driver.read(body)


async def _read_timeouts(driver: Driver) -> Timeouts:
    """The attempts that the ledger says had no answer in time: when they began and were given up (database's time).
    This is a node's word: one that did not even last as long as the time-out is not believed."""

    async def body(tx: Transaction) -> Timeouts:
        found: Timeouts = {}
        for table in ("history", "runs"):
            for row in await tx.sql(f"SELECT id, attempts FROM {table} WHERE attempts LIKE '%timeout%'"):
                found.update(timeouts_of(row["id"], msgspec.json.decode(row["attempts"])))
        return found

    return await driver.read(body)


def timeouts_of(run: str, attempts: Sequence[dict[str, Any]]) -> Timeouts:
    return {
        (run, attempt["attempt"]): (attempt["started_at"], attempt["finished_at"])
        for attempt in attempts
        if attempt["outcome"] == "timeout"
        and attempt.get("started_at") is not None
        and attempt["finished_at"] - attempt["started_at"] >= TIMEOUT - SLACK
    }


def read_received(
    path: Path,
    time: TrueTime,
    freezes: Sequence[Fault],
    timeouts: Timeouts,
    owners: Mapping[tuple[str, int], str] | None = None,
) -> list[Received]:
    """`took` is when the sender could hear the answer: when it really left the receiver, and not before the sender was
    thawed. A sender that had given up by then got none. That takes two witnesses: the ledger says that this very
    attempt timed out, and the receiver that the caller hung up before the answer left, or that it left no earlier.
    owners: who claimed that attempt, for functions and commands, which do not know their node."""
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    notes = {(line[2], line[3]): (line[1], time.of_mono(line[0])) for line in lines if len(line) == NOTED}
    found = []
    for line in lines:
        if len(line) in (NOTED, CALLED_BACK):
            continue
        mono, real, run, job, token, node, answer, took, of, stamp = line
        at = time.of_mono(mono)
        node = node or (owners or {}).get((run, token), "")
        asked = RETRY_AFTER if answer == "later" else None
        answer = "error" if answer == "later" else answer
        what, noted = notes.get((run, token), ("", 0))
        if what == "answered":
            took = noted - at
        for freeze in freezes:
            if freeze.node == node and freeze.at <= at + took and at <= freeze.until:
                took = max(took, freeze.until - at)
        db = time.db_of(real, at)
        if (attempt := timeouts.get((run, token))) is not None:
            gave_up = attempt[1]
            if what == "hung_up" or gave_up <= db + took + SLACK:
                answer, took, asked = "cut", max(0, min(took, gave_up - db)), None
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
                retry_after=asked,
                left=noted - at if what == "hung_up" else None,
                of=of or None,
                stamp=None if stamp is None else stamp * 1000,
            )
        )
    return found


def read_called_back(path: Path, time: TrueTime) -> list[CalledBack]:
    """What receivers told later. Who got no answer may have been heard all the same."""
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    found = []
    for line in lines:
        if len(line) == CALLED_BACK:
            mono, _, run, of, told, status = line
            at = time.of_mono(mono)
            found.append(CalledBack(at=at, until=at, run=run, of=of, told=told, answer=status or None))
    return found


def _cancels(users: Sequence[Event]) -> list[Wrote]:
    """Of cancels the diary has nothing of its own: they were carried out when their users were told so, at the latest,
    and not before they asked."""
    return [
        Wrote(at=event.at, db=0, verb="cancel", job=event.job, runs=event.runs, number=0)
        for event in users
        if isinstance(event, Acted) and event.verb == "cancel"
    ]
