"""What ended, counted per tenant and minute, hour and day: by whichever node holds the duty.

A minute is counted by the time at which runs ended, whole and at once: its rows are replaced and the mark is moved in
one transaction that first sees whether the mark still stands where it was read. So a node that takes over, or two that
believe to hold the duty, neither leave a minute out nor count one twice.

A result can be written after the minute in which the run ended: batches wait for a database that is away. So each
minute is counted twice, `CLOSED_AFTER` its end, to be shown, and again `SETTLED_AFTER` it, for good; hours and days are
added up from settled minutes. What is written later than that is in the ledger and not in these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from onthedot.model.duration import DAY, HOUR, MINUTE
from onthedot.model.histogram import BUCKETS, added
from onthedot.model.series import STEPS, Step
from onthedot.store.driver import Row, Transaction
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["CLOSED_AFTER", "KEPT", "SETTLED_AFTER", "CountedSeries", "RollupRow", "Rollups"]

CLOSED_AFTER = 5_000
SETTLED_AFTER = 10 * MINUTE
AT_ONCE = 10
"""Portions that one call counts when it is behind: up to an hour each."""
KEPT: dict[Step, int] = {"minute": 2 * DAY, "hour": 90 * DAY, "day": 730 * DAY}

_CLOSED, _SETTLED = "rollup.closed", "rollup.settled"
_histogram = msgspec.json.Decoder(list[int])


class RollupRow(Shape, frozen=True):
    """Numbers of one tenant in one step."""

    tenant: int
    step: Step
    at: int
    firings: int
    done: int
    failed: int
    cancelled: int
    skipped: int
    timed: int
    duration_ms: int
    longest_ms: int | None
    lateness: str

    def histogram(self) -> list[int]:
        return _histogram.decode(self.lateness)


class CountedSeries(msgspec.Struct, frozen=True):
    """Rows of the steps in which anything ended, and up to when it is known."""

    rows: list[RollupRow]
    counted_until: int | None


class _Count(msgspec.Struct, frozen=True, kw_only=True):
    """Where the mark stood and where it goes; the rows of the minutes between, unless the mark only jumps."""

    seen: int | None
    mark: int
    rows: list[RollupRow] | None = None


class Rollups(Topic):
    async def roll_up(self) -> int:
        """Count the minutes that are over and not counted yet, and again those that are settled. In how many portions:
        0, there is nothing to do."""
        counted = 0
        for mark, wait in ((_CLOSED, CLOSED_AFTER), (_SETTLED, SETTLED_AFTER)):
            for _ in range(AT_ONCE):
                if not await self._count_next(mark, wait):
                    break
                counted += 1
        return counted

    async def series(self, tenant: int, step: Step, since: int, until: int) -> CountedSeries:
        """Steps from `since` to before `until`, both whole. Those that are not over yet are added up from smaller ones:
        hours are written when their last minute has settled."""

        async def body(tx: Transaction) -> CountedSeries:
            closed, settled = await tx.row("duty_mark", _CLOSED), await tx.row("duty_mark", _SETTLED)
            written = settled["at"] if settled is not None else 0
            parts: list[RollupRow] = []
            low = since
            for size, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
                if size > STEPS[step]:
                    continue
                high = until if name == "minute" else min(until, written - written % size)
                if high > low:
                    parts += [_read(row) for row in await tx.rows("rollups_of_tenant", tenant, name, low, high)]
                    low = high
            return CountedSeries(_sums(parts, step), None if closed is None else closed["at"])

        return await self.driver.read(body)

    async def _count_next(self, mark: str, wait: int) -> bool:
        """The next minutes of that mark, up to a full hour, if it is time. The rows are read beside those who write,
        for there may be a million of them, and written only if nobody else has come as far meanwhile."""

        async def count(tx: Transaction) -> _Count | None:
            now, there = await tx.now(), await tx.row("duty_mark", mark)
            if there is None:
                return _Count(seen=None, mark=await _begin(tx, now))
            if there["at"] > now:  # the clock was set back: these minutes come again
                return _Count(seen=there["at"], mark=now - now % MINUTE)
            at, over = there["at"], (now - wait) - (now - wait) % MINUTE
            until = min(over, at - at % HOUR + HOUR)
            if until <= at:
                return None
            return _Count(seen=at, mark=until, rows=_minutes(await tx.rows("count_finished", at, until)))

        counted = await self.driver.read(count)
        if counted is None:
            return False

        async def write(tx: Transaction) -> bool:
            there = await tx.row("lock_duty_mark", mark)
            if (None if there is None else there["at"]) != counted.seen:
                return False
            await tx.execute("set_duty_mark", mark, counted.mark)
            if counted.rows is not None and counted.seen is not None:
                await _replace(tx, "minute", counted.seen, counted.mark, counted.rows)
                if mark == _SETTLED:
                    await _add_up(tx, counted.mark)
            return True

        return await self.driver.transact_slow(write)


async def _begin(tx: Transaction, now: int) -> int:
    """Where the first count of all starts: with what a ledger that is older than these numbers holds. A new one may
    have rows already, from a drain that began with the node: two days back would then be 96 portions, and each would
    read what no summary of the index covers yet, which is all of it."""
    hour = now - now % HOUR
    if await tx.row("any_ended_before", hour) is None:
        return hour
    return hour - KEPT["minute"] + HOUR


async def _add_up(tx: Transaction, until: int) -> None:
    """The hour and the day that end here; and what is too old goes."""
    if until % HOUR:
        return
    minutes = [_read(row) for row in await tx.rows("rollups_between", "minute", until - HOUR, until)]
    await _replace(tx, "hour", until - HOUR, until, _sums(minutes, "hour"))
    if until % DAY == 0:
        hours = [_read(row) for row in await tx.rows("rollups_between", "hour", until - DAY, until)]
        await _replace(tx, "day", until - DAY, until, _sums(hours, "day"))
    for step, kept in KEPT.items():
        await tx.execute("drop_rollups", step, 0, until - kept)


async def _replace(tx: Transaction, step: Step, low: int, high: int, rows: list[RollupRow]) -> None:
    await tx.execute("drop_rollups", step, low, high)
    if rows:
        await tx.execute("add_rollups", Rows(rows))


def _read(row: Row) -> RollupRow:
    return RollupRow(*row)


def _minutes(found: Sequence[Row]) -> list[RollupRow]:
    """Rows of `count_finished`: some for each tenant and minute, by status and bucket."""
    groups: dict[tuple[int, int], list[Row]] = {}
    for row in found:
        groups.setdefault((row["tenant"], row["minute"] * MINUTE), []).append(row)
    counted = []
    for (tenant, at), rows in groups.items():
        lateness, ended = [0] * BUCKETS, dict.fromkeys(("done", "failed", "cancelled", "skipped"), 0)
        for row in rows:
            ended[row["status"]] += row["slots"] if row["status"] == "skipped" else row["n"]
            if row["bucket"] is not None:
                lateness[row["bucket"]] += row["n"]
        longest = [row["longest_ms"] for row in rows if row["longest_ms"] is not None]
        counted.append(
            RollupRow(
                tenant=tenant,
                step="minute",
                at=at,
                firings=sum(row["firings"] for row in rows),
                timed=sum(row["timed"] for row in rows),
                duration_ms=sum(row["duration_ms"] for row in rows),
                longest_ms=max(longest, default=None),
                lateness=msgspec.json.encode(lateness).decode(),
                **ended,
            )
        )
    return counted


def _sums(parts: list[RollupRow], step: Step) -> list[RollupRow]:
    """One row for each tenant and step, of rows of that step or smaller ones."""
    groups: dict[tuple[int, int], list[RollupRow]] = {}
    for part in parts:
        groups.setdefault((part.tenant, part.at - part.at % STEPS[step]), []).append(part)
    return [
        RollupRow(
            tenant=tenant,
            step=step,
            at=at,
            firings=sum(row.firings for row in rows),
            done=sum(row.done for row in rows),
            failed=sum(row.failed for row in rows),
            cancelled=sum(row.cancelled for row in rows),
            skipped=sum(row.skipped for row in rows),
            timed=sum(row.timed for row in rows),
            duration_ms=sum(row.duration_ms for row in rows),
            longest_ms=max((row.longest_ms for row in rows if row.longest_ms is not None), default=None),
            lateness=msgspec.json.encode(added(row.histogram() for row in rows)).decode(),
        )
        for (tenant, at), rows in groups.items()
    ]
