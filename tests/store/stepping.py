"""Two connections, stepped statement by statement through every order with at most two switches.

An Actor's transactions stop before each statement and before the COMMIT until they are let go on. `run_schedule` lets
one of the two do its next statement, waits until that is done or hangs on a lock (the server says so), and goes on. A
schedule `(first, i, j)` is: the first does i statements, the other j, then the first does the rest, then the other:
with i and j over all values these are all interleavings with two switches, and a statement that hangs switches too.
Once one of the two is through, more statements for it would only be the same order again.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from onthedot.store import Store, open_store
from onthedot.store.driver import Transaction
from onthedot.store.postgres.driver import SESSION
from tests.store.conftest import START

Action = Callable[[Store], Awaitable[Any]]
DEADLINE = 20.0
LOOK = 0.002
"""Seconds until the server is asked whether a statement hangs. Most are done in half a millisecond."""


class Actor:
    """One user or node with a store of its own."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.pid: int | None = None
        self.steps = 0
        self.result: Any = None
        self.hung = False
        """Whether a statement of it has waited for a lock, in any order."""
        self._go = asyncio.Semaphore(0)
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._wrap(store.driver)

    def _wrap(self, driver: Any) -> None:
        begun = driver._begun  # every transaction goes through it, however its connection was got

        @asynccontextmanager
        async def stepped(connection: Any, **more: Any) -> AsyncIterator[Transaction]:
            async with begun(connection, **more) as tx:
                self.pid = connection.get_server_pid()
                yield _Stepped(tx, self)  # type: ignore[misc]  # as much of one as verbs use
                await self.gate()  # the COMMIT is a step

        driver._begun = stepped
        driver.read = lambda body, **_: driver.transact_slow(body)  # a read is stepped too
        driver.statement = lambda name, *args, **_: driver.transact_slow(lambda tx: tx.rows(name, *args))

    async def gate(self) -> None:
        self._idle.set()
        await self._go.acquire()
        self.steps += 1

    def start(self, action: Action) -> None:
        async def run() -> None:
            try:
                self.result = await action(self.store)
            except Exception as error:
                self.result = error
            finally:
                self._idle.set()

        self.steps = 0
        self._go = asyncio.Semaphore(0)
        self._idle.clear()  # set by the end of the action before: taken for ours, it ran a statement ahead of its turn
        self._task = asyncio.ensure_future(run())

    @property
    def done(self) -> bool:
        return self._task is not None and self._task.done()

    async def settle(self, blocked: Callable[[int], Awaitable[bool]]) -> bool:
        """Wait until it stops before its next statement, is through, or hangs on a lock. True unless it hangs."""
        async with asyncio.timeout(DEADLINE):
            while True:
                try:
                    await asyncio.wait_for(self._idle.wait(), LOOK)
                except TimeoutError:
                    if self.pid is not None and await blocked(self.pid):
                        self.hung = True
                        return False
                else:
                    await asyncio.sleep(0)
                    return True

    async def step(self, blocked: Callable[[int], Awaitable[bool]]) -> bool:
        """Do one statement. False: it hangs."""
        if self._idle.is_set() and not self.done:
            self._idle.clear()
            self._go.release()
        return await self.settle(blocked)


class _Stepped:
    """A transaction that asks before each statement. Looking at the clock is not worth a step."""

    def __init__(self, tx: Any, actor: Actor) -> None:
        self._tx = tx
        self._actor = actor
        self.connection = tx.connection
        self.lookahead = tx.lookahead
        self.alerting = tx.alerting

    async def rows(self, name: str, *args: Any) -> Any:
        await self._actor.gate()
        return await self._tx.rows(name, *args)

    async def row(self, name: str, *args: Any) -> Any:
        await self._actor.gate()
        return await self._tx.row(name, *args)

    async def execute(self, name: str, *args: Any) -> Any:
        await self._actor.gate()
        return await self._tx.execute(name, *args)

    async def now(self) -> int:
        return int(await self._tx.now())


class Stage:
    """Two actors, and a third connection that sees who hangs."""

    def __init__(self, one: Store, other: Store, watcher: asyncpg.Connection[Any]) -> None:
        self.actors = (Actor(one), Actor(other))
        self._watcher = watcher

    async def blocked(self, pid: int) -> bool:
        found = await self._watcher.fetchval(
            "SELECT 1 FROM pg_stat_get_activity($1) WHERE wait_event_type = 'Lock'", pid
        )
        return found is not None

    async def run_schedule(self, actions: tuple[Action, Action], first: int, i: int, j: int) -> tuple[bool, bool]:
        """Let both act in this order. Answers of each whether it did all its statements and had more to do."""
        one, other = self.actors[first], self.actors[1 - first]
        for actor, action in zip(self.actors, actions, strict=True):
            actor.start(action)
            await actor.settle(self.blocked)
        assert await self._run(one, i, other) == i or one.done, "nobody is in its way yet"
        more_of_one = not one.done
        more_of_other = await self._run(other, j, one) == j and not other.done
        await self._run(one, None, other)
        await self._run(other, None, one)
        assert one.done
        assert other.done
        return more_of_one, more_of_other

    async def explore(
        self,
        actions: Callable[[], tuple[Action, Action]],
        *,
        before: Callable[[], Awaitable[None]],
        after: Callable[[], Awaitable[None]],
    ) -> int:
        """All schedules of two actions, each once; how many there were."""
        count = 0
        for first in (0, 1):
            for i in itertools.count(1):
                more_i = True
                for j in itertools.count(1):
                    await before()
                    more_i, more_j = await self.run_schedule(actions(), first, i, j)
                    count += 1
                    await after()
                    assert count < 500, "more schedules than expected: has a statement become many?"
                    if not more_i or not more_j:
                        break
                if not more_i:
                    break
        return count

    async def _run(self, actor: Actor, steps: int | None, other: Actor) -> int:
        """So many statements, or all. If it hangs, the other goes on until it does not."""
        did = 0
        async with asyncio.timeout(DEADLINE):
            while not actor.done and (steps is None or did < steps):
                if not await actor.step(self.blocked):
                    if steps is not None:
                        return did
                    while not await actor.settle(self.blocked):
                        await other.step(self.blocked)
                did += 1
        return did


@asynccontextmanager
async def stage_of(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Stage, Store, asyncpg.Connection[Any]]]:
    """Two actors on this database, a store beside them that nobody steps, and the connection that sees who hangs. Its
    clock is the table `test_clock`.

    A transaction stands still here until the other one has done its steps. On a busy machine that was longer than
    the product waits for a silent connection (1.5 s) or the server for a silent client (3 s), and one was hung up."""
    monkeypatch.setattr("onthedot.store.postgres.connections.PATIENCE", DEADLINE)
    monkeypatch.setitem(SESSION, "idle_in_transaction_session_timeout", str(int(DEADLINE * 1000)))
    address = f"{url}?timeout={DEADLINE:g}&hints=off"  # a hint would be stepped like the verb that it follows
    watcher = await asyncpg.connect(url)
    await watcher.execute(f"CREATE TABLE test_clock AS SELECT {START}::bigint AS now_ms")
    await watcher.execute("ALTER DATABASE " + url.rpartition("/")[2] + " SET deadlock_timeout = '50ms'")
    stores = [await open_store(address, now="(SELECT now_ms FROM test_clock)") for _ in range(3)]
    yield Stage(stores[0], stores[1], watcher), stores[2], watcher
    for store in stores:
        await store.close()
    await watcher.close()
