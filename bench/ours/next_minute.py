"""The next minute's runs among a day's: what it takes to find them in one table by an index, and in hourly partitions.

The product's own look and claim, and the plain question "what is due in the next minute", at random minutes of the day,
the layouts in turns. Statements are planned once, as the product has them planned; what a claim writes is undone.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import asyncpg

from bench.contest import quantiles
from bench.ours.hourly import HOURLY, HOURS, LAYOUTS, ONE_TABLE, Day, a_day, layout
from onthedot.model.duration import HOUR, MINUTE
from onthedot.plan import LOOKAHEAD_MS, on_time_share
from onthedot.store.postgres.driver import NOW, SESSION
from onthedot.store.postgres.transaction import flat
from onthedot.store.queries import Queries
from onthedot.store.runs.look import Offered, margins
from onthedot.store.shapes import Rows

__all__ = ["next_minute", "steps"]

AT = f"(current_setting('bench.now')::bigint + 0 * {NOW})"
"""The product's statements at any instant: as volatile as the clock, so that they are planned alike."""
OFFERS = ["webhook"]
LEVEL = 1000  # above that of all jobs
A_SECOND = 100  # runs of it: a day has 8.64 million
WARM = 3
FEW = 5
"""Times that something is read without an index: each takes about as long as the one before."""
PLAIN = """
SELECT id, job_id, due_at FROM runs
WHERE requires = $1 AND NOT backlog AND state = 'pending' AND lane IS NULL AND NOT (cursor AND recurring)
  AND ready_at >= $2 AND ready_at < $3
"""
PLANNED = {**SESSION, "idle_in_transaction_session_timeout": "0"}
"""As the product's connections are, but for a machine that may be too busy to go on within three seconds."""
NO_INDEX = {"enable_indexscan": "off", "enable_bitmapscan": "off", "enable_seqscan": "on"}


@dataclass(frozen=True)
class Question:
    """`args`: what it is asked with at an instant. `undone`: it locks or writes, and is rolled back."""

    what: str
    text: str
    args: Callable[[int], Sequence[Any]]
    undone: bool = False


async def next_minute(store: str, pending: int, times: int, seed: int = 1) -> dict[str, Any]:
    began = time.perf_counter()
    day = await a_day(store, pending)
    seeded = time.perf_counter() - began
    look, read, claim, plain = _questions(day)
    found: dict[tuple[str, str], _Asked] = {}
    async with AsyncExitStack() as stack:
        places = {name: await stack.enter_async_context(layout(store, name, **PLANNED)) for name in LAYOUTS}
        for question in (look, read, claim, plain):
            found |= await _alternately(places, question, day, times, seed)
        for connection in places.values():
            for name, value in NO_INDEX.items():
                await connection.execute(f"SET {name} = {value}")
        bare = replace(plain, what=f"{plain.what}, without an index")
        found |= await _alternately(places, bare, day, FEW, seed)
        sizes = {name: await connection.fetchval(_SIZE) for name, connection in places.items()}
    ours, theirs = found[read.what, ONE_TABLE], found[read.what, HOURLY]
    return {
        "read_ms": ours.figures,
        "to_partitions": ours.figures["p50"] / theirs.figures["p50"],
        "seeded_seconds": seeded,
        "bytes": sizes,
        "plans": {f"{what}, {name}": asked.plan for (what, name), asked in found.items()},
        "table": {
            "head": ["question", "layout", "rows", "p50 ms", "p99 ms", "pages", "plan"],
            "rows": [[what, name, *asked.row()] for (what, name), asked in found.items()],
        },
    }


_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(relid))::bigint, pg_total_relation_size('runs'))
FROM pg_partition_tree('runs')
"""


def _questions(day: Day) -> list[Question]:
    queries = Queries("postgres", AT)
    claim = queries["claim_free"]
    minute = day.pending // (HOURS * HOUR // MINUTE)
    soon, leave = margins(LOOKAHEAD_MS, None)
    offered = Rows([Offered(offer, 0) for offer in OFFERS])

    def claimed(most: int) -> Callable[[int], Sequence[Any]]:
        """Of what became ready in the minute before."""
        return lambda now: ["bench", OFFERS, LEVEL, most, on_time_share(most), now - MINUTE]

    return [
        Question("look before a claim", queries["peek"], lambda now: flat((LEVEL, soon, now - MINUTE, leave, offered))),
        Question("read of a claim, all of a minute", _read_of(claim), claimed(minute), undone=True),
        Question(f"claim of {A_SECOND}", claim, claimed(A_SECOND), undone=True),
        Question("due in the next minute", PLAIN, lambda now: [OFFERS[0], now - MINUTE, now]),
    ]


def _read_of(claim: str) -> str:
    """The part of the statement that finds the runs, and locks them."""
    read, closed, _ = claim.partition("ARRAY(")[2].rpartition("))\nRETURNING")
    if not closed:
        raise ValueError(f"this is not how a claim looked: {claim}")
    return read


@dataclass(frozen=True)
class _Asked:
    figures: dict[str, float]
    rows: int
    plan: str
    pages: int
    short: str

    def row(self) -> list[object]:
        return [self.rows, self.figures["p50"], self.figures["p99"], self.pages, self.short]


async def _alternately(
    places: dict[str, asyncpg.Connection], question: Question, day: Day, times: int, seed: int
) -> dict[tuple[str, str], _Asked]:
    """The same minutes in each layout, in turns: a slow moment of the machine hits both."""
    statements = {name: await connection.prepare(question.text) for name, connection in places.items()}
    took: dict[str, list[float]] = {name: [] for name in places}
    rows = dict.fromkeys(places, 0)
    rng = random.Random(seed)
    for number in range(WARM + times):
        now = _minute_of(day, rng)
        for name, connection in places.items():
            await connection.execute(f"SET bench.now = '{now}'")
            async with _Undone(connection, question.undone):
                began = time.perf_counter()
                answer = await statements[name].fetch(*question.args(now))
                spent = (time.perf_counter() - began) * 1000
            rows[name] = len(answer)
            if number >= WARM:
                took[name].append(spent)
    now = _minute_of(day, rng)
    explained = {name: await _explained(connection, question, now) for name, connection in places.items()}
    return {(question.what, name): _Asked(quantiles(took[name]), rows[name], *explained[name]) for name in places}


def _minute_of(day: Day, rng: random.Random) -> int:
    """The end of a minute that does not cross the hour."""
    return day.began + rng.randrange(HOURS) * HOUR + rng.randrange(1, 60) * MINUTE


class _Undone:
    """A transaction that is rolled back; nothing at all where nothing is written."""

    def __init__(self, connection: asyncpg.Connection, needed: bool) -> None:
        self._transaction = connection.transaction() if needed else None

    async def __aenter__(self) -> None:
        if self._transaction is not None:
            await self._transaction.start()

    async def __aexit__(self, *_: object) -> None:
        if self._transaction is not None:
            await self._transaction.rollback()


async def _explained(connection: asyncpg.Connection, question: Question, now: int) -> tuple[str, int, str]:
    """The plan as PostgreSQL tells it, the pages that it touched, and the plan in short."""
    await connection.execute(f"SET bench.now = '{now}'")
    values = ", ".join(_quoted(arg) for arg in question.args(now))
    async with _Undone(connection, True):
        await connection.execute(f"PREPARE asked AS {question.text}")
        lines = await connection.fetch(f"EXPLAIN (ANALYZE, BUFFERS) EXECUTE asked({values})")
        told = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE asked({values})")
        await connection.execute("DEALLOCATE asked")
    plan = json.loads(told)[0]["Plan"]
    pages = int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
    return "\n".join(line[0] for line in lines), pages, _in_short(plan)


def _quoted(arg: object) -> str:
    """As text of no type yet: it becomes what the parameter is."""
    return f"'{{{','.join(map(str, arg))}}}'" if isinstance(arg, list) else f"'{arg}'"


def steps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from steps(below)


def _in_short(plan: dict[str, Any]) -> str:
    """By what `runs` was read, and how much of it."""
    read = [
        step for step in steps(plan) if str(step.get("Relation Name", "")).startswith("runs") and step["Actual Loops"]
    ]
    scans = [step for step in read if "Scan" in step["Node Type"]]
    parts = {step["Relation Name"] for step in scans}
    if parts <= {"runs"}:
        ways = {step["Node Type"] + (f" using {step['Index Name']}" if "Index Name" in step else "") for step in scans}
        return ", ".join(sorted(ways))
    return f"{', '.join(sorted({step['Node Type'] for step in scans}))}: {len(parts)} of {HOURS} partitions"
