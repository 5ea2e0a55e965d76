"""The destinations that this node calls: how many calls each has open, whether its breaker is open, and who waits.

Each may have no more than a part of the slots of its pool while less than half of them are free, so that a receiver
that hangs takes its own slots and not those of others, and one receiver alone still has half of them. What finds no
room for a moment goes back to the store and waits there (`wanted` claims it again), as does what comes while the
breaker is open. All of it is in memory, of this node alone; a tenant's destinations are its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum

from onthedot.clock import Clock
from onthedot.engine.look_times import LookTimes
from onthedot.engine.running.slot_pool import SlotPool
from onthedot.engine.tuning import CLAIM_AGAIN, DESTINATION_KEPT, DESTINATIONS_KNOWN, DESTINATIONS_MOST
from onthedot.model.destination import DestinationLoad, read_waiting, waits_for
from onthedot.model.labels import type_of
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.plan.breaker import Breaker
from onthedot.store import Claim
from onthedot.targets import Targets
from onthedot.targets.contract import Kind
from onthedot.telemetry import emit

__all__ = ["Admission", "CallPlace", "Destinations"]


_Named = tuple[Kind, str, int, str]
"""A kind of target, the name of the destination, the tenant; and what is required, if labels are: a run that waits must
come back to a node that has them."""

RATE_OVER = 0.25
"""Seconds over which it is counted how many calls of a destination end."""


DURATIONS = 200
"""Calls of a destination whose duration is remembered."""

TOLD_OVER = 5.0
"""Seconds after which a rate that is told has come most of the way to what it is now."""

TOLD_FOR = 60.0
"""Seconds after its last call for which a destination is told of."""


def _percentile(seconds: Iterable[float], part: float) -> int | None:
    """In ms; None: there was no call."""
    known = sorted(seconds)
    return round(known[min(len(known) - 1, int(len(known) * part))] * 1000) if known else None


class Admission(Enum):
    GO = "go"
    FULL = "full"
    """It has as many calls open as it may: one may end in a moment."""
    SHUT = "shut"
    """Its breaker is open."""


class CallPlace:
    """One destination of one tenant, as this node knows it."""

    __slots__ = (
        "_ended_before",
        "_measured_at",
        "_rate",
        "_told",
        "breaker",
        "durations",
        "ended",
        "last_at",
        "named",
        "open_calls",
        "requires",
        "tenant",
        "waited_for",
    )

    def __init__(self, requires: str, tenant: int) -> None:
        self.requires = requires  # what a run requires that waits for it
        self.tenant = tenant
        self.breaker = Breaker()
        self.open_calls = 0
        self.waited_for = False  # runs wait for it in the store, as far as is known
        self.named: _Named | None = None  # by which it is found for a call
        self.ended = 0  # calls, in all
        self.durations: deque[float] = deque(maxlen=DURATIONS)  # of the last calls, in seconds
        self.last_at = float("-inf")  # when one of them ended
        self._ended_before = 0
        self._measured_at = float("-inf")
        self._rate: float | None = None
        self._told: tuple[float, int, float | None] | None = None  # when, calls by then, and the rate that was told

    def told_rate(self, now: float) -> float | None:
        """Calls that ended per second, over the last seconds; None: not known yet. For who asks once a second."""
        if self._told is None:
            self._told = now, self.ended, None
            return None
        before, ended, rate = self._told
        passed = now - before
        if passed > 0:
            present = (self.ended - ended) / passed
            rate = present if rate is None else rate + (present - rate) * min(1.0, passed / TOLD_OVER)
            self._told = now, self.ended, rate
        return None if rate is None else round(rate, 1)

    def per_second(self, now: float) -> float | None:
        """How many calls ended of late; None: not known yet. For who asks again and again."""
        passed = now - self._measured_at
        if passed >= RATE_OVER:
            self._rate = (self.ended - self._ended_before) / passed if passed < 8 * RATE_OVER else None
            self._measured_at, self._ended_before = now, self.ended
        return self._rate

    @property
    def moves(self) -> bool:
        """Whether a call has ended since `per_second` began to count."""
        return self.ended > self._ended_before

    @property
    def matters(self) -> bool:
        """Whether something would be forgotten with it."""
        return self.waited_for or self.breaker.failures > 0 or self.breaker.since is not None


class Destinations:
    def __init__(self, targets: Targets, clock: Clock, look_times: LookTimes, limit: int | None = None) -> None:
        """`limit`: open calls of each; None: a quarter of its pool."""
        self.pools = targets.having_destinations
        self._targets = targets
        self._clock = clock
        self._look_times = look_times
        self._limit = limit
        self._places: dict[str, CallPlace] = {}  # in the order in which they were last looked at for being forgotten
        self._found: dict[_Named, CallPlace] = {}  # of `_places` those that were called, by what is at hand
        self._waited_for: dict[str, CallPlace] = {}  # in the order in which they are asked for

    # starting and ending calls

    def of(self, run: ClaimedRun) -> CallPlace | None:
        """Who would be called by it; None: nobody in particular, or others have called already. A kind that has no
        destinations is not asked: nobody would look in the store for what waits there for one of them."""
        if run.work is not None:
            return None
        target = run.spec.target
        kind = self._targets.kind_of(target)
        if not kind.profile.has_destinations:
            return None
        name = kind.destination(target)
        if name is None:
            return None
        labels = "" if not run.spec.requires else run.spec.requirement()
        named = kind, name, run.tenant, labels
        return self._found.get(named) or self._find(run, named)

    def admits(self, place: CallPlace, pool: SlotPool, *, waited: bool = False) -> Admission:
        """Whether a call may go there now. `waited`: it has waited for this; while others do, what comes new leaves a
        part of the room to them, or would always find it first."""
        is_open = place.breaker.since is not None
        if not (is_open or place.waited_for) and pool.running <= pool.capacity // 2:
            return Admission.GO  # nearly always: half of the slots are free for anybody (see `_room`)
        if is_open and not place.breaker.admits(self._clock.monotonic()):
            return Admission.SHUT
        limit = self.limit(pool)
        kept = max(1, limit // DESTINATION_KEPT) if place.waited_for and not waited else 0
        if self._room(place, pool, limit) > kept or (not is_open and self._most(limit, pool) >= pool.capacity):
            return Admission.GO
        return Admission.FULL

    def limit(self, pool: SlotPool) -> int:
        return self._limit or pool.capacity // 4 or 1

    @staticmethod
    def _room(place: CallPlace, pool: SlotPool, limit: int) -> int:
        """How many more calls there may be: up to its limit, or as many as leave half of the slots free."""
        return max(limit - place.open_calls, pool.capacity // 2 + 1 - pool.running)

    @staticmethod
    def _most(limit: int, pool: SlotPool) -> int:
        """How many calls one may ever have open. If that is the whole pool, only its slots are waited for: what waits
        for a slot goes back after NO_SLOT_MS to whoever has one, what waits for a destination is looked for less
        often."""
        return max(limit, pool.capacity // 2 + 1)

    def keeps_up(self, place: CallPlace, waiting: int, *, sure: bool = False) -> bool:
        """Whether it gets through so many within a second, as it went of late; if that is not known, whether any call
        has ended since it was first asked for. Then they wait here: a receiver that is only busy would else cost the
        store half of each claim twice. One that hangs is not waited for longer than for a slot."""
        rate = place.per_second(self._clock.monotonic())
        return place.moves and not sure if rate is None else waiting <= rate

    def begin(self, place: CallPlace) -> int:
        """A call takes its slot. Its number if it is the probe of an open breaker, else 0."""
        place.open_calls += 1
        return 0 if place.breaker.since is None else place.breaker.sent(self._clock.monotonic())

    def end(self, place: CallPlace, run: ClaimedRun, outcome: Outcome | None, began: float, *, probe: int) -> None:
        """It is over; no outcome: it never began, or goes on elsewhere."""
        place.open_calls -= 1
        place.ended += 1
        breaker = place.breaker
        now = self._clock.monotonic()
        if outcome is not None:
            place.durations.append(now - began)
            place.last_at = now
            if outcome.kind == "ok" and not breaker.failures and not place.waited_for:
                return  # nearly always
        answered = None if outcome is None else self._targets.kind_of(run.spec.target).answered(outcome)
        if answered is None:
            breaker.undecided(now, probe=probe)
        elif not answered:
            if breaker.failed(now, began, probe=probe):
                self._tell("destination.opened", place, error=outcome.error if outcome is not None else None)
        elif (breaker.failures or breaker.since is not None) and breaker.succeeded(now):
            self._tell("destination.closed", place)
            self._look_times.ask()
        if place.waited_for and breaker.since is None:
            self._look_times.look_within(CLAIM_AGAIN)

    @staticmethod
    def _tell(event: str, place: CallPlace, **more: str | None) -> None:
        waiting = read_waiting(place.requires)
        assert waiting is not None
        emit(event, tenant=place.tenant, destination=waiting.destination, failures=place.breaker.failures, **more)

    # waiting in the store

    def waits(self, requires: str) -> None:
        """Runs wait for it in the store."""
        place = self._places.get(requires)
        if place is None:
            waiting = read_waiting(requires)
            if waiting is None or type_of(requires) not in self.pools:
                return
            place = self._known(requires, waiting.tenant)
        if not place.waited_for:
            place.waited_for = True
            self._waited_for[requires] = place
            if place.breaker.since is None:
                self._look_times.look_within(CLAIM_AGAIN)

    def wanted(self, pool: SlotPool, capabilities: Iterable[str], room: int, most: int) -> list[tuple[str, int]]:
        """What runs require that are worth a claim now, and how many of each: `room` all together, of `most`
        destinations, who come in turn."""
        if not self._waited_for or room <= 0:
            return []
        offered, wants, now = set(capabilities), list[tuple[str, int]](), self._clock.monotonic()
        for _ in range(min(len(self._waited_for), 4 * most)):
            requires, place = next(iter(self._waited_for.items()))
            self._waited_for[requires] = self._waited_for.pop(requires)
            waiting = read_waiting(requires)
            if waiting is None or waiting.capability not in offered:
                continue
            limit = min(room, self._room(place, pool, self.limit(pool)))
            if place.breaker.since is not None:
                limit = min(limit, int(place.breaker.admits(now)))
            if limit > 0:
                wants.append((requires, limit))
                room -= limit
            if room <= 0 or len(wants) >= most:
                break
        return wants

    def brought(self, requires: str, limit: int, claim: Claim) -> None:
        """What a claim of so many found there. If that was all, nobody waits any more, until somebody is seen."""
        place = self._waited_for.get(requires)
        if place is None:
            return
        if len(claim.runs) < limit and (claim.next_ready is None or claim.next_ready > claim.now):
            place.waited_for = False
            del self._waited_for[requires]
        elif place.breaker.since is None:  # also if it brought none: those that it saw may wait for their lane
            self._look_times.look_within(CLAIM_AGAIN)

    # for people

    def report(self, most: int, at_ms: Callable[[float], int]) -> list[DestinationLoad]:
        """Those in trouble first, then those that are called. `at_ms`: an instant of our clock on the database's. It is
        called once a second, and forgets breakers that are open for nobody."""
        self._forget_idle()
        ill = [place for place in self._places.values() if place.matters]
        ill.sort(key=lambda place: (place.breaker.since is None, not place.waited_for, -place.breaker.failures))
        now = self._clock.monotonic()
        lately = now - TOLD_FOR
        busy = [
            place
            for place in self._places.values()
            if (place.open_calls or place.last_at >= lately) and not place.matters
        ]
        busy.sort(key=lambda place: (-place.open_calls, -place.last_at))
        return [
            DestinationLoad(
                requires=place.requires,
                breaker=place.breaker.state,
                in_flight=place.open_calls,
                failures=place.breaker.failures,
                since=None if place.breaker.since is None else at_ms(place.breaker.since),
                next_probe=None if place.breaker.next_probe is None else at_ms(place.breaker.next_probe),
                per_second=place.told_rate(now),
                calls=len(place.durations),
                p50=_percentile(place.durations, 0.5),
                p99=_percentile(place.durations, 0.99),
            )
            for place in [*ill, *busy][:most]
        ]

    # memory

    def _find(self, run: ClaimedRun, named: _Named) -> CallPlace:
        requires = waits_for(run.spec.requirement(), named[1], run.tenant)
        place = self._places.get(requires) or self._known(requires, run.tenant)
        self._found[named], place.named = place, named
        return place

    def _known(self, requires: str, tenant: int) -> CallPlace:
        """Anybody can name any number of destinations: those of which nothing need be known are forgotten, and of the
        others those that were met first."""
        if len(self._places) >= DESTINATIONS_KNOWN:
            self._forget_some()
        place = self._places[requires] = CallPlace(requires, tenant)
        return place

    def _forget_idle(self) -> None:
        now = self._clock.monotonic()
        for place in self._places.values():
            if place.breaker.since is not None and place.breaker.is_idle(now) and not place.waited_for:
                place.breaker.succeeded(now)
                self._tell("destination.closed", place)

    def _forget_some(self) -> None:
        for _ in range(8):
            requires = next(iter(self._places))
            place = self._places.pop(requires)
            if place.open_calls or (place.matters and len(self._places) < DESTINATIONS_MOST):
                self._places[requires] = place
            else:
                self._waited_for.pop(requires, None)
                if place.named is not None:
                    del self._found[place.named]
