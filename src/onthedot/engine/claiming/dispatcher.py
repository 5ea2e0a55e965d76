"""The Dispatcher: keeps the claimed runs in the heap, starts a Monitor for each at its instant, carries out orders.

The Timer calls `tick` and `look`; all else comes as a message: the store's answers to what its Claimer asked, and
orders. It never waits. Its helpers know nothing of it: ClaimPolicy (when and how much to claim), DueHeap, Capacity,
WaitingRuns (who waits here for a slot, and who of them is next).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from onthedot.clock import Clock
from onthedot.engine.claiming.capacity import Capacity
from onthedot.engine.claiming.claimer import Claimer
from onthedot.engine.claiming.due_heap import DueHeap
from onthedot.engine.claiming.node_offers import NodeOffers
from onthedot.engine.claiming.start_queue import StartQueue
from onthedot.engine.claiming.waiting_runs import Next, WaitingRuns, WaitState
from onthedot.engine.mailbox import Mailbox
from onthedot.engine.messages import (
    ROOM_FREED,
    Claimed,
    Detach,
    DispatcherMessage,
    Fence,
    LeaseEnded,
    Missed,
    OrdersRead,
    OwnRows,
    Return,
)
from onthedot.engine.running.begin_gate import BeginGate
from onthedot.engine.running.destinations import Admission, CallPlace, Destinations
from onthedot.engine.running.monitor import NODE_STOPPED, Monitor
from onthedot.engine.running.run_context import RunContext
from onthedot.engine.running.slot_pool import SlotPool
from onthedot.engine.running.worker_shares import WorkerShares
from onthedot.engine.tuning import EARLY_BY_MS, EARLY_FROM_MS, STARTS_PER_TURN
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.plan import in_backlog, laned, recorded_first, stopped_by
from onthedot.store import Adopted, Claim, Order
from onthedot.targets.contract import Cause
from onthedot.telemetry import emit

__all__ = ["Dispatcher"]


class Dispatcher:
    def __init__(
        self,
        *,
        mailbox: Mailbox[DispatcherMessage],
        clock: Clock,
        due_heap: DueHeap,
        slots: Capacity,
        claimer: Claimer,
        gate: BeginGate,
        offers: NodeOffers,
        context: RunContext,
        destinations: Destinations,
        shares: WorkerShares,
    ) -> None:
        self.mailbox = mailbox
        self.due_heap = due_heap
        self.running: dict[str, Monitor] = {}
        self.quiet = asyncio.Event()  # set when the last Monitor ends
        self.closed = False
        self._clock = clock
        self._slots = slots
        self._pool = slots.of_run
        self._claimer = claimer
        self._gate = gate
        self._offers = offers
        self._context = context
        self._destinations = destinations
        self._limited = destinations.pools
        self._shares = shares
        self._sharing = shares.pools
        self._waiting = WaitingRuns(due_heap, slots, destinations)
        self._start_queue = StartQueue(context.crashed)
        self._on_end = self._ended  # made once, not for each Monitor

    async def step(self) -> None:
        self.handle(await self.mailbox.take())

    def tick(self) -> None:
        """An instant has come: the Timer says so on its own turn."""
        self._fire()
        self._claimer.ask_next()

    def look(self) -> None:
        """It is time to look into the store: the Timer says so."""
        for pool in self._slots.pools.values():
            pool.recover(self._clock.monotonic())
        self._claimer.look(self._offers.capabilities())
        self._fire()
        self._claimer.ask_next()

    def handle(self, message: DispatcherMessage) -> None:
        match message:
            case Claimed(claims) | Missed(claims):
                self._take(claims, message.adopted)
                self._claimer.answered(message)
            case OwnRows(rows, before):
                self._compare(rows, before)
                self._claimer.answered(message)
            case OrdersRead(orders, asked):
                for order in orders:
                    self._obey(order)
                self._context.lease.heard(asked)
            case LeaseEnded():
                self._lose_lease()
        self._claimer.ask_next()  # also for RoomFreed, which asks for nothing else

    # firing

    def _fire(self) -> None:
        if not self._context.time.known or not self._context.lease.may_start():
            return
        if self._waiting:
            self._start_waiting(self._waiting.all_next())
        now_us = self._context.time.now_us()
        leaves_us = now_us + (EARLY_FROM_MS - EARLY_BY_MS) * 1000
        ready: list[Monitor] = []
        for _ in range(STARTS_PER_TURN):  # what is left is still due, and the Timer ticks again
            run = self.due_heap.pop(now_us, leaves_us)
            if run is None:
                break
            pool = self._pool(run)
            if self._waiting and self._waited(run, pool, now_us // 1000):
                continue
            if run.due_at * 1000 > now_us and not pool.at_leisure:
                self.due_heap.push(run, run.due_at)
            else:
                self._start(run, pool, now_us // 1000, ready)
        self._start_queue.begin(ready)

    def _waited(self, run: ClaimedRun, pool: SlotPool, now: int) -> bool:
        """Whether it has waited here for a slot: now it waits on, or goes back to the store."""
        state = self._waiting.due_again(run, pool, now)
        if state is WaitState.NO_SLOT:
            self._return(run, pool)
        elif state is WaitState.NO_ROOM:
            self._turn_away(run, pool, self._destinations.of(run))
        return state is not WaitState.NOT_WAITING

    def _start(self, run: ClaimedRun, pool: SlotPool, now: int, ready: list[Monitor], *, waited: bool = False) -> None:
        """It gets its slot; what can begin without asking the store is added to `ready`. `waited`: for its destination
        or its share, in the store."""
        if run.spec.policy.expires_in is not None and (outcome := self._context.too_late(run, now)) is not None:
            pool.let_go(run.id)
            self._context.recorder.put_over(self._context.finished(run, outcome, None, now))
            return
        if pool.name in self._sharing and self._beyond_share(run, pool, waited=waited):
            return
        place = self._destinations.of(run) if pool.name in self._limited else None
        if place is not None and (why := self._destinations.admits(place, pool, waited=waited)) is not Admission.GO:
            if why is Admission.SHUT or waited:
                self._turn_away(run, pool, place)
            else:
                self._waiting.add(run, pool, now, place)
        elif pool.start():
            self._launch(run, pool, place, ready)
        else:
            self._waiting.add(run, pool, now)

    def _start_waiting(self, found: Iterable[tuple[SlotPool, Next]]) -> None:
        """Who has waited here for a slot, or for its destination, and need not any more."""
        ready: list[Monitor] = []
        for pool, (run, place, admission) in found:
            if admission is Admission.SHUT:
                self._turn_away(run, pool, place)
            elif not (pool.name in self._sharing and self._beyond_share(run, pool)):
                pool.start()
                self._launch(run, pool, place, ready)
        self._start_queue.begin(ready)

    def _beyond_share(self, run: ClaimedRun, pool: SlotPool, *, waited: bool = False) -> bool:
        """Its job or its tenant has its share of the workers: then it waits in the store."""
        requires = self._shares.refuses(run, pool, waited=waited)
        if requires is None:
            return False
        pool.let_go(run.id)
        emit("run.over_share", n=1)
        self._context.recorder.put_over(self._context.turned_away(run, requires, "slot"))
        return True

    def _turn_away(self, run: ClaimedRun, pool: SlotPool, place: CallPlace | None) -> None:
        """It waits for its destination in the store, where all nodes find it."""
        assert place is not None
        pool.let_go(run.id)
        emit("run.waiting", n=1, reason="limit" if place.breaker.since is None else "breaker")
        self._context.recorder.put_over(self._context.turned_away(run, place.requires))

    def _launch(self, run: ClaimedRun, pool: SlotPool, place: CallPlace | None, ready: list[Monitor]) -> None:
        kind = self._context.targets.kind_of(run.spec.target)
        monitor = Monitor(run, pool, kind, self._context, self._on_end)
        if place is not None:
            monitor.place, monitor.probe = place, self._destinations.begin(place)
        if pool.name in self._sharing:
            self._shares.begin(run, pool.name)
        self.running[run.id] = monitor
        policy = run.spec.policy
        if run.work is not None:  # what it has started is recorded
            ready.append(monitor)
        elif (
            kind.profile.survives_node
            or policy.delivery == "at_most_once"
            or (policy.expires_in is not None and recorded_first(policy, again=run.begun_before))
        ):
            self._gate.mailbox.put_over(monitor)
        else:
            ready.append(monitor)

    def _ended(self, monitor: Monitor) -> None:
        """A Monitor is through with its run: the slot is free, whatever the Recorder still has to write."""
        running, pool, run_id = self.running, monitor.pool, monitor.run.id
        if running.get(run_id) is monitor:
            del running[run_id]
        if pool.end(monitor.seconds, run_id):
            self.mailbox.merge(ROOM_FREED)
        if pool.name in self._sharing:
            self._shares.end(monitor.run, pool.name)
        place = monitor.place
        if place is not None:
            self._destinations.end(place, monitor.run, monitor.outcome, monitor.began, probe=monitor.probe)
        if not running:
            self.quiet.set()
        if self._waiting and self._context.time.known and self._context.lease.may_start():
            self._start_waiting(self._waiting.next(pool, place))

    # claiming

    def _take(self, claims: Sequence[tuple[str, int, Claim]], adopted: Sequence[Adopted] = ()) -> None:
        """Past ones start at once, in the order of the claim; the others wait for their instant. Before them what
        others have begun, with what users want of it."""
        if not claims and not adopted:
            return
        ready: list[Monitor] = []
        now_us, may_start = self._context.time.now_us(), self._context.lease.may_start()
        for found in adopted:
            self._place(found.run, now_us, may_start, ready)
            if found.order is not None:
                self._obey(found.order)
        for name, limit, claim in claims:
            if claim.runs:
                emit("run.claimed", n=len(claim.runs))
            waited = "@" in name
            for run in claim.runs:
                if in_backlog(run.kind, run.due_at, claim.now):
                    self._pool(run).backlog.add(run.id)
                self._place(run, now_us, may_start, ready, waited=waited)
            if name in self._sharing:
                self._shares.claimed(self._slots.pools[name])
            self._claimer.brought(name, limit, claim)
        self._start_queue.begin(ready)

    def _place(
        self, run: ClaimedRun, now_us: int, may_start: bool, ready: list[Monitor], *, waited: bool = False
    ) -> None:
        pool = self._pool(run)
        pool.hold()
        if self.closed:
            self._return(run, pool)
        elif may_start and (run.due_at * 1000 <= now_us or run.work is not None):
            self._start(run, pool, now_us // 1000, ready, waited=waited)
        elif self._context.leaves_early(run):
            self.due_heap.push(run, run.due_at - EARLY_BY_MS, may_leave=True)
        else:
            self.due_heap.push(run, run.due_at)

    def _compare(self, rows: Sequence[Fence], before: dict[str, int]) -> None:
        """Give back what carries our name unknown to us; let go of what we hold without carrying our name."""
        owned = self._context.owned
        for run_id, token in owned.strays(rows, before):
            if self._context.targets.surviving:  # if it was adopted, it goes on: the store knows
                self._context.recorder.put_over(Detach(run_id, token))
            self._context.recorder.put_over(Return(run_id, token))
        ours = set(rows)
        for run_id, token in before.items():
            if (run_id, token) not in ours:
                self._drop(run_id, token)

    # orders

    def _obey(self, order: Order) -> None:
        """Orders stay until they are carried out, so each may come again: the second time there is nothing to do."""
        held = self.due_heap.get(order.run_id)
        if order.what == "gone":
            self._drop(order.run_id, order.token)
        elif held is not None and held.token == order.token:
            if held.work is not None:  # it can be stopped only once it is started; then the order comes again
                return
            self._forget(held)
            if order.what == "recall":
                self._return(held, self._pool(held))
            else:
                self._pool(held).let_go(held.id)
                outcome, now = stopped_by(order.by), self._context.time.now_ms()
                self._context.recorder.put_over(self._context.finished(held, outcome, None, now))
        else:
            monitor = self.running.get(order.run_id)
            if monitor is not None and monitor.run.token == order.token and monitor.cause is None:
                if order.what == "recall":
                    monitor.recall()
                else:
                    monitor.stop("cancelled", stopped_by(order.by))

    def _drop(self, run_id: str, token: int) -> None:
        """No longer ours: whoever has it now will record it."""
        held = self.due_heap.get(run_id)
        monitor = self.running.get(run_id)
        if held is not None and held.token == token:
            self._forget(held)
            self._pool(held).let_go(run_id)
            self._context.owned.release(run_id, token)
        elif monitor is not None and monitor.run.token == token and monitor.cause != "gone":
            emit("run.refused", run_id=run_id)
            monitor.stop("gone")

    def _forget(self, run: ClaimedRun) -> None:
        self.due_heap.remove(run.id)
        self._waiting.drop(run, self._pool(run))

    def _return(self, run: ClaimedRun, pool: SlotPool) -> None:
        pool.let_go(run.id)
        self._context.recorder.put_over(Return(run.id, run.token) if run.work is None else Detach(run.id, run.token))

    # stopping

    async def close(self, within: float) -> None:
        """No more claims (one under way is waited for); what is held ahead goes back now, so that other nodes can fire
        it on time."""
        self.closed = True
        await self._claimer.close(within)
        for message in self.mailbox.take_all():
            self.handle(message)
        self._waiting.clear()
        for run in self.due_heap.clear():
            self._return(run, self._pool(run))
        now = self._context.time.now_ms() if self._context.time.known else 0
        for monitor in list(self.running.values()):
            if monitor.run.due_at > now:
                monitor.recall()

    def detach_all(self) -> None:
        """What goes on without us is not waited for: others can adopt it now."""
        for monitor in list(self.running.values()):
            if monitor.survives and monitor.cause is None:
                monitor.stop("interrupted", NODE_STOPPED)

    def _lose_lease(self) -> None:
        """Others may start what we run: what must not run twice at once is stopped."""
        for monitor in list(self.running.values()):
            if laned(monitor.run.spec.policy):
                monitor.lose_lease()

    def stop_all(self, cause: Cause, outcome: Outcome | None = None) -> None:
        """All that runs; `quiet` is set when it is over."""
        self.quiet.clear()
        for monitor in list(self.running.values()):
            monitor.stop(cause, outcome)
        if not self.running:
            self.quiet.set()
