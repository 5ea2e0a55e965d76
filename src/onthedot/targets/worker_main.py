"""The inside of a worker process: import what is asked for, call it, say how it went. Standard library only.

Started as `python -P worker_main.py <fd>`; the fd is a socket to the node. A request is 4 bytes of length, which carry
the write end of this call's output pipe, then JSON; the answer is 4 bytes of length, then JSON. What the function
prints goes to the pipe on file descriptors 1 and 2, so that C code and child processes are heard too, and nothing that
is printed can be taken for an answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import importlib
import inspect
import json
import logging
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, TextIO

RESULT_LIMIT = 64 * 1024
ERROR_LIMIT = 2000
_PR_SET_PDEATHSIG = 1


class Wrong(Exception):
    """It can't work with this function and these params, however often it is tried."""


def main(fd: int) -> None:
    node = socket.socket(fileno=fd)
    node.set_inheritable(False)  # what the function starts has no business here
    _die_with(node)
    me = os.getpid()
    streams: tuple[TextIO, TextIO] | None = None
    while (request := _receive(node)) is not None:
        streams = streams or _open_streams()
        answer = _answer(request, *streams)
        if os.getpid() != me:
            os._exit(0)  # the function forked and its child came back here
        _send(node, answer)


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


def _open_streams() -> tuple[TextIO, TextIO]:
    """When 1 and 2 are pipes for the first time: line by line, so that each line is heard when it is printed."""
    out, err = (os.fdopen(fd, "w", 1, "utf-8", "backslashreplace", closefd=False) for fd in (1, 2))
    logging.basicConfig(level=logging.INFO, stream=err, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    return out, err


def _receive(node: socket.socket) -> dict[str, Any] | None:
    """The next request, with its pipe already on 1 and 2; None: the node has gone."""
    header, pipes, _, _ = socket.recv_fds(node, 4, 1)
    header += _exactly(node, 4 - len(header)) if header else b""
    if len(header) < 4 or not pipes:
        return None
    os.dup2(pipes[0], 1)
    os.dup2(pipes[0], 2)
    os.close(pipes[0])
    raw = _exactly(node, int.from_bytes(header, "big"))
    return json.loads(raw) if raw else None


def _exactly(node: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = node.recv(min(size - len(parts), 1 << 20))
        if not part:
            return b""
        parts += part
    return parts


def _send(node: socket.socket, answer: dict[str, Any]) -> None:
    raw = json.dumps(answer).encode()
    node.sendall(len(raw).to_bytes(4, "big") + raw)


def _answer(request: dict[str, Any], out: TextIO, err: TextIO) -> dict[str, Any]:
    sys.stdout, sys.stderr = out, err
    for name in [name for name in os.environ if name.startswith("ONTHEDOT_")]:
        del os.environ[name]  # of the call before
    os.environ.update(request["environment"])
    try:
        return {"ok": True, **_kept(_call(request))}
    except Wrong as error:
        return _failure(str(error), retryable=False)
    except SystemExit as error:
        return _failure(f"the function called sys.exit({error.code!r})")
    except BaseException as error:
        _print_traceback(error)
        return _failure(_one_line(error))
    finally:
        _flush(out, err)


def _failure(error: str, *, retryable: bool = True) -> dict[str, Any]:
    return {"ok": False, "error": error[:ERROR_LIMIT].encode("utf-8", "replace").decode(), "retryable": retryable}


def _call(request: dict[str, Any]) -> Any:
    function = find(request["module"], request["name"])
    params = request["params"]
    try:
        inspect.signature(function).bind(**params)
    except TypeError as error:
        raise Wrong(f"the params do not fit {request['name']}{inspect.signature(function)}: {error}") from None
    except ValueError:
        pass  # a function without a readable signature: the call will tell
    result = function(**params)
    return asyncio.run(_wait_for(result)) if inspect.isawaitable(result) else result


async def _wait_for(result: Any) -> Any:
    return await result


def find(module_name: str, name: str) -> Callable[..., Any]:
    """The function of that name. Only what the module defines or exports, never what it happened to import:
    registering a module must not register `subprocess.run`."""
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name + ".").startswith(error.name + "."):
            raise Wrong(f"there is no module {error.name!r} on the import path") from None
        raise
    function: Any = getattr(module, name, None)
    if function is None:
        raise Wrong(f"there is no function {name!r} in the module {module_name!r}")
    if not callable(function) or inspect.isclass(function):
        raise Wrong(f"{name!r} in the module {module_name!r} is not a function")
    defined_here = getattr(function, "__module__", None) == module.__name__
    if not defined_here and name not in getattr(module, "__all__", ()):
        raise Wrong(f"{name!r} is not defined in the module {module_name!r}: it was imported there")
    found: Callable[..., Any] = function
    return found


def _kept(result: Any) -> dict[str, Any]:
    """The return value as JSON if it can be and is not too long, as a shortened repr otherwise."""
    if result is None:
        return {}
    try:
        raw = json.dumps(result, allow_nan=False, ensure_ascii=False).encode()
        if len(raw) <= RESULT_LIMIT and b"\\u0000" not in raw:
            return {"result": json.loads(raw)}
    except (TypeError, ValueError, RecursionError):
        pass
    try:
        shown = repr(result)
    except Exception as error:
        shown = f"<{type(result).__name__} whose repr fails: {_one_line(error)}>"
    cut = shown[:RESULT_LIMIT] + ("…" if len(shown) > RESULT_LIMIT else "")
    return {"result": cut.replace("\x00", "\\x00").encode("utf-8", "replace").decode()}


def _one_line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip().replace("\x00", "\\x00")


def _print_traceback(error: BaseException) -> None:
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next  # the user's own frames are what helps the user
    with contextlib.suppress(Exception):
        traceback.print_exception(type(error), error, frames or error.__traceback__)


def _flush(*streams: TextIO) -> None:
    for stream in (*streams, sys.stdout, sys.stderr):  # the last two may be whatever the function put there
        with contextlib.suppress(Exception):
            stream.flush()
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)  # what C code printed


if __name__ == "__main__":
    sys.path[:0] = json.loads(sys.argv[2])
    main(int(sys.argv[1]))
