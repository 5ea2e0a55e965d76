"""A node process under a supervisor: `python -m onthedot.launcher.worker`, configured through stdin."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from onthedot.errors import OnTheDotError
from onthedot.model.decoding import dec_hook, enc_hook
from onthedot.settings import Settings
from onthedot.telemetry.plain import plain

if TYPE_CHECKING:
    from onthedot.launcher.serving import Stopping

__all__ = ["decode_order", "encode_order", "main"]


class _Order(msgspec.Struct, frozen=True):
    settings: Settings
    listener: int  # the inherited descriptor; -1: none


def encode_order(settings: Settings, listener: int) -> bytes:
    return msgspec.json.encode(_Order(settings, listener), enc_hook=_encode) + b"\n"


def decode_order(line: bytes) -> tuple[Settings, int]:
    order = msgspec.json.decode(line, type=_Order, dec_hook=_decode)
    return order.settings, order.listener


def _encode(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else enc_hook(value)


def _decode(kind: type, value: Any) -> Any:
    return Path(value) if issubclass(kind, Path) else dec_hook(kind, value)


async def _work(line: bytes) -> None:
    from onthedot.launcher.launch import jobs_file_of
    from onthedot.launcher.serving import Stopping, serve

    settings, descriptor = decode_order(line)
    listener = socket.socket(fileno=descriptor) if descriptor >= 0 else None
    if listener is not None:
        listener.set_inheritable(False)  # inherited through exec; child processes must not inherit it
    stopping = Stopping()
    orphaned = asyncio.create_task(_orphaned(stopping), name="worker.orphaned")
    try:
        await serve(settings, jobs_file_of(settings), listener=listener, stopping=stopping, quiet=True)
    finally:
        orphaned.cancel()


async def _orphaned(stopping: Stopping) -> None:
    """The pipe closes when the supervisor ends, for whatever reason."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    stopping.ask()


def main() -> None:
    from onthedot.launcher.launch import fast_loop

    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as pipe:  # the rest of it belongs to the loop
        line = pipe.readline()
    try:
        with asyncio.Runner(loop_factory=fast_loop()) as runner:
            runner.run(_work(line))
    except OnTheDotError as error:
        sys.stderr.write(f"Error: {plain(str(error))}\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
