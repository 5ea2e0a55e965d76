"""Concurrency groups in the store: at most so many runs of a group at once, over all jobs and nodes.

Who raises the number of running ones (a claim) has locked the group, and counts the rows under that lock: nothing is
kept that could drift. What finds its group full is set aside with its reason, and no claim looks at it again before
its turn has come. Whoever takes a run of a group out of the running ones locks the group too, as the last thing it
does, and calls the next: so one that is being set aside at that moment is seen. Claims skip a group that is locked and
never wait; the others wait in the order of the groups' names, and for nothing after that. So nobody waits in a circle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from onthedot.model.group import GroupView, Membership, groups_of_tenant, read_group
from onthedot.model.instant import format_instant
from onthedot.model.job import JobRecord
from onthedot.plan import GroupState, InLine, take_turns
from onthedot.store.driver import Row, Transaction
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["ClaimedGroups", "GroupWait", "GroupWaits", "call_next", "settle_groups"]

CALLED = 1000
"""Waiting runs of a group that one transaction calls."""
LISTED = 500
"""Groups in one answer."""
SETTLED = 64
"""Groups with waiting runs that one look goes through; the next goes on after the last."""
LAST = "~"  # after every group


class GroupWait(Shape, frozen=True):
    """A run that is set aside. `until`: when it expires meanwhile."""

    id: str
    until: int | None


class _Group(msgspec.Struct):
    """One group as a transaction sees it that has locked it."""

    state: GroupState
    called: list[InLine]
    waiting: list[InLine] = []


async def settle_groups(tx: Transaction, left: Iterable[Row]) -> int:
    """Rows that are not running any more, or not waiting: whose turn has come by that is called. The transaction waits
    for nothing after this. How many were called."""
    return await call_next(tx, {row["group_key"] for row in left if row["group_key"] is not None})


async def call_next(tx: Transaction, groups: Iterable[str]) -> int:
    keys = sorted(groups)
    if not keys:
        return 0
    if len(await tx.rows("lock_groups", keys)) < len(keys):
        await tx.rows("add_groups", keys)
        await tx.rows("lock_groups", keys)
    return await _call(tx, (await _read(tx, keys)).values())


async def _call(tx: Transaction, groups: Iterable[_Group]) -> int:
    ids = [run for group in groups for run in take_turns(group.state, (), group.called, group.waiting).wake]
    return await tx.execute("call_waiting", ids) if ids else 0


async def _read(tx: Transaction, keys: Sequence[str]) -> dict[str, _Group]:
    """After the locks, in statements of their own: they see what was committed before. A group without a limit has no
    runs any more."""
    groups = {
        row["group_key"]: _Group(GroupState(limit=row["group_limit"], running=row["running"]), [])
        for row in await tx.rows("group_states", keys)
        if row["group_limit"] is not None
    }
    roomy = sorted(key for key, group in groups.items() if group.state.room)
    if not roomy:
        return groups
    for row in await tx.rows("called_of_groups", roomy):
        groups[row["group_key"]].called.append(InLine(row["due_at"], row["id"]))
    most = min(max(groups[key].state.room for key in roomy), CALLED)
    waiting: dict[str, list[InLine]] = {}
    for row in await tx.rows("waiting_of_groups", roomy, most):
        waiting.setdefault(row["group_key"], []).append(InLine(row["due_at"], row["id"]))
    for key, lines in waiting.items():
        groups[key].waiting = lines
    return groups


class ClaimedGroups:
    """The groups of what one claim has in hand. Those that another transaction has locked are left alone."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._groups: dict[str, _Group] = {}
        self._wanting: dict[str, dict[str, tuple[InLine, JobRecord, int | None]]] = {}
        self.set_aside = 0
        self.called = 0  # runs that waited, and were not in hand: they can be claimed now

    async def lock(self, members: Iterable[Membership]) -> None:
        limits = {member.key: member.limit for member in members}
        if not limits:
            return
        wanted = sorted(limits)
        locked = {row["group_key"] for row in await self._tx.rows("lock_free_groups", wanted)}
        if rest := [key for key in wanted if key not in locked]:
            locked |= {row["group_key"] for row in await self._tx.rows("add_groups", rest)}
        if locked:
            self._groups = await _read(self._tx, sorted(locked))
        for key in locked:  # a row that does not know its group yet must not wait for ever
            self._groups.setdefault(key, _Group(GroupState(limit=limits[key], running=0), []))

    def has(self, key: str) -> bool:
        return key in self._groups

    def want(self, key: str, run_id: str, due_at: int, job: JobRecord, until: int | None) -> None:
        """It would run now, if its group has room."""
        self._wanting.setdefault(key, {})[run_id] = InLine(due_at, run_id), job, until

    def give_up(self, run_id: str) -> None:
        """It does not want to run any more: a newer one took its place."""
        for wanting in self._wanting.values():
            wanting.pop(run_id, None)

    async def decide(self) -> dict[str, JobRecord]:
        """Who may run; the others are set aside, and older ones that wait are called first."""
        run: dict[str, JobRecord] = {}
        wake: list[str] = []
        waits: list[GroupWait] = []
        for key, wanting in self._wanting.items():
            group = self._groups[key]
            called = [each for each in group.called if each.id not in wanting]
            waiting = [each for each in group.waiting if each.id not in wanting]
            turns = take_turns(group.state, [line for line, _, _ in wanting.values()], called, waiting)
            admitted = set(turns.run)
            run |= {run_id: job for run_id, (_, job, _) in wanting.items() if run_id in admitted}
            wake += turns.wake
            waits += [GroupWait(run_id, until) for run_id, (_, _, until) in wanting.items() if run_id not in admitted]
        self.set_aside = len(waits)
        if waits:
            await self._tx.execute("wait_for_group", Rows(waits))
        if wake:
            self.called = await self._tx.execute("call_waiting", wake)
        return run


class GroupWaits(Topic):
    _settled = ""  # up to which group those that wait were looked at

    async def list_groups(self, tenant: int) -> list[GroupView]:
        """Groups that a job of the tenant names whose runs are running, wait, or are still to come."""
        low, high = groups_of_tenant(tenant)

        async def body(tx: Transaction) -> list[GroupView]:
            keys = [row["group_key"] for row in await tx.rows("groups_between+where.any_of_group", low, high, LISTED)]
            rows = await tx.rows("count_groups", keys) if keys else []
            return [_view(row) for row in rows if row["lowest"] is not None]

        return await self.driver.read(body)

    async def watch_groups(self) -> int:
        """Look for what nobody called: a run that no node took when its turn came, a run that expired while it
        waited. Level-triggered: nothing waits for ever because something was lost. How many were called."""

        async def look(tx: Transaction) -> tuple[list[str], bool]:
            rows = await tx.rows("groups_between+where.waiting_for_group", self._settled, LAST, SETTLED)
            keys = [row["group_key"] for row in rows]
            return keys, await tx.row("any_expired_in_group") is not None

        keys, expired = await self.driver.read(look)
        self._settled = keys[-1] if len(keys) >= SETTLED else ""
        called = 0
        if expired:
            called += await self.driver.transact_slow(lambda tx: tx.execute("call_expired", CALLED))
        for key in keys:
            called += await self.driver.transact_slow(lambda tx, key=key: call_next(tx, [key]))  # type: ignore[misc]
        return called

    async def count_waiting_for_groups(self) -> tuple[int, int | None]:
        """How many runs wait for their group, counted up to 10,000, and since when the first of them."""
        row = await self.driver.read(lambda tx: tx.row("count_waiting_for_groups"))
        assert row is not None
        return row["waiting"], row["since"]


def _view(row: Row) -> GroupView:
    _, name, job_id = read_group(row["group_key"])
    return GroupView(
        group=name,
        job_id=job_id,
        limit=row["lowest"],
        highest_limit=row["highest"],
        running=row["running"],
        waiting=row["waiting"],
        waiting_since=None if row["since"] is None else format_instant(row["since"]),
    )
