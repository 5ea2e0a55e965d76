"""The inside of a worker process: import what is asked for, call it, say how it went. Standard library only.

Started as `python -P worker_process.py <calls fd> <answers fd> <import paths, one a line>`. It is one file because
it is started by its path: a second one of ours would have to stand on the import path of the functions.

Calls come on a socket that keeps messages apart, and each is taken out only when the one before has been answered: a
call that is still in the socket has not begun, and the node can take it back from there. A call is nine texts with NUL
between them: number, module, name, and what the environment says of the run (see `ENVIRONMENT`). One that is too long
for a message comes as an open file.

An answer is `HEAD`, then the error, the result as JSON and the output. What the function prints goes to a pipe on file
descriptors 1 and 2, so that C code and child processes are heard too, and nothing that is printed can be taken for an
answer. The pipe is emptied into the answer before the next call begins; while a call takes its time, the node reads
from it too. After a call that started processes there is a new pipe, whose reading end goes with the answer (the first
one with an answer to call 0): what outlives a call does not speak in the next.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib
import logging
import os
import resource
import select
import signal
import socket
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

HEAD = struct.Struct("=QddBIII")  # number, begun, ended (both monotonic), flags; lengths of error, result and output
OK, RETRYABLE, RESULT, NEW_OUTPUT, REPLACE, NOTE = 1, 2, 4, 8, 16, 32  # NOTE: why there is no result, instead of one
ENVIRONMENT = (
    b"ONTHEDOT_RUN_ID",
    b"ONTHEDOT_JOB_ID",
    b"ONTHEDOT_SCHEDULED_FOR",
    b"ONTHEDOT_ATTEMPT",
    b"ONTHEDOT_PARAMS",
    b"ONTHEDOT_JOB_KEY",
)
MESSAGE_LIMIT = 64 * 1024
RESULT_LIMIT = 64 * 1024
NOTE_LIMIT = 200
OUTPUT_LIMIT = 1024 * 1024  # as much as a pipe may hold: who keeps writing does not keep us
ERROR_LIMIT = 2000
LOOK_AT_MEMORY = 1000  # calls
GROWTH = 32 * 1024 * 1024
_PR_SET_PDEATHSIG = 1
_LOOK_FOR_CHILDREN = os.WEXITED | os.WNOHANG | os.WNOWAIT

Answer = tuple[int, str, bytes]
"""Flags, error, result."""


class BadCall(Exception):
    """It can't work with this function and these params, however often it is tried."""


def main(calls: socket.socket, answers: socket.socket) -> None:
    for link in (calls, answers):
        link.set_inheritable(False)  # what the function starts has no business here
    _die_with(calls)
    me, output, environment, memory, done = os.getpid(), PrintedOutput(), Environment(), Memory(), 0
    answers.sendmsg([HEAD.pack(0, 0.0, 0.0, NEW_OUTPUT, 0, 0, 0)], output.reading_end())
    room = socket.CMSG_SPACE(4)
    while raw := _message(*calls.recvmsg(MESSAGE_LIMIT, room)[:2]):
        number, module, name, *values = raw.split(b"\0", 8)
        output.attach()
        environment.set(values)
        begun = time.monotonic()
        flags, error, result = _answer(module, name, values[4])
        output.flush()
        if os.getpid() != me:
            os._exit(0)  # the function forked and its child came back here
        ended = time.monotonic()
        printed = output.take()
        carried = []
        if output.shared():
            output.renew()
            carried = output.reading_end()
            flags |= NEW_OUTPUT
        done += 1
        if done % LOOK_AT_MEMORY == 0 and memory.has_grown():
            flags |= REPLACE
        said = error.encode("utf-8", "replace")
        head = HEAD.pack(int(number), begun, ended, flags, len(said), len(result), len(printed))
        _send(answers, b"".join((head, said, result, printed)), carried)


def _message(raw: bytes, carried: list[tuple[int, int, bytes]]) -> bytes:
    """One call; empty: the node has gone."""
    for level, kind, data in carried:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            with open(int.from_bytes(data[:4], sys.byteorder), "rb") as file:  # noqa: PTH123 - it has no path
                file.seek(0)
                return file.read()
    return raw


def _send(answers: socket.socket, raw: bytes, carried: list[tuple[int, int, bytes]]) -> None:
    sent = answers.sendmsg([raw], carried) if carried else answers.send(raw)
    if sent < len(raw):
        answers.sendall(raw[sent:])


def _die_with(node: socket.socket) -> None:
    """A worker never outlives its node: Linux sends the signal, elsewhere the closed socket tells."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        poll = select.poll()
        poll.register(node.fileno(), 0)  # nothing but the hang-up
        poll.poll()
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, name="onthedot-watch", daemon=True).start()


class PrintedOutput:
    """The pipe on 1 and 2, and the streams that write to it."""

    def __init__(self) -> None:
        self._waiting = bytearray(4)
        self._flush_c = ctypes.CDLL(None).fflush
        # Not `os.waitid`: "there are none" is an exception there, and its making 1.6 of 2.2 µs.
        self._wait_c, self._waited = ctypes.CDLL(None).waitid, ctypes.create_string_buffer(256)
        self._read_end, self._write_end = self._pipe()
        self._children = self._reaped()
        self._connect()
        # Line by line, so that each line is heard when it is printed.
        self._out, self._err = (os.fdopen(fd, "w", 1, "utf-8", "backslashreplace", closefd=False) for fd in (1, 2))
        logging.basicConfig(
            level=logging.INFO, stream=self._err, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
        )

    @staticmethod
    def _pipe() -> tuple[int, int]:
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)  # for the node as well: it is the same end
        return read_end, write_end

    def _connect(self) -> None:
        os.dup2(self._write_end, 1)
        os.dup2(self._write_end, 2)

    def attach(self) -> None:
        """Whatever the call before did to the streams: these are the ones."""
        self._connect()
        sys.stdout, sys.stderr = self._out, self._err

    def reading_end(self) -> list[tuple[int, int, bytes]]:
        return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, self._read_end.to_bytes(4, sys.byteorder))]

    def flush(self) -> None:
        try:
            self._out.flush()
            self._err.flush()
            if sys.stdout is not self._out or sys.stderr is not self._err:  # whatever the function put there
                sys.stdout.flush()
                sys.stderr.flush()
        except Exception:  # closed, or the function's own idea of a stream
            for stream in (self._out, self._err, sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):
                    stream.flush()
        self._flush_c(None)  # what C code printed

    def take(self) -> bytes:
        """What was printed and the node has not read."""
        fcntl.ioctl(self._read_end, termios.FIONREAD, self._waiting)
        if not any(self._waiting):
            return b""
        portions, size = [], 0
        try:
            while size < OUTPUT_LIMIT and (portion := os.read(self._read_end, MESSAGE_LIMIT)):
                portions.append(portion)
                size += len(portion)
        except BlockingIOError:
            pass
        return b"".join(portions)

    def shared(self) -> bool:
        """Whether processes were started since we last looked: one that is there, or one that was waited for (its
        page faults count as ours then). Any of them may have left somebody behind who holds the pipe."""
        before, self._children = self._children, self._reaped()
        return before != self._children or self._wait_c(os.P_ALL, 0, self._waited, _LOOK_FOR_CHILDREN) == 0

    @staticmethod
    def _reaped() -> int:
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt

    def renew(self) -> None:
        for end in (self._read_end, self._write_end):
            os.close(end)
        self._read_end, self._write_end = self._pipe()


class Memory:
    """What user code leaks is given back to the system now and then: a worker that grows is replaced."""

    def __init__(self) -> None:
        self._first: int | None = None

    def has_grown(self) -> bool:
        now = self._resident()
        if now is None:
            return True  # it can't be told here: replaced as if it had
        if self._first is None:
            self._first = now
        return now - self._first > GROWTH

    @staticmethod
    def _resident() -> int | None:
        try:
            with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - pathlib takes longer to import than to need
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return None


class Variable:
    """One name of the environment, whose value changes with every call.

    `os.environ[…] = …` costs 2 µs and 80 bytes that the C library never gives back: at three a call this was a third
    of a short call, and 24 MB after 100,000 of them. So C's environment is given a buffer of ours, once, which is
    overwritten from then on; Python's copy is a dictionary.
    """

    ROOM = 256
    _put = ctypes.CDLL(None).putenv
    _kept: ClassVar[list[Any]] = []  # somebody may hold a pointer to any of them

    def __init__(self, name: bytes, python: dict[bytes, bytes]) -> None:
        self._name, self._python = name, python
        self._value: bytes | None = None
        self._buffer = ctypes.create_string_buffer(0)

    def set(self, value: bytes) -> None:
        """An empty one is not there at all."""
        ours = self._value is not None and self._python.get(self._name) is self._value  # nobody has set it since
        if ours and value == self._value:
            return
        if not value:
            if self._name in self._python:  # asked first: to delete what is not there costs 1 µs
                del os.environb[self._name]
            self._value = None
            return
        text = self._name + b"=" + value
        if len(text) >= len(self._buffer):
            self._buffer = ctypes.create_string_buffer(max(self.ROOM, 2 * len(text)))
            self._kept.append(self._buffer)
            ours = False
        self._buffer.value = text
        if not ours:
            self._put(self._buffer)
        self._python[self._name] = self._value = value


class Environment:
    """What a function can read of its run."""

    def __init__(self) -> None:
        python: dict[bytes, bytes] = vars(os.environ)["_data"]
        self._variables = [Variable(name, python) for name in ENVIRONMENT]

    def set(self, values: list[bytes]) -> None:
        for variable, value in zip(self._variables, values, strict=True):
            variable.set(value)


def _answer(module: bytes, name: bytes, params: bytes) -> Answer:
    try:
        result = _call(module, name, params)
        return (OK, "", b"") if result is None else _kept(result)
    except BadCall as error:
        return 0, str(error)[:ERROR_LIMIT], b""
    except SystemExit as error:
        return RETRYABLE, f"the function called sys.exit({error.code!r})"[:ERROR_LIMIT], b""
    except BaseException as error:
        _print_traceback(error)
        return RETRYABLE, _one_line(error)[:ERROR_LIMIT], b""


_found: dict[tuple[bytes, bytes], tuple[str, str, Callable[..., Any]]] = {}


def _call(raw_module: bytes, raw_name: bytes, params: bytes) -> Any:
    module, name, function = _found.get((raw_module, raw_name)) or (raw_module.decode(), raw_name.decode(), find)
    if getattr(sys.modules.get(module), name, None) is not function:  # new here, or replaced in its module
        function = find(module, name)
        _found[raw_module, raw_name] = module, name, function
    given = {} if params == b"{}" else _decode(params)
    if "trigger" in given:
        given = _without_trigger(function, given)
    try:
        result = function(**given)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # not from inside
            _check_fit(function, name, given)
        raise
    if result is not None and hasattr(type(result), "__await__"):
        return _wait_for(result)
    return result


def _decode(params: bytes) -> dict[str, Any]:
    import json

    decoded: dict[str, Any] = json.loads(params)
    return decoded


def _without_trigger(function: Callable[..., Any], params: dict[str, Any]) -> dict[str, Any]:
    """What a chain gives to its runs is for functions that ask for it."""
    import inspect

    try:
        asked = inspect.signature(function).parameters
    except ValueError:
        return params
    if "trigger" in asked or any(each.kind is each.VAR_KEYWORD for each in asked.values()):
        return params
    return {name: value for name, value in params.items() if name != "trigger"}


def _check_fit(function: Callable[..., Any], name: str, params: dict[str, Any]) -> None:
    import inspect  # only now: it takes longer to import than the rest together

    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # without a readable signature: the error tells
    try:
        signature.bind(**params)
    except TypeError as error:
        raise BadCall(f"the params do not match {name}{signature}: {error}") from None


def _wait_for(awaitable: Any) -> Any:
    """As `asyncio.run` would, on a loop that is kept as long as nothing is left on it: a new one costs 0.28 ms."""
    import asyncio  # only where it is needed: most of the start, and 10 MB

    global _runner
    if _runner is None:
        _runner = asyncio.Runner()
    loop = _runner.get_loop()

    async def wait() -> Any:
        return await awaitable

    clean = False
    try:
        result = loop.run_until_complete(wait())
        clean = not asyncio.all_tasks(loop)
    finally:
        if not clean:
            runner, _runner = _runner, None
            runner.close()
    return result


_runner: Any = None


def find(module_name: str, name: str) -> Callable[..., Any]:
    """The function of that name. Only what the module defines or exports, never what it happened to import:
    registering a module must not register `subprocess.run`."""
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name + ".").startswith(error.name + "."):
            raise BadCall(f"module {error.name!r} not found on the import path") from None
        raise
    function: Any = getattr(module, name, None)
    if function is None:
        raise BadCall(f"function {name!r} not found in module {module_name!r}")
    if not callable(function) or isinstance(function, type):
        raise BadCall(f"{name!r} in module {module_name!r} is not a function")
    defined_here = getattr(function, "__module__", None) == module.__name__
    if not defined_here and name not in getattr(module, "__all__", ()):
        raise BadCall(f"{name!r} is not defined in module {module_name!r}, only imported there")
    found: Callable[..., Any] = function
    return found


def _kept(result: Any) -> Answer:
    """The return value as JSON if it can be and is not too long, a note otherwise."""
    import json

    try:
        raw = json.dumps(result, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError):
        return OK | NOTE, "", _not_json(result).encode("utf-8", "replace")
    if len(raw) > RESULT_LIMIT:
        return OK | NOTE, "", b"not kept: %d bytes exceed the limit of %d" % (len(raw), RESULT_LIMIT)
    return (OK | NOTE, "", b"not kept: it contains a NUL character") if b"\\u0000" in raw else (OK | RESULT, "", raw)


def _not_json(result: Any) -> str:
    try:
        shown = repr(result).replace("\x00", "\\x00")
    except Exception as error:
        shown = f"its repr() failed: {_one_line(error)}"
    shown = shown if len(shown) <= NOTE_LIMIT else shown[:NOTE_LIMIT] + "…"
    return f"not kept: a value of type {type(result).__name__} is not JSON ({shown})"


def _one_line(error: BaseException) -> str:
    import traceback

    return "".join(traceback.format_exception_only(error)).strip().replace("\x00", "\\x00")


def _print_traceback(error: BaseException) -> None:
    import traceback

    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next  # the user's own frames are what helps the user
    with contextlib.suppress(Exception):  # the streams are the user's, and may be anything
        traceback.print_exception(type(error), error, frames or error.__traceback__)


if __name__ == "__main__":
    sys.path[:0] = [path for path in sys.argv[3].split("\n") if path]
    main(socket.socket(fileno=int(sys.argv[1])), socket.socket(fileno=int(sys.argv[2])))
