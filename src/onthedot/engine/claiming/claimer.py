"""What the Dispatcher asks of the store: claims, and which rows carry this node's name.

One question at a time, until its answer was handled: only then is it known how much room there is, and a row which a
claim has just taken is never mistaken for one whose answer was lost. Nobody waits for it: the answer comes into the
Dispatcher's mailbox, so that a slow database can't delay a run that is already here.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from onthedot.clock import Clock
from onthedot.engine.claiming.claim_policy import ClaimPolicy
from onthedot.engine.look_times import LookTimes
from onthedot.engine.mailbox import Mailbox
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.db_clock import DatabaseClock
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.messages import Answer, Claimed, DispatcherMessage, Missed, OwnRows, RecorderMessage
from onthedot.engine.ports import ClaimStore
from onthedot.engine.recording.owned_runs import OwnedRuns
from onthedot.engine.running.destinations import Destinations
from onthedot.engine.running.slot_pool import SlotPool
from onthedot.engine.running.worker_shares import WorkerShares
from onthedot.engine.tuning import DESTINATIONS_ASKED, RECONCILE_EVERY
from onthedot.engine.waiting import at_most
from onthedot.errors import StoreUnavailable
from onthedot.model.level import LEVEL
from onthedot.plan import on_time_share
from onthedot.store import Adopted, Claim, Want

__all__ = ["Claimer"]


class Claimer:
    def __init__(
        self,
        node_id: str,
        *,
        mailbox: Mailbox[DispatcherMessage],
        store: ClaimStore,
        policy: ClaimPolicy,
        clock: Clock,
        time: DatabaseClock,
        owned: OwnedRuns,
        look_times: LookTimes,
        lookahead_ms: int,
        rng: random.Random,
        health: StoreHealth,
        backoff: Backoff,
        crashed: Callable[[BaseException], None],
        destinations: Destinations,
        shares: WorkerShares,
        results: Mailbox[RecorderMessage],
        surviving: frozenset[str] = frozenset(),
    ) -> None:
        """The answers go to `mailbox`; `results` are what is not written yet: a store that gives runs and records none
        must not fill the memory with runs that go back. `crashed` hears of what nobody expected. `surviving`: pools of
        kinds whose work goes on without its node."""
        self._node_id = node_id
        self._mailbox = mailbox
        self._store = store
        self._policy = policy
        self._clock = clock
        self._time = time
        self._owned = owned
        self._look_times = look_times
        self._lookahead_ms = lookahead_ms
        self._rng = rng
        self._health = health
        self._backoff = backoff
        self._crashed = crashed
        self._destinations = destinations
        self._shares = shares
        self._results = results
        self._surviving = surviving
        self.draining = False  # nothing is claimed any more; what is here runs to its end
        self._closed = False
        self._turn = False
        self._question: asyncio.Task[None] | None = None
        self._reconcile_at = clock.monotonic() + RECONCILE_EVERY

    def look(self, capabilities: Sequence[str]) -> None:
        """It is time to look, for every pool."""
        self._policy.look(capabilities)

    def ask_next(self) -> None:
        """If there is reason for a question, and none is under way."""
        now = self._clock.monotonic()
        if self._closed or self._question is not None or now < self._look_times.no_claim_before:
            return
        if now >= self._reconcile_at:
            self._reconcile_at = now + RECONCILE_EVERY
            self._ask(self.rows)
        elif not self.draining and not self._results.overflowing and (pools := self._policy.pools()):
            self._ask(partial(self.claim, pools))

    def answered(self, answer: Answer) -> None:
        """It has been handled; the next question may be asked."""
        self._question = None
        if isinstance(answer, Missed):
            self._missed(answer.error)
        else:
            self._health.worked()
            self._backoff.reset()

    def brought(self, pool: str, limit: int, claim: Claim) -> None:
        """One pool's part of the answer has been handled, or one destination's: when is the next worth it?"""
        if "@" in pool:
            self._destinations.brought(pool, limit, claim)
            self._shares.brought(pool, limit, claim)
            return
        self._look_times.after_claim(pool, self._policy.claimed(pool, limit, claim))

    async def close(self, within: float) -> None:
        """No more questions. One under way is waited for; if it gets no answer for so many seconds, what it brings is
        left to whoever finds us gone."""
        self._closed = True
        question = self._question
        if question is not None:
            await at_most(self._clock, within, asyncio.wait([question]))
            question.cancel()

    def _ask(self, question: Callable[[], Awaitable[Answer]]) -> None:
        async def ask() -> None:
            try:
                answer = await question()
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                self._crashed(error)
            else:
                self._mailbox.put_over(answer)  # at most one

        self._question = asyncio.get_running_loop().create_task(ask())

    def _missed(self, error: Exception) -> None:
        """Back off; then compare rows first: the database may have given us runs that we never heard of."""
        self._health.failed(error)
        delay = self._backoff.delay()
        self._reconcile_at = self._clock.monotonic() + delay
        self._look_times.pause(delay)

    async def claim(self, pools: Sequence[SlotPool]) -> Claimed | Missed:
        """For each kind that has room: functions must not wait for webhooks, nor take their room."""
        pools = [pool for pool in pools if pool.room]  # it was so a moment ago
        if not pools:
            return Claimed([])
        adopted = list[Adopted]()
        try:
            if self._look_times.adoptable:
                await self._adopt(pools, adopted)
            taken = Counter(found.run.spec.target.type for found in adopted)
            pools = [pool for pool in pools if pool.room > taken[pool.name]]
            if not pools:
                return Claimed([], adopted)
            named = [each for pool in pools for each in self._wants(pool, taken[pool.name])]
            names, wants = [name for name, _ in named], [want for _, want in named]
            sent = self._clock.monotonic()
            claims = await self._store.claim_each(
                self._node_id, wants, level=LEVEL, lookahead_ms=self._lookahead_ms, within_ms=self._soon()
            )
        except StoreUnavailable as error:
            return Missed([], error, adopted)
        self._time.observe(claims[0].now, sent, self._clock.monotonic())
        for claim in claims:
            self._owned.add_all(claim.runs)  # ours from here on, before anything else can look
        brought = [(name, want.limit, claim) for name, want, claim in zip(names, wants, claims, strict=False)]
        if len(claims) < len(wants):
            return Missed(brought, StoreUnavailable("the store became unavailable during a claim"), adopted)
        return Claimed(brought, adopted)

    def _wants(self, pool: SlotPool, taken: int) -> list[tuple[str, Want]]:
        """What waits for destinations or shares comes first, it is older, but gets no more than half of the room:
        others wait too. Of one alone it gets every other."""
        limit = pool.room - taken
        late = pool.backlog.room(on_time_share(limit), pool.most)
        wants = list[tuple[str, Want]]()
        waits = (
            self._destinations
            if pool.name in self._destinations.pools
            else self._shares
            if pool.name in self._shares.pools
            else None
        )
        if waits is not None:
            self._turn = not self._turn
            half = limit // 2 or (limit if self._turn else 0)
            for requires, most in waits.wanted(pool, pool.capabilities, half, DESTINATIONS_ASKED):
                share = min(late, on_time_share(most))
                wants.append((requires, Want(offers=[requires], limit=most, late=share)))
                limit, late = limit - most, late - share
        if limit > 0:
            wants.append((pool.name, Want(offers=list(pool.capabilities), limit=limit, late=late)))
        return wants

    async def _adopt(self, pools: Sequence[SlotPool], adopted: list[Adopted]) -> None:
        """Work that goes on and that nobody has comes before anything new."""
        self._look_times.adoptable = False
        for pool in pools:
            if pool.name in self._surviving:
                limit = pool.room
                found = await self._store.adopt(self._node_id, list(pool.capabilities), level=LEVEL, limit=limit)
                for each in found:
                    self._owned.add(each.run.id, each.run.token)
                adopted += found
                if len(found) >= limit:
                    self._look_times.adoptable = True

    def _soon(self) -> int:
        """How long before its instant a run that may be held ahead is claimed at the latest, with all that is ready by
        then: half of the lookahead or a little more. At random, so that nodes do not look together: the first one takes
        them all. (When each look took what was ready, and each run of a lane made all nodes look, five nodes
        claimed 334 runs a second in 215 claims, 105 of them for nothing.)"""
        return round(self._lookahead_ms * self._rng.uniform(0.5, 0.625))

    async def rows(self) -> OwnRows | Missed:
        before = self._owned.snapshot()
        try:
            return OwnRows(await self._store.held(self._node_id), before)
        except StoreUnavailable as error:
            return Missed([], error)
