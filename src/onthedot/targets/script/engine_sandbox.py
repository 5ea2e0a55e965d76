"""The sandbox where neither bubblewrap nor Landlock works: a locked-down container for each script.

The container of a try has its name, `script-<run id>-<try>`, so that what a node left behind that was killed is found:
whoever runs the try next replaces it, and the sweep of any node removes it when the try is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress

from onthedot.targets.container_engine.deadline import end_overdue
from onthedot.targets.container_engine.engine import (
    ContainerEngine,
    EngineRefused,
    FoundContainer,
    ImageMissing,
    NameTaken,
)
from onthedot.targets.container_engine.http_client import EngineAway
from onthedot.targets.container_engine.labels import FOR_SCRIPT, INSTALLATION, KIND
from onthedot.targets.container_engine.link import EngineLink
from onthedot.targets.script.engine_creation import CODE, EngineChoice, code_archive, engine_creation
from onthedot.targets.script.engine_output import EngineOutput
from onthedot.targets.script.limits import Hits
from onthedot.targets.script.sandbox import Launch, Sandbox, SandboxAway, SandboxFailed, SandboxRun

__all__ = ["EngineSandbox"]

CREATIONS = 5
LOOK_EVERY = 30.0
"""Waiting for the end is asked anew after so many seconds: a connection may be dead without a word."""
PAUSE = 0.3
REST_WITHIN = 10.0
"""Seconds for the rest of the output after the end."""
GONE_WITHIN = 10.0
"""Seconds in which an engine that answers has removed a container; else the sweep does that."""
SETTLES = 10.0
"""Seconds between the end of the output and that of the container, at most."""
_PREFIX = "script-"
_CUT = "the container engine went away while the script ran"
_BY_SIGNAL = 128


class EngineSandbox(Sandbox):
    def __init__(self, choice: EngineChoice) -> None:
        self._choice = choice
        self._engine = ContainerEngine(choice.engine)
        self._link = EngineLink(self._engine, None)

    @property
    def description(self) -> str:
        about = self._link.about
        engine = "a container engine that does not answer" if about is None else about.title
        return f"containers of {self._choice.image} ({engine} at {self._engine.address}), seccomp and cgroups"

    @property
    def is_there(self) -> bool:
        return self._link.about is not None

    def of_node(self) -> EngineSandbox:
        return EngineSandbox(self._choice)

    async def open(self) -> None:
        await self._link.open()

    async def close(self) -> None:
        await self._link.close()

    async def start(self, launch: Launch, stdout: int, stderr: int) -> SandboxRun:
        name = f"{_PREFIX}{launch.name}" if launch.name else ""
        container = name
        try:
            container = await self._create(name, launch)
            run = _EngineRun(self._engine, self._link, container, stdout, stderr)
            try:
                await run.begin(launch)
            except BaseException:
                await run.clean_up()
                raise
        except EngineAway as away:
            self._link.lost(away)
            raise SandboxAway(str(away)) from None
        except EngineRefused as refused:
            raise SandboxFailed(f"the container engine refused it: {refused}") from None
        except asyncio.CancelledError:
            if container:
                await _surely(self._discard(container))
            raise
        return run

    async def _create(self, name: str, launch: Launch) -> str:
        """Whose container has the name already lost the run to us, or never had it."""
        if self._link.about is None and not await self._link.look():
            raise SandboxAway(self._link.why)
        assert self._link.about is not None
        body = engine_creation(launch, self._choice, self._link.about)
        for _ in range(CREATIONS):
            try:
                return await self._engine.create(name, body)
            except ImageMissing:
                image = self._choice.image
                raise SandboxFailed(f"the container engine does not have the image {image}: pull it first") from None
            except NameTaken:
                found = await self._engine.inspect(name)
                if found is not None and found.label(INSTALLATION) != launch.labels.get(INSTALLATION):
                    raise SandboxFailed(f"the container {name} is not of this installation") from None
                await self._engine.remove(name)
        raise SandboxFailed(f"another program keeps creating the container {name}")

    async def _discard(self, container: str) -> None:
        with suppress(EngineAway, EngineRefused):
            await self._engine.remove(container)

    async def left_behind(self, installation: str) -> Sequence[str]:
        if self._link.about is None:
            return ()
        found = await self._engine.labelled(f"{INSTALLATION}={installation}")
        return [
            each.name.removeprefix(_PREFIX)
            for each in found
            if each.labels.get(KIND) == FOR_SCRIPT and each.name.startswith(_PREFIX)
        ]

    async def remove(self, name: str) -> None:
        await self._engine.remove(f"{_PREFIX}{name}")

    async def end_overdue(self) -> Sequence[str]:
        return () if self._link.about is None else await end_overdue(self._engine)


class _EngineRun(SandboxRun):
    def __init__(self, engine: ContainerEngine, link: EngineLink, container: str, stdout: int, stderr: int) -> None:
        self._engine, self._link, self._container = engine, link, container
        self._output = EngineOutput(engine, container, stdout, stderr)
        self._over: FoundContainer | None = None
        self._is_cut = False  # something that it printed may have been missed
        self._asking: set[asyncio.Task[None]] = set()

    async def begin(self, launch: Launch) -> None:
        await self._engine.put_files(self._container, CODE, code_archive(launch))
        await self._output.attach()
        try:
            await self._engine.start(self._container)
        except EngineAway as away:  # it may run now, so this try is over
            self._link.lost(away)
            raise SandboxFailed("the container engine went away while it started the script") from None
        with suppress(EngineAway, EngineRefused):  # a script may end before it has read anything
            await self._engine.feed(self._container, launch.stdin)

    async def wait(self) -> int:
        while self._over is None:
            try:
                found = await self._engine.inspect(self._container)
                if found is None:
                    raise SandboxFailed("its container was removed by somebody else")
                if found.is_over:
                    self._over = found
                elif self._is_cut:
                    raise SandboxFailed(_CUT)
                else:
                    await self._wait_for_end()
            except EngineAway as away:
                self._link.lost(away)
                await asyncio.sleep(PAUSE)
                self._is_cut = self._is_cut or self._output.is_over
            except EngineRefused:  # as engines do while they start or stop
                await asyncio.sleep(PAUSE)
        if self._is_cut or not await self._output.read_to_its_end(REST_WITHIN):
            raise SandboxFailed(_CUT)
        code = self._over.state.exit_code
        return _BY_SIGNAL - code if code > _BY_SIGNAL else code

    async def _wait_for_end(self) -> None:
        """The first process, an init, keeps the output open. So when that ends, the container has ended, or the output
        was cut, and what is printed from then on would be missed."""
        waiting = asyncio.ensure_future(self._engine.wait(self._container, LOOK_EVERY))
        reading = asyncio.ensure_future(self._output.read_to_its_end(LOOK_EVERY))
        try:
            await asyncio.wait({waiting, reading}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done() and self._output.is_over:
                await asyncio.wait({waiting}, timeout=SETTLES)
                self._is_cut = not waiting.done()
            if waiting.done():
                waiting.result()
        finally:
            for task in (waiting, reading):
                task.cancel()
            await asyncio.gather(waiting, reading, return_exceptions=True)

    def terminate(self) -> None:
        self._ask(self._engine.kill(self._container, "SIGTERM"))

    def kill(self) -> None:
        self._ask(self._engine.kill(self._container))

    def _ask(self, asked: Awaitable[None]) -> None:
        """Killing what has ended is no error, and one that can't be reached is removed later."""

        async def ask() -> None:
            with suppress(EngineAway, EngineRefused):
                await asked

        task = asyncio.create_task(ask())
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def clean_up(self) -> Hits:
        await _surely(self._clean_up())
        return Hits(memory=self._over is not None and self._over.state.oom_killed)

    async def _clean_up(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(GONE_WITHIN):
                await self._remove()
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        await self._output.close()

    async def _remove(self) -> None:
        while True:
            try:
                await self._engine.remove(self._container)
            except EngineAway as away:
                self._link.lost(away)
            except EngineRefused:
                pass  # it is just being removed
            else:
                if await self._engine.inspect(self._container) is None:
                    return
            await asyncio.sleep(PAUSE)


async def _surely(asked: Awaitable[None]) -> None:
    """Done, also for who is cancelled meanwhile, and waits no longer."""
    task = asyncio.ensure_future(asked)
    _going.add(task)
    task.add_done_callback(_going.discard)
    await asyncio.shield(task)


_going: set[asyncio.Future[None]] = set()  # a loop does not hold on to its tasks
