"""The pool of worker processes: started when needed, kept warm, never more than told.

A call goes to a worker that has nothing to do, or waits. Short calls are also sent ahead, behind others that are
expected to be short (`estimates`), so that neither side waits for the other between two calls. If one of them takes
longer after all, what is behind it is taken back within a few milliseconds and goes to whoever is free first.

One job never has all workers, however short its calls were: if they all hang now, one is left to the others. Beyond
that, who may have how many is decided before calls come here (`plan.worker_shares`).

While calls are short, more are welcome than can be sent ahead: what is expected to get through in a quarter of a second
waits here, so that the node claims many runs at a time. What waits for too long all the same is given up.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice

from onthedot.targets.contract import Cause, Stop
from onthedot.targets.exhaustion import Lacking, lack_of
from onthedot.targets.function.estimates import AHEAD, BRIEF, HANGS, PATIENCE, SHORT, DurationEstimates, Throughput
from onthedot.targets.function.pending_call import PendingCall, Refused, WorkerDied
from onthedot.targets.function.protocol import CallResult
from onthedot.targets.function.worker import WorkerProcess

__all__ = ["WorkerPool"]

CALLS_PER_WORKER = 100_000
_LOOK = 0.004  # seconds between two looks at calls that run; one that is first at two looks takes its time
_LET_BY = 64  # calls of one job that are passed over for the first of another
_PRESSURE = 8  # calls behind one worker for which another process is worth its start
_NO_WORKER = 0.1  # seconds in which no call ended, after which one that was sent too many is given up
_TOO_LONG = 0.5  # the same while calls do end: twice the time that it was expected to wait


class WorkerPool:
    def __init__(self, processes: int, import_paths: Sequence[str], *, calls: int = CALLS_PER_WORKER) -> None:
        self._processes, self._import_paths, self._calls = processes, tuple(import_paths), calls
        self._waiting: deque[PendingCall] = deque()
        self._ended: list[PendingCall] = []
        self._idle: list[WorkerProcess] = []
        self._all: deque[WorkerProcess] = deque()  # can still be sent something; the first is the next
        self._leaving: set[WorkerProcess] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._generation = 0
        self._next_look: asyncio.TimerHandle | None = None
        self._closed = False
        self._estimates = DurationEstimates()
        self._flow = Throughput()
        self._progress = 0.0  # when a call ended or a process was there, the last time
        self._ahead = 0  # reckoned once for many answers: it is asked for twice a call
        self._long = 0  # … and how many processes are in a long call
        self._kept_from: int | None = 0  # the job that has all workers but one; 0: none, None: it may have changed

    @property
    def pids(self) -> list[int]:
        return [worker.pid for worker in (*self._all, *self._leaving) if not worker.killed]

    @property
    def ahead(self) -> int:
        """How many calls more than there are processes are welcome now."""
        return self._ahead

    def is_brief(self, function: str) -> bool:
        """Of late, and unless one of its calls hangs now: that one tells nothing before it ends."""
        return self._estimates.expected(function) < BRIEF and not (self._long and self._hangs(function))

    def _hangs(self, function: str) -> bool:
        since = time.monotonic() - HANGS
        calls = (
            asked for worker in (*self._all, *self._leaving) if worker.in_long_call for asked in worker.asked.values()
        )
        return any(asked.function == function and (asked.began or since) < since for asked in calls)

    # calls

    def submit(self, asked: PendingCall) -> None:
        if self._closed:
            self.ended(asked, WorkerDied("the node is stopping"))
            return
        asked.expected = self._estimates.expected(asked.function)
        if self._must_wait(asked) or not self._begin(asked, asked.at):
            self._waiting.append(asked)
            self._start_more()

    def _must_wait(self, asked: PendingCall) -> bool:
        """Behind those that wait, unless these are of a job that is kept from the last worker."""
        if not self._waiting:
            return False
        return not self._idle or self._waiting[0].call.job_id == asked.call.job_id

    def refuse(self, asked: PendingCall, why: str) -> None:
        """For good, and without a worker."""
        self.ended(asked, Refused(why))

    def stop(self, asked: PendingCall, cause: Cause) -> Stop:
        """A worker that runs it is killed."""
        worker = asked.worker
        if asked.tell():
            return Stop.ENDED
        if worker is None:
            self._waiting.remove(asked)
            asked.withdraw()
            return Stop.NOT_BEGUN
        taken = worker.take_back()
        worker.read()
        begun = asked not in taken
        if not begun:
            asked.withdraw()
        elif not asked.tell() and cause != "recalled":
            self._kill(asked, worker, cause)
        self._again(taken)
        self.changed(worker)
        if not begun:
            return Stop.NOT_BEGUN
        return Stop.ENDED if asked.tell() else Stop.STOPPING

    def _kill(self, asked: PendingCall, worker: WorkerProcess, cause: Cause) -> None:
        asked.call.stopped = cause
        asked.has_begun(time.monotonic())
        self._let_go(worker)  # with its last words
        asked.answered = True

    def ended(self, asked: PendingCall, how: CallResult | Exception | None) -> None:
        """Told in a moment, and all that ended by then at once: who hears it may ask for the next thing. None: it was
        not begun."""
        if isinstance(how, CallResult):
            self._estimates.took(asked.function, how.ended - how.begun)
            self._flow.ended += 1
            self._progress = how.ended
        if not asked.answered:
            asked.answered, asked.result = True, how
            self._ended.append(asked)
            if len(self._ended) == 1:
                asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        ended, self._ended = self._ended, []
        for asked in ended:
            try:
                asked.tell()
            except Exception as error:  # of one caller, who must not cost the others their answer
                report = {"message": "could not process the result of a function call", "exception": error}
                asyncio.get_running_loop().call_exception_handler(report)

    def _begin(self, asked: PendingCall, now: float) -> bool:
        """Unless it may not begin any more. Whether it need not wait."""
        if asked.call.may_begin():
            return self._give(asked, now)
        self.ended(asked, None)
        return True

    def _give(self, asked: PendingCall, now: float) -> bool:
        """To a worker, if one has nothing to do or it may be sent ahead."""
        if self._next_look is None:
            self._look_later()
        if self._idle and not self._has_all_but_one(asked.call.job_id):
            self._kept_from = None
            sent = self._send(self._idle.pop(), asked)  # the warmest
            if asked.worker is not None:
                asked.has_begun(now)
            return sent
        if asked.expected >= SHORT:
            return False
        for _ in range(len(self._all)):
            worker = self._all[0]
            self._all.rotate(-1)
            if not worker.asked:  # it is kept for others
                continue
            if worker.debt <= PATIENCE and len(worker.asked) < AHEAD and not worker.full and not worker.in_long_call:
                if len(worker.asked) == _PRESSURE:
                    self._start_more(1)
                return self._send(worker, asked)
        return False

    def _has_all_but_one(self, job_id: int) -> bool:
        if len(self._idle) > 1 or self._processes < 2:
            return False
        if self._kept_from is None:
            self._kept_from = self._job_with_all_but_one()
        return self._kept_from == job_id

    def _job_with_all_but_one(self) -> int:
        """0: none has so many."""
        running: dict[int, int] = {}
        for worker in (*self._all, *self._leaving):
            if worker.asked and not worker.killed:
                job_id = next(iter(worker.asked.values())).call.job_id
                running[job_id] = running.get(job_id, 0) + 1
        return next((job_id for job_id, workers in running.items() if workers >= self._processes - 1), 0)

    def _send(self, worker: WorkerProcess, asked: PendingCall) -> bool:
        try:
            sent = worker.send(asked)
        except OSError as error:  # no file for what does not fit a message
            lack = lack_of(error)
            self.ended(asked, Lacking(lack) if lack else OSError(f"can't send the call to the worker process: {error}"))
            sent = True
        if not worker.asked:
            self._idle.append(worker)
        return sent

    def _again(self, taken: Iterable[PendingCall]) -> None:
        """What was taken back goes before what came later. It has not begun, whatever it seemed when it was sent."""
        again = [asked for asked in taken if not asked.answered]
        for asked in again:
            asked.began = None
        self._waiting.extendleft(reversed(again))

    def _dispatch(self) -> None:
        while self._closed and self._waiting:
            self.ended(self._waiting.popleft(), WorkerDied("the node is stopping"))
        while self._waiting:
            asked = self._waiting[0]
            asked.expected = self._estimates.expected(asked.function)
            if not self._begin(asked, time.monotonic()):
                self._let_by(asked.call.job_id)
                break
            self._waiting.popleft()
        self._start_more()

    def _let_by(self, job_id: int) -> None:
        """The last worker is not for this job: it is for the first call of another."""
        if not self._idle:
            return
        for asked in islice(self._waiting, _LET_BY):
            if asked.call.job_id != job_id:
                asked.expected = self._estimates.expected(asked.function)
                if self._begin(asked, time.monotonic()):
                    self._waiting.remove(asked)
                return

    def changed(self, worker: WorkerProcess) -> None:
        self._kept_from = None
        self._reckon()
        if worker.dead:
            self._leaving.discard(worker)
            self._forget(worker)
            self._again(worker.returned)
        elif worker.retiring or worker.done + len(worker.asked) >= self._calls:
            if worker not in self._leaving:
                self._retire(worker)
            elif not worker.asked:
                worker.kill()
        elif not worker.asked and worker in self._all and worker not in self._idle:
            self._idle.append(worker)
        self._dispatch()

    def _reckon(self) -> None:
        """Processes that are stuck in a long call take nothing, however short the calls before were."""
        self._long = sum(worker.in_long_call for worker in self._all)
        behind = self._estimates.ahead * (self._processes - self._long)
        self._ahead = max(behind, self._flow.soon) if behind else 0

    # looking

    def _look(self) -> None:
        """At every call that runs. One that was first in line the last time too takes its time: see
        `note_long_call`."""
        self._next_look = None
        again = False
        for worker in [*self._all, *self._leaving]:
            first = next(iter(worker.asked.values()), None)
            if first is None or worker.in_long_call or worker.dead:
                continue
            if worker.seen is first:
                self._again(worker.note_long_call())
                self.changed(worker)
            else:
                worker.seen = first
            again = again or not worker.in_long_call
        self._flow.look(asyncio.get_running_loop().time(), busy=bool(self._waiting))
        if (self._give_up() or again) and self._next_look is None:
            self._look_later()

    def _look_later(self) -> None:
        self._next_look = asyncio.get_running_loop().call_later(_LOOK, self._look)

    def _give_up(self) -> bool:
        """More was sent here than there are processes, because calls were short, and now they are not: somebody else
        may have a free one. Whether there will be something to give up later."""
        if self._starting or not self._waiting:
            return bool(self._waiting)
        now = asyncio.get_running_loop().time()
        last = now - (_TOO_LONG if now - self._progress < _NO_WORKER else _NO_WORKER)
        if self._waiting[0].since > last:  # they wait in the order in which they came
            return True
        while self._waiting and self._waiting[0].since <= last:
            self.ended(self._waiting.popleft(), None)
        return bool(self._waiting)

    # processes

    def _start_more(self, wanted: int = 0) -> None:
        """As many as there are calls that wait."""
        if len(self._all) >= self._processes:
            return
        wanted = max(wanted, min(len(self._waiting), self._processes)) - len(self._starting)
        busy = sum(1 for worker in self._leaving if not worker.killed)
        room = self._processes - len(self._all) - len(self._starting) - busy
        for _ in range(min(wanted, room)):
            task = asyncio.get_running_loop().create_task(self._start())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)

    async def _start(self) -> None:
        generation = self._generation
        try:
            worker = await WorkerProcess.start(self._import_paths, self)
        except (OSError, RuntimeError, MemoryError) as error:
            if self._waiting and not self._all:
                lack = lack_of(error, starting=True)
                why = Lacking(lack) if lack else OSError(f"can't start a worker process: {error}")
                self.ended(self._waiting.popleft(), why)
        else:
            self._progress = asyncio.get_running_loop().time()
            self._all.append(worker)
            if self._closed or generation != self._generation:
                self._let_go(worker)
            else:
                self._idle.append(worker)
        task = asyncio.current_task()
        assert task is not None
        self._starting.discard(task)
        self._dispatch()

    def _forget(self, worker: WorkerProcess) -> None:
        self._kept_from = None
        if worker in self._all:
            self._all.remove(worker)
        if worker in self._idle:
            self._idle.remove(worker)

    def _retire(self, worker: WorkerProcess) -> None:
        """It answers what it has begun, and nothing more."""
        self._forget(worker)
        self._leaving.add(worker)
        worker.retiring = True
        self._again(worker.take_back())
        worker.read()
        if not worker.asked:
            worker.kill()

    def _let_go(self, worker: WorkerProcess) -> None:
        self._forget(worker)
        self._leaving.add(worker)
        worker.kill()

    async def refresh(self) -> None:
        """Replace every worker: idle ones now, busy ones when they are done."""
        self._generation += 1
        idle = list(self._idle)
        for worker in list(self._all):
            self._retire(worker)
        await asyncio.gather(*(worker.gone() for worker in idle))
        self._dispatch()

    async def close(self) -> None:
        self._closed = True
        if self._next_look is not None:
            self._next_look.cancel()
        self._dispatch()
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        for worker in list(self._all):
            self._let_go(worker)
        await asyncio.gather(*(worker.gone() for worker in list(self._leaving)))
