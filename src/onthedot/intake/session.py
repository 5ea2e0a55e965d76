"""One connection of an intake: take messages, carry them out, settle them; send the refused ones away; keep and count.

Stored first, settled after. What was taken and is not settled when it ends comes again, and changes nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import suppress

from onthedot.brokers.reader import ReadFailed, Received, TopicReader
from onthedot.clock import Clock
from onthedot.intake.apply import CommandApplier, Judged
from onthedot.intake.commands import Command, read_all
from onthedot.intake.dead_letters import DeadLetterSender, RefusedMessage
from onthedot.service.aside import SMALL_BYTES, Aside
from onthedot.service.problems import describe_error
from onthedot.telemetry import emit

__all__ = ["BATCH", "IntakeSession"]

BATCH = 100
"""Messages that are taken together; of these, those that create jobs are one transaction."""
KEEP_EVERY = 5.0
ASKED_WITHIN = 5.0
LETTERS_WITHIN = 2.0


class IntakeSession:
    def __init__(
        self,
        name: str,
        reader: TopicReader,
        applier: CommandApplier,
        letters: DeadLetterSender,
        aside: Aside,
        clock: Clock,
    ) -> None:
        self._name, self._reader, self._applier, self._letters = name, reader, applier, letters
        self._aside, self._clock = aside, clock
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Take no more; what is being written is settled."""
        self._stopping.set()

    async def run(self, began: Callable[[], None]) -> None:
        """Until it is stopped, or ReadFailed. `began` is called when messages can be read."""
        tasks = [
            asyncio.create_task(self._read(began), name=f"intake.{self._name}.read"),
            asyncio.create_task(self._keep(), name=f"intake.{self._name}.keep"),
            asyncio.create_task(self._letters.run(), name=f"intake.{self._name}.dead-letters"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, began: Callable[[], None]) -> None:
        began()
        while not self._stopping.is_set():
            taken = await self._take()
            if taken:
                await self._work(taken)
        with suppress(TimeoutError):
            async with asyncio.timeout(LETTERS_WITHIN):
                await self._letters.all_sent()

    async def _take(self) -> list[Received]:
        """Nothing, as soon as it is to stop."""
        taking = asyncio.ensure_future(self._reader.take(BATCH))
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait([taking, stopping], return_when=asyncio.FIRST_COMPLETED)
            return taking.result() if taking.done() else []
        finally:
            stopping.cancel()
            if not taking.done():
                taking.cancel()
                await asyncio.gather(taking, return_exceptions=True)

    async def _work(self, taken: list[Received]) -> None:
        read = await self._decoded(taken)
        commands = [one for one in read if isinstance(one, Command)]
        answers = iter(await self._applier.apply(commands))
        judged = [next(answers) if isinstance(one, Command) else Judged("refused", one) for one in read]
        good = [message for message, found in zip(taken, judged, strict=True) if found.error is None]
        if good:
            await self._reader.settle(good)
        results = [found.result for found in judged]
        counts = {result: results.count(result) for result in ("ok", "repeated", "refused")}
        emit("intake.handled", intake=self._name, **counts)
        for message, one, found in zip(taken, read, judged, strict=True):
            if found.error is not None:
                await self._refuse(message, one, found.error)

    async def _decoded(self, taken: list[Received]) -> list[Command | Exception]:
        """Beside the loop if it is more than a little."""
        reading = read_all(self._name, taken)
        if sum(len(message.body) for message in taken) <= SMALL_BYTES:
            return list(reading)
        return await self._aside.collect(reading)

    async def _refuse(self, message: Received, one: Command | Exception, error: Exception) -> None:
        known_as = message.id or message.place or hashlib.sha256(message.body).hexdigest()
        if isinstance(one, Command):
            known_as = one.repeat.key
        problem = describe_error(error)
        emit("intake.refused", intake=self._name, message=known_as[:200], status=problem.status, error=problem.detail)
        await self._letters.put(RefusedMessage.of(message, problem, known_as, self._clock.now_ms()))

    async def _keep(self) -> None:
        while True:
            try:
                async with asyncio.timeout(ASKED_WITHIN):
                    await self._reader.keep()
                    lag = await self._reader.lag()
            except TimeoutError:
                raise ReadFailed(f"no response within {ASKED_WITHIN:g} s") from None
            if lag is not None:
                emit("intake.lag", intake=self._name, n=lag)
            await asyncio.sleep(KEEP_EVERY)
