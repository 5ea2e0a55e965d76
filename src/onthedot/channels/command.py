"""A channel that starts a command of the operator, which reads the message as JSON from its standard input."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import PurePath

from onthedot.channels.channel import NotDelivered
from onthedot.channels.message import AlertMessage, message_json

__all__ = ["CommandChannel"]

WITHIN = 30.0
"""Seconds until a command that does not end is killed."""
SHOWN = 300


class CommandChannel:
    kind = "command"

    def __init__(self, argv: tuple[str, ...]) -> None:
        self._argv = argv
        self.place = PurePath(argv[0]).name

    async def send(self, message: AlertMessage) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise NotDelivered(f"{self.place} can't be started: {error.strerror}") from None
        try:
            async with asyncio.timeout(WITHIN):
                assert process.stdin is not None
                assert process.stderr is not None
                _, errors, _ = await asyncio.gather(
                    _hand_over(process.stdin, message_json(message)), process.stderr.read(), process.wait()
                )
        except TimeoutError:
            raise NotDelivered(f"{self.place} did not end within {WITHIN:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            said = errors.decode("utf-8", "replace").strip()[-SHOWN:]
            raise NotDelivered(
                f"{self.place} ended with exit code {process.returncode}" + (f": {said}" if said else "")
            )


async def _hand_over(stdin: asyncio.StreamWriter, text: bytes) -> None:
    """A command need not read it: whether the message was delivered is said by its exit code alone. (Under uvloop
    `communicate` fails if the command has ended before anything was written.)"""
    with contextlib.suppress(RuntimeError, OSError):
        stdin.write(text)
        await stdin.drain()
    with contextlib.suppress(RuntimeError, OSError):
        stdin.close()
