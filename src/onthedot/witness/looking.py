"""One look of the witness: is a node alive, does due work stand, has each slot one row? It only reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, cast

import msgspec

from onthedot.clock import SystemClock
from onthedot.errors import OnTheDotError, StoreError
from onthedot.model.duration import SECOND
from onthedot.model.instant import format_instant
from onthedot.model.proof import TenantProof
from onthedot.store import Store, open_driver
from onthedot.store.cluster.proofs import check_slots
from onthedot.store.driver import Driver, Row
from onthedot.store.migrate import check_version
from onthedot.store.sqlite.reader import SqliteReader

__all__ = ["FindingKind", "SlotsSeen", "WitnessFinding", "WitnessedStore", "open_witnessed"]

SILENT = 15 * SECOND
"""Three leases without a beat of any node: nobody is there."""

FindingKind = Literal["silent", "standing", "missing", "twice", "blind"]


class WitnessFinding(msgspec.Struct, frozen=True, kw_only=True):
    kind: FindingKind
    text: str
    number: int = 1  # slots that it tells of


class SlotsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What of the slots of an interval was looked at."""

    since: int
    until: int
    jobs: int
    expected: int
    decided: int
    unchecked_jobs: int


async def open_witnessed(url: str) -> WitnessedStore:
    """On SQLite the file stays its server's: it is only read."""
    if url.startswith("sqlite:///"):
        reader = SqliteReader(Path(url.removeprefix("sqlite:///")), SystemClock())
        return WitnessedStore(cast("Driver", reader))
    return WitnessedStore(await open_driver(url))


class WitnessedStore:
    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._store = Store(driver)
        self._looks_since: int | None = None

    async def close(self) -> None:
        await self._driver.close()

    async def now(self) -> int:
        return await self._store.now()

    async def alive(self, late_ms: int, *, patient: bool = False) -> list[WitnessFinding]:
        """Quick: whether anybody is there, and whether due work stands. `patient`: who has not looked for long does not
        call it silence; nodes that start together with the witness, or come back with the database, have not beaten
        yet."""
        now, nodes = await self._store.now(), await self._nodes()
        beats = [row["beat_at"] for row in nodes if row["lost_at"] is None]
        if self._looks_since is None:
            self._looks_since = now
        if not any(beat > now - SILENT for beat in beats):
            if patient and now < self._looks_since + SILENT:
                return []
            last = max((row["beat_at"] for row in nodes), default=None)
            said = "no node is registered" if last is None else f"the last beat of a node was at {format_instant(last)}"
            return [WitnessFinding(kind="silent", text=f"no node is alive: {said}")]
        backlog = await self._store.backlog()
        if backlog.oldest_ms is not None and backlog.oldest_ms > late_ms and backlog.due > backlog.waiting:
            waits = f"for {backlog.oldest_ms // SECOND} s"
            text = (
                f"1 due run is not started {waits}"
                if backlog.due == 1
                else f"{backlog.due:,} due runs are not started, the oldest {waits}"
            )
            return [WitnessFinding(kind="standing", text=text)]
        return []

    async def _nodes(self) -> Sequence[Row]:
        """A witness may start before the first migration, or be newer than the tables: then it sees nothing yet."""
        try:
            return await self._driver.read(lambda tx: tx.rows("list_nodes"))
        except OnTheDotError:
            raise
        except Exception as error:
            if await check_version(self._driver):
                raise StoreError("the store has pending migrations: run `onthedot migrate`, or start a node") from error
            raise

    async def slots(self, reach_ms: int) -> tuple[SlotsSeen, list[WitnessFinding]]:
        """Every slot of that long against the ledger, computed without the code that decides them."""
        if missing := await check_version(self._driver):
            names = ", ".join(migration.name for migration in missing)
            return SlotsSeen(since=0, until=0, jobs=0, expected=0, decided=0, unchecked_jobs=0), [
                WitnessFinding(kind="blind", text=f"the store has pending migrations ({names}) and can't be checked")
            ]
        since, until, tenants = await check_slots(self._driver, reach_ms)
        found = [finding for proof in tenants for finding in _offences(proof)]
        seen = SlotsSeen(
            since=since,
            until=until,
            jobs=sum(proof.jobs for proof in tenants),
            expected=sum(proof.expected for proof in tenants),
            decided=sum(proof.decided for proof in tenants),
            unchecked_jobs=sum(proof.unchecked_jobs for proof in tenants),
        )
        return seen, found


def _offences(proof: TenantProof) -> list[WitnessFinding]:
    """Those that are named, one by one; the others as a number."""
    found = []
    for problem, number in (("missing", proof.missing), ("twice", proof.twice)):
        named = [offence for offence in proof.offences if offence.problem == problem]
        what = "no entry" if problem == "missing" else "more than one entry"
        for offence in named:
            job = f"job {offence.job_id} ({offence.key})" if offence.key else f"job {offence.job_id}"
            text = f"{job}: slot {format_instant(offence.slot)} has {what}"
            found.append(WitnessFinding(kind=offence.problem, text=text))
        if named and number > len(named):
            others = number - len(named)
            found.append(
                WitnessFinding(kind=named[0].problem, text=f"{others:,} more slots have {what}", number=others)
            )
    return found
