"""The Recorder: batches results into `finish`: take one, take all that wait, write, repeat.

Alone a result is written at once; one that others follow closely waits for them (see `batch_window`), and under
load batches grow by themselves. While the database is away it keeps its batch and tries for ever; its mailbox fills,
Monitors wait, slots stay taken, less is claimed, other nodes take the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from operator import attrgetter

import msgspec

from onthedot.clock import Clock
from onthedot.engine.look_times import LookTimes
from onthedot.engine.mailbox import Mailbox, Signal
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.health import StoreHealth
from onthedot.engine.messages import Detach, Fence, RecorderMessage, Return
from onthedot.engine.ports import RecordStore
from onthedot.engine.recording.batch_window import BatchWindow
from onthedot.engine.recording.owned_runs import OwnedRuns
from onthedot.engine.recording.run_events import report
from onthedot.engine.recording.run_traces import trace
from onthedot.engine.tuning import BATCH, CLOSE_ONE_OFFS_AFTER, CLOSE_ONE_OFFS_PORTION, WRITE_GAP, WRITE_NOW
from onthedot.errors import StoreUnavailable
from onthedot.model.run import Outcome
from onthedot.plan import RetryLater
from onthedot.plan.outcome import AT_FIRST_TRY
from onthedot.store import Finished, FinishReport, TurnedAway
from onthedot.targets.contract import Handle
from onthedot.telemetry import emit, telemetry

__all__ = ["Recorder", "without_details"]


class Recorder:
    def __init__(
        self,
        node_id: str,
        *,
        mailbox: Mailbox[RecorderMessage],
        store: RecordStore,
        clock: Clock,
        owned: OwnedRuns,
        unrecorded: dict[Fence, Handle],
        health: StoreHealth,
        backoff: Backoff,
        batch_window: BatchWindow,
        look_times: LookTimes,
        notes: Signal,
        waits: Callable[[str], None] = lambda requires: None,
    ) -> None:
        """`notes` is set when the end of a run is to cause something elsewhere. `waits` is told what runs require that
        have been put there to wait for a destination."""
        self.mailbox = mailbox
        self._node_id = node_id
        self._store = store
        self._clock = clock
        self._owned = owned
        self._unrecorded = unrecorded
        self._health = health
        self._backoff = backoff
        self._batch_window = batch_window
        self._look_times = look_times
        self._notes = notes
        self._waits = waits
        self._finished: list[Finished] = []
        self._returned: list[Fence] = []
        self._detached: list[Fence] = []
        self._turned_away: list[TurnedAway] = []
        self._written = Signal()
        self._wrote_at = -WRITE_GAP
        self._unclosed = False  # one-off jobs have ended, and their rows do not say so

    @property
    def idle(self) -> bool:
        return not (self.mailbox or self._finished or self._returned or self._detached or self._turned_away)

    async def step(self) -> None:
        if self._unclosed and not self.mailbox and not await self._comes_within(CLOSE_ONE_OFFS_AFTER):
            await self._close_one_offs()
        first = await self.mailbox.take()
        self._sort([first])
        if not self.mailbox and (seconds := self._batch_window.seconds(first)):
            await self._wait_for_others(seconds)
        wait = self._wrote_at + WRITE_GAP - self._clock.monotonic()
        if wait > 0 and len(self.mailbox) < WRITE_NOW:
            await self._clock.sleep(wait)
        self._sort(self.mailbox.take_all(BATCH - 1))
        self._wrote_at = self._clock.monotonic()
        while not await self.write():
            await self._clock.sleep(self._backoff.delay())
        self._written.set()

    async def _wait_for_others(self, seconds: float) -> None:
        try:
            async with self._clock.timeout(seconds):
                await self.mailbox.until(self._batch_window.enough)
        except TimeoutError:
            pass

    async def _comes_within(self, seconds: float) -> bool:
        try:
            async with self._clock.timeout(seconds):
                await self.mailbox.until(lambda item: True)
        except TimeoutError:
            return False
        return True

    async def _close_one_offs(self) -> None:
        try:
            while not self.mailbox and self._unclosed:
                self._unclosed = await self._store.close_one_offs(CLOSE_ONE_OFFS_PORTION) >= CLOSE_ONE_OFFS_PORTION
        except StoreUnavailable as error:  # the duty does it
            self._unclosed = False
            self._health.failed(error)

    async def rest(self) -> None:
        """Until everything that was reported is written."""
        while not self.idle:
            await self._written.wait()

    async def write(self) -> bool:
        """One attempt to write what is in hand. Nothing is decided anew: the same batch, until the store has it."""
        try:
            if self._finished:
                await self._finish()
            if self._detached:  # before the others: what goes on is not to be given back
                fences = [(run_id, token, None) for run_id, token in self._detached]
                for run_id in await self._store.detach(self._node_id, fences):
                    emit("run.detached", run_id=run_id)
                for run_id, token in self._detached:
                    self._owned.release(run_id, token)
                self._detached = []
            if self._returned:
                await self._store.give_back(self._node_id, self._returned)
                for run_id, token in self._returned:
                    self._owned.release(run_id, token)
                self._returned = []
                await self._store.notify("due")  # another node may have the slot that it did not find here
            if self._turned_away:
                await self._store.wait_for_destinations(self._node_id, self._turned_away)
                for run in self._turned_away:
                    self._owned.release(run.run_id, run.token)
                for requires in {run.requires for run in self._turned_away}:
                    self._waits(requires)
                self._turned_away = []
        except StoreUnavailable as error:
            self._health.failed(error)
            return False
        self._health.worked()
        self._backoff.reset()
        return True

    async def _finish(self) -> None:
        while self._finished:
            batch, later = _one_of_each(self._finished)
            try:
                answer = await self._store.finish(self._node_id, batch)
            except StoreUnavailable:
                raise
            except Exception:
                await self._finish_singly()
            else:
                self._recorded(batch, answer)
                self._finished = later
                await self._say_called(answer)

    async def _finish_singly(self) -> None:
        """A result that the store can't take must not take the others with it: it alone is written without its details.
        If even that fails, the store is at fault and the node stops."""
        while self._finished:
            item = self._finished[0]
            try:
                answer = await self._store.finish(self._node_id, [item])
            except StoreUnavailable:
                raise
            except Exception as error:
                item = without_details(item, error)
                answer = await self._store.finish(self._node_id, [item])
            self._recorded([item], answer)
            del self._finished[0]
            await self._say_called(answer)

    async def _say_called(self, answer: FinishReport) -> None:
        """Runs that waited for their group can be claimed now: by this node, which has just become free, or another."""
        if answer.called:
            self._look_times.ask()
            await self._store.notify("due")

    def collect(self) -> None:
        """Take what waits without waiting: the last look before a stop."""
        self._sort(self.mailbox.take_all())

    def _sort(self, batch: Sequence[RecorderMessage]) -> None:
        for item in batch:
            if isinstance(item, Finished):  # nearly always
                self._finished.append(item)
            elif isinstance(item, Return):
                self._returned.append((item.run_id, item.token))
            elif isinstance(item, Detach):
                self._detached.append((item.run_id, item.token))
            else:
                self._turned_away.append(item)

    def _recorded(self, finished: Sequence[Finished], answer: FinishReport) -> None:
        refused, every, tracers = set(answer.refused), telemetry.heard, telemetry.tracers
        if answer.noted:
            self._notes.set()
        self._unclosed = self._unclosed or not all(item.run.recurring for item in finished)
        for item in finished:
            self._owned.release(item.run.id, item.run.token)
            if self._unrecorded:
                self._tell_recorded(item, refused)
            if tracers and item.run.id not in refused:
                trace(item, tracers)
            if item.decision is AT_FIRST_TRY and not every:
                continue  # nearly always
            if isinstance(item.decision, RetryLater):
                self._look_times.retry_at(item.decision.ready_at)
            if item.run.id not in refused:  # of those the store has spoken
                report(item)

    def _tell_recorded(self, item: Finished, refused: set[str]) -> None:
        """Who keeps something outside until then. What was refused is another node's, and what it left outside too."""
        handle = self._unrecorded.pop((item.run.id, item.run.token), None)
        if handle is None or item.run.id in refused:
            return
        try:
            handle.recorded()
        except Exception as error:  # of a kind, and not the end of the node
            said = {"message": "could not clean up after a run", "exception": error}
            asyncio.get_running_loop().call_exception_handler(said)


_run_id = attrgetter("run.id")


def _one_of_each(finished: list[Finished]) -> tuple[list[Finished], list[Finished]]:
    """The first result of each run, and the others. A callback may end a try before the answer to its call has come:
    the run is claimed anew, perhaps here, and then both attempts have a result. The store knows them by their run."""
    if len(set(map(_run_id, finished))) == len(finished):  # nearly always
        return finished, []
    first: dict[str, Finished] = {}
    for item in finished:
        first.setdefault(item.run.id, item)
    return list(first.values()), [item for item in finished if first[item.run.id] is not item]


def without_details(item: Finished, error: Exception) -> Finished:
    outcome = Outcome(
        kind=item.outcome.kind,
        retryable=item.outcome.retryable,
        parks=item.outcome.parks,
        error=f"the details could not be stored ({type(error).__name__})",
    )
    return msgspec.structs.replace(item, outcome=outcome, log=None)
