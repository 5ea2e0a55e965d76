"""The Dispatcher: keeps the claimed runs in the heap, starts a Monitor for each at its instant, carries out orders.

The Timer calls `tick` and `look`; all else comes as a message: the store's answers to what its Claimer asked, and
orders. It never waits. Its helpers know nothing of it: ClaimPolicy (when and how much to claim), DueHeap, Capacity.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from onthedot.clock import Clock
from onthedot.engine.claiming.capacity import Capacity, pool_of
from onthedot.engine.claiming.claimer import Claimer
from onthedot.engine.claiming.due_heap import DueHeap
from onthedot.engine.claiming.node_offers import NodeOffers
from onthedot.engine.claiming.slot_waiters import SlotWaiters
from onthedot.engine.claiming.start_queue import StartQueue
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
from onthedot.engine.tuning import EARLY_BY_MS, EARLY_FROM_MS, NO_SLOT_MS, PLACE_SOON_MS, STARTS_PER_TURN
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
        self._slot_waiters = SlotWaiters()  # in the heap too, until their patience ends
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
        if self._slot_waiters:
            for key in list(self._slot_waiters):
                pool = self._slots.of(pool_of(key))
                place = None if key == pool.name else self._place_of(self._slot_waiters.peek(key), pool)
                if place is None:
                    self._start_waiting(pool)
                else:
                    self._start_waiting_at(place, pool)
        now_us = self._context.time.now_us()
        leaves_us = now_us + (EARLY_FROM_MS - EARLY_BY_MS) * 1000
        ready: list[Monitor] = []
        for _ in range(STARTS_PER_TURN):  # what is left is still due, and the Timer ticks again
            run = self.due_heap.pop(now_us, leaves_us)
            if run is None:
                break
            pool = self._pool(run)
            if self._slot_waiters and self._ran_out_of_patience(run, pool, now_us // 1000):
                continue
            if run.due_at * 1000 > now_us and not pool.at_leisure:
                self.due_heap.push(run, run.due_at)
            else:
                self._start(run, pool, now_us // 1000, ready)
        self._start_queue.begin(ready)

    def _ran_out_of_patience(self, run: ClaimedRun, pool: SlotPool, now: int) -> bool:
        """It waited here for a slot, or for room at its destination: it goes back, unless that will have room soon."""
        if self._slot_waiters.drop(pool.name, run.id):
            pool.stuck()
            self._return(run, pool)
            return True
        place = self._place_of(run, pool)
        if place is None or run.id not in (waiting := self._slot_waiters.get(place.requires, {})):
            return False
        if self._destinations.admits(place, pool) is Admission.GO:  # what it lacks is a slot
            self._slot_waiters.drop(place.requires, run.id)
            pool.stuck()
            self._return(run, pool)
        elif place.breaker.since is None and self._destinations.keeps_up(place, len(waiting)):
            self.due_heap.push(run, now + NO_SLOT_MS)
        else:
            self._slot_waiters.drop(place.requires, run.id)
            self._turn_away(run, pool, place)
        return True

    def _start(self, run: ClaimedRun, pool: SlotPool, now: int, ready: list[Monitor], *, waited: bool = False) -> None:
        """It gets its slot; what can begin without asking the store is added to `ready`. `waited`: for its destination
        or its share, in the store."""
        if run.spec.policy.expires_in is not None and (outcome := self._context.too_late(run, now)) is not None:
            pool.let_go(run.id)
            self._context.recorder.put_over(self._context.finished(run, outcome, None, now))
            return
        if pool.name in self._sharing and self._beyond_share(run, pool, waited=waited):
            return
        place = self._destinations.of(run) if pool.name in self._limited and run.work is None else None
        if place is not None and (why := self._destinations.admits(place, pool, waited=waited)) is not Admission.GO:
            if why is Admission.SHUT or waited:
                self._turn_away(run, pool, place)
            else:
                self._wait_here(run, pool, now, place)
        elif pool.start():
            self._launch(run, pool, place, ready)
        else:
            self._wait_here(run, pool, now)

    def _wait_here(self, run: ClaimedRun, pool: SlotPool, now: int, place: CallPlace | None = None) -> None:
        """For a slot, or for room at `place`."""
        self._slot_waiters.add(pool.name if place is None else place.requires, run)
        patience = NO_SLOT_MS
        if place is not None and self._destinations.keeps_up(place, len(self._slot_waiters[place.requires]), sure=True):
            patience = PLACE_SOON_MS
        self.due_heap.push(run, now + patience)

    def _start_waiting(self, pool: SlotPool) -> None:
        """Who waits for a slot, in the order in which they came due, as many as there are. If its destination has no
        room, it waits for that."""
        ready: list[Monitor] = []
        while pool.name in self._slot_waiters and pool.has_slot:
            run = self._slot_waiters.first(pool.name)
            if pool.name in self._sharing and self._beyond_share(run, pool):
                self.due_heap.remove(run.id)
                continue
            pool.start()
            place = self._place_of(run, pool) if pool.name in self._limited else None
            if place is None or self._destinations.admits(place, pool, taken=1) is Admission.GO:
                self.due_heap.remove(run.id)
                self._launch(run, pool, place, ready)
            else:
                pool.put_back()
                self._slot_waiters.add(place.requires, run)
        self._start_queue.begin(ready)

    def _start_waiting_at(self, place: CallPlace, pool: SlotPool) -> None:
        """Who waits for this destination; if its breaker has opened meanwhile, they go back."""
        ready: list[Monitor] = []
        key = place.requires
        while key in self._slot_waiters:
            admission = self._destinations.admits(place, pool)
            if admission is Admission.FULL or (admission is Admission.GO and not pool.start()):
                break
            run = self._slot_waiters.first(key)
            self.due_heap.remove(run.id)
            if admission is Admission.GO:
                self._launch(run, pool, place, ready)
            else:
                self._turn_away(run, pool, place)
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

    def _turn_away(self, run: ClaimedRun, pool: SlotPool, place: CallPlace) -> None:
        """It waits for its destination in the store, where all nodes find it."""
        pool.let_go(run.id)
        emit("run.waiting", n=1, reason="limit" if place.breaker.since is None else "breaker")
        self._context.recorder.put_over(self._context.turned_away(run, place.requires))

    def _place_of(self, run: ClaimedRun, pool: SlotPool) -> CallPlace | None:
        """Of what others have begun nothing is asked: it is called already."""
        return self._destinations.of(run) if pool.name in self._limited and run.work is None else None

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
        if self._slot_waiters and self._context.time.known and self._context.lease.may_start():
            if place is not None and place.requires in self._slot_waiters:
                self._start_waiting_at(place, pool)
            if pool.name in self._slot_waiters:
                self._start_waiting(pool)

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
        pool.held += 1
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
        if self._slot_waiters:
            pool = self._pool(run)
            place = self._place_of(run, pool)
            if not self._slot_waiters.drop(pool.name, run.id) and place is not None:
                self._slot_waiters.drop(place.requires, run.id)

    def _return(self, run: ClaimedRun, pool: SlotPool) -> None:
        pool.let_go(run.id)
        self._context.recorder.put_over(Return(run.id, run.token) if run.work is None else Detach(run.id, run.token))

    # stopping

    async def close(self, patience: float) -> None:
        """No more claims (one under way is waited for); what is held ahead goes back now, so that other nodes can fire
        it on time."""
        self.closed = True
        await self._claimer.close(patience)
        for message in self.mailbox.take_all():
            self.handle(message)
        self._slot_waiters.clear()
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
