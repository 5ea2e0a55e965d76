"""What a container prints, followed as it comes.

Streams are cut: by a restart of the engine, after hours, when a log is rotated. So each line is asked for with its
time; the next stream begins at the last one seen, and what was there already is dropped. How the run ends never depends
on this: nobody waits for the end of a stream to learn that a container has ended.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import Callable

from onthedot.targets.container_engine.engine import ContainerEngine, EngineRefused
from onthedot.targets.container_engine.http_client import EngineAway
from onthedot.targets.container_engine.log_frames import frames
from onthedot.targets.process.last_line import LastLine
from onthedot.targets.process.log_stamps import Instant, stamped
from onthedot.targets.process.output import OUTPUT_LIMIT

__all__ = ["ContainerLog", "last_line", "stamped"]

TAILS, LONGEST_TAIL = (10, 100), 1000
"""Entries at the end of the output in which the result is looked for: more of them if its line does not begin there.
Docker cuts lines into entries of 16 KB, and a result has 64 KB at most; but blank lines may follow it, and whatever was
printed on the other stream."""
AGAIN_AFTER = 0.5
RESUMES_AFTER_END = 3


class ContainerLog:
    """`run()` is a task of its own. `over` is set by who knows that the container has ended."""

    def __init__(self, engine: ContainerEngine, name: str, log: Callable[[str], None]) -> None:
        self.over = asyncio.Event()
        self._engine, self._name, self._log = engine, name, log
        self._decoders = {stream: codecs.getincrementaldecoder("utf-8")("replace") for stream in (1, 2)}
        self._last: Instant | None = None
        self._at_last: set[tuple[int, bytes]] = set()
        self._left = OUTPUT_LIMIT

    async def run(self) -> None:
        resumes = 0
        while self._left > 0 and resumes < RESUMES_AFTER_END:
            whole = await self._follow()
            try:
                async with asyncio.timeout(AGAIN_AFTER):
                    await self.over.wait()
            except TimeoutError:
                continue
            if whole:
                return
            resumes += 1

    async def _follow(self) -> bool:
        """Whether the engine has ended the stream, and has not just gone away."""
        options = {"follow": "1", "stdout": "1", "stderr": "1", "timestamps": "1"}
        if self._last is not None:
            options["since"] = "{}.{:09}".format(*self._last)
        resumed = self._last
        try:
            async with self._engine.logs(self._name, **options) as response:
                async for stream, line in frames(response):
                    self._take(stream, line, resumed)
                    if self._left <= 0:
                        self._log("\n… output truncated: it exceeds the size limit\n")
                        return True
        except (EngineAway, EngineRefused):
            return False
        return True

    def _take(self, stream: int, line: bytes, resumed: Instant | None) -> None:
        at, text = stamped(line)
        if at is not None:
            if resumed is not None and (at < resumed or (at == resumed and (stream, text) in self._at_last)):
                return
            if at != self._last:
                self._last, self._at_last = at, set()
            self._at_last.add((stream, text))
        shown = self._decoders[stream].decode(text[: self._left])
        self._left -= len(text)
        if shown:
            self._log(shown)


async def last_line(engine: ContainerEngine, name: str) -> LastLine:
    """The last line on the standard output of a container that has ended. Asked for by itself: the stream may be cut,
    and is not read to the end of a long output."""
    for tail in TAILS:
        line, entries = await _last_line(engine, name, tail)
        if line.is_whole or entries < tail:
            return line
    return (await _last_line(engine, name, LONGEST_TAIL))[0]


async def _last_line(engine: ContainerEngine, name: str, tail: int) -> tuple[LastLine, int]:
    """And how many entries there were: engines count those of both streams."""
    line, entries = LastLine(lambda text: None), 0
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    async with engine.logs(name, stdout="1", stderr="1", tail=str(tail)) as response:
        async for stream, text in frames(response):
            entries += 1
            if stream == 1:
                line.write(decoder.decode(text))
    return line, entries
