"""One worker process, seen from the node: it is started, sent calls, and killed.

The kernel is the judge of what has begun. Calls wait in a socket that keeps messages apart; the worker takes one out
when it has answered the one before, and the node, which holds the receiving end too, can take back the others at any
instant. A message goes to one of the two, so no call is ever run twice or lost, and when a worker dies at most one call
is neither answered nor still in the socket: the one it was running.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import IO, Protocol

from onthedot.targets.function.pending_call import PendingCall, WorkerDied
from onthedot.targets.function.protocol import Answers, CallResult, Nonsense
from onthedot.targets.function.worker_process import MESSAGE_LIMIT
from onthedot.targets.function.worker_start import StartedWorker, start_worker
from onthedot.targets.process.output import OutputListener
from onthedot.targets.process.spawning import signal_group, signal_name

__all__ = ["WorkerProcess"]

_INLINE = min(16 * 1024, MESSAGE_LIMIT - 32)  # longer calls travel as a file
_PORTION = 64 * 1024
_FD_ROOM = socket.CMSG_SPACE(4)
_HANG_UP = 1.0  # seconds between the end of a process's voice and its own


class WorkerOwner(Protocol):
    """Whom a worker tells."""

    def ended(self, asked: PendingCall, how: CallResult | Exception) -> None: ...

    def changed(self, worker: WorkerProcess) -> None:
        """Answers came, or the worker has ended."""
        ...


class WorkerProcess:
    """A process in its own session, so that it and all it starts can be killed as one group."""

    def __init__(self, started: StartedWorker, pool: WorkerOwner) -> None:
        self._process, self._calls, self._theirs, self._answers_link = started
        self.pid = self._process.pid
        self.asked: dict[int, PendingCall] = {}  # sent, not answered; the first is the one that runs, or will next
        self.debt = 0.0  # seconds that these are expected to take
        self.done = 0
        self.dead = False
        self.killed = False  # by us; it will be dead in a moment
        self.retiring = False  # no more calls
        self.full = False  # the socket takes no more until something is answered
        self.in_long_call = False  # with a call that takes its time, and nothing behind it
        self.seen: PendingCall | None = None  # first in line when somebody last looked
        self.returned: list[PendingCall] = []  # of a dead one: what it had not begun
        self._pool = pool
        self._numbers = itertools.count(1)
        self._answers = Answers()
        self._carried: list[int] = []  # file descriptors that came with answers
        self._output = -1
        self._listener: OutputListener | None = None
        self._fault: str | None = None  # why we ended it
        self._silent = False
        self._loop = asyncio.get_running_loop()
        self._hello: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._answers_link, self._readable)
        self._watch = self._loop.create_task(self._until_it_ends())

    @classmethod
    async def start(cls, import_paths: Sequence[str], pool: WorkerOwner) -> WorkerProcess:
        """Returns when it has said that it is there. OSError if it can't be started."""
        worker = cls(start_worker(import_paths), pool)
        try:
            await worker._hello
        except BaseException:
            worker.kill()
            await worker.gone()
            raise
        return worker

    # calls

    def send(self, asked: PendingCall) -> bool:
        """False: it takes no more for now."""
        number = next(self._numbers)
        message = b"%d\0%b" % (number, asked.message)
        try:
            if len(message) <= _INLINE:
                self._calls.send(message)
            else:
                with _file(message) as file:
                    socket.send_fds(self._calls, [b"%d\0" % number], [file.fileno()])
        except BlockingIOError:
            self.full = True
            return False
        self.asked[number] = asked
        self.debt += asked.expected
        asked.worker = self
        return True

    def take_back(self) -> list[PendingCall]:
        """Every call that has not begun, in the order in which they were sent. They are no more this worker's."""
        taken = []
        while True:
            try:
                number, _, _ = self._theirs.recv(64, socket.MSG_DONTWAIT).partition(b"\0")
            except BlockingIOError:
                break
            if not number:
                break  # closed
            asked = self.asked.pop(int(number))
            self.debt -= asked.expected
            asked.worker = None
            taken.append(asked)
        return taken

    def note_long_call(self) -> list[PendingCall]:
        """The call that runs takes its time: nothing waits behind it, and what it prints is heard as it comes.

        Only now: as long as calls follow each other the node can't tell whose bytes are in the pipe, the worker can.
        """
        taken = self.take_back()
        self.read()
        for asked in self.asked.values():  # one, or it has just been answered
            self.in_long_call = True
            asked.has_begun(time.monotonic())
            self._listener = OutputListener(self._output, asked.call.log)
            self._listener.start()
        return taken

    # answers

    def _readable(self) -> None:
        self.read()
        self._pool.changed(self)

    def read(self) -> None:
        """Take every answer that is there."""
        while not self._silent:
            try:
                portion, carried, _, _ = self._answers_link.recvmsg(_PORTION, _FD_ROOM)
            except BlockingIOError:
                return
            except OSError:
                portion, carried = b"", []
            self._carried += [
                int.from_bytes(data[:4], sys.byteorder) for _, kind, data in carried if kind == socket.SCM_RIGHTS
            ]
            try:
                for answer in self._answers.feed(portion):
                    self._take(answer)
            except Nonsense:
                self._break_off("it sent an invalid response")
                return
            if not portion:
                self._hung_up()
                return
            if len(portion) < _PORTION and not carried:
                return  # that was all: asking again would cost a system call

    def _take(self, answer: CallResult) -> None:
        asked = self.asked.pop(answer.number, None)
        if asked is not None:
            self.done += 1
            self.debt = self.debt - asked.expected if self.asked else 0.0
            self.full = False
            asked.has_begun(answer.begun)
            self._hear(asked, answer.output)
            self._pool.ended(asked, answer)
        self.in_long_call = False
        if answer.replace:
            self.retiring = True
        if answer.new_output:
            if not self._carried:
                raise Nonsense
            self._close_output()
            self._output = self._carried.pop(0)
        if not self._hello.done():
            self._hello.set_result(None)

    def _hear(self, asked: PendingCall, output: bytes) -> None:
        if self._listener is None and output:
            self._listener = OutputListener(self._output, asked.call.log)
        if self._listener is not None:
            self._listener.take(output)
            self._stop_listening()

    # the end

    def kill(self) -> None:
        """End it and whatever it started, at once."""
        self.retiring = self.killed = True
        if self._process.returncode is None:
            signal_group(self.pid, signal.SIGKILL)
        self._last_words()

    async def gone(self) -> None:
        """Until the killed process has been reaped."""
        await asyncio.wait([self._watch])

    def _hung_up(self) -> None:
        """It is about to end, or user code has closed our socket, which is the end as well."""
        self._stop_reading()
        self._loop.call_later(_HANG_UP, self._break_off, "it closed its connection")

    def _break_off(self, fault: str) -> None:
        self._stop_reading()
        if self._process.returncode is None:
            self._fault = f"the worker process failed: {fault}"
            signal_group(self.pid, signal.SIGKILL)

    def _stop_reading(self) -> None:
        self.retiring = True
        if not self._silent:
            self._silent = True
            self._loop.remove_reader(self._answers_link)

    async def _until_it_ends(self) -> None:
        # Not only the socket: a child that it forked may keep that open.
        code = await self._process.wait()
        self.returned = self.take_back()
        self.read()
        self._stop_reading()
        self.dead = self.killed = True
        self._last_words()
        why = self._fault or _how_it_ended(code)
        for asked in self.asked.values():
            self._pool.ended(asked, WorkerDied(why))
        self.asked.clear()
        self._close_output()
        for fd in self._carried:
            os.close(fd)
        for end in (self._calls, self._theirs, self._answers_link):
            end.close()
        if not self._hello.done():
            self._hello.set_exception(OSError(why))
        self._pool.changed(self)

    def _last_words(self) -> None:
        """Of the call that ran; unless nobody listens any more."""
        for asked in self.asked.values():
            if not asked.answered:
                asked.has_begun(time.monotonic())
                listener = self._listener or OutputListener(self._output, asked.call.log)
                listener.drain()
                self._listener = listener
            break
        self._stop_listening()

    def _stop_listening(self) -> None:
        if self._listener is not None:
            self._listener.stop()
            self._listener = None

    def _close_output(self) -> None:
        self._stop_listening()
        if self._output >= 0:
            os.close(self._output)
            self._output = -1


def _file(message: bytes) -> IO[bytes]:
    file: IO[bytes]
    if sys.platform == "linux":
        file = os.fdopen(os.memfd_create("onthedot-call"), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(message)
    file.flush()
    return file


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"the worker process ended with exit code {code} during the call"
    name = signal_name(-code)
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"the worker process was killed by {name}{hint}"
