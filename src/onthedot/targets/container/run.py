"""One try of a run: its container is found or created, started, followed, and stopped if that is wanted."""

from __future__ import annotations

import asyncio

from onthedot.clock import Clock
from onthedot.errors import SettingsError
from onthedot.model.run import Outcome
from onthedot.model.targets import ContainerTarget
from onthedot.settings import ContainerSetting
from onthedot.targets.container.creation import container_name, creation, is_ours
from onthedot.targets.container.following import STOP_WITHIN, Following
from onthedot.targets.container.log_stream import last_line
from onthedot.targets.container.verdict import outcome_of
from onthedot.targets.container_engine.access import registry_login
from onthedot.targets.container_engine.deadline import was_overdue
from onthedot.targets.container_engine.engine import (
    ContainerEngine,
    EngineRefused,
    FoundContainer,
    ImageMissing,
    NameTaken,
)
from onthedot.targets.container_engine.http_client import EngineAway
from onthedot.targets.container_engine.link import EngineElsewhere, EngineLink
from onthedot.targets.contract import NOT_BEGUN, Call, Ended
from onthedot.targets.process.last_line import LastLine

__all__ = ["ContainerRun"]

PULL_WITHIN = 15 * 60.0
RESULT_WITHIN = 60.0
OWNER_WITHIN, OWNER_PAUSE = 10.0, 0.05
CREATIONS = 5
"""How often the container of a try is looked for, replaced or created anew before the try is given up."""
_KILLS = ("cancelled", "timeout")
_UNKNOWN = "and nobody knows whether it ran"


class NotStarted(Exception):
    """It can't be started; the outcome says why."""

    def __init__(self, outcome: Outcome | Ended) -> None:
        self.outcome = outcome


class ContainerRun:
    def __init__(
        self,
        call: Call,
        target: ContainerTarget,
        setting: ContainerSetting,
        engine: ContainerEngine,
        link: EngineLink,
        installation: str,
        *,
        clock: Clock,
        refused: str | None = None,
    ) -> None:
        """`refused`: why no container may be created for it any more; one that is there goes on."""
        self._call, self._target, self._setting = call, target, setting
        self._engine, self._link, self._installation, self._clock = engine, link, installation, clock
        self._refused = refused
        self._name = container_name(call)
        self._place = link.place if call.place is None else call.place.partition("@")[2]
        self._following = Following(engine, link, self._place, self._name, call.log)
        self._stage = "looking for its container"
        self._began: float | None = None

    async def carry_out(self) -> Outcome | Ended:
        try:
            try:
                found = await self._found_or_started()
            except asyncio.CancelledError:
                if self._call.stopped in _KILLS:
                    await self._following.stop()
                raise
            return await self._follow(found)
        except NotStarted as why:
            return why.outcome
        except EngineRefused as refused:
            return Outcome(kind="error", retryable=True, error=f"the container engine failed: {refused}")
        except EngineAway as away:  # nothing was started: what was is followed until the engine is back
            self._link.lost(away)
            return NOT_BEGUN
        except asyncio.CancelledError:
            if self._call.stopped == "timeout" and self._began is None and not self._call.adopted:
                error = f"not started within {self._call.timeout:g} s: {self._stage}"
                return Outcome(kind="timeout", retryable=True, error=error)
            raise

    # the start

    async def _found_or_started(self) -> FoundContainer | None:
        """What another node has started, or None for what was started now."""
        call = self._call
        if call.try_number > 1 and not call.adopted:
            await self._engine.kill(f"{call.run_id}-{call.try_number - 1}")
        for _ in range(CREATIONS):
            found = await self._found()
            if found is not None and not is_ours(found, call, self._installation):
                raise NotStarted(_foreign(self._name))
            if found is not None and not found.is_new:
                return found
            if not call.may_create:
                what = "is gone" if found is None else "was created"
                raise NotStarted(Outcome(kind="unknown", error=f"its container {what}, {_UNKNOWN}"))
            if found is None and self._refused is not None:
                raise NotStarted(Outcome(kind="refused", error=self._refused))
            self._may_begin()
            if found is not None:
                await self._discard(found)
            elif (created := await self._create()) is not None and await self._start(created):
                return None
        error = f"not started: another program keeps creating and removing the container {self._name}"
        raise NotStarted(Outcome(kind="error", retryable=True, error=error))

    def _may_begin(self) -> None:
        if self._call.stopped is None and not self._call.may_begin():
            raise NotStarted(NOT_BEGUN)

    async def _discard(self, new: FoundContainer) -> None:
        """Whoever created it may have asked for its start, which an engine may carry out much later, or have forgotten
        although the process ran. So what somebody else created is never started: it goes, and with it such a request.
        One that runs after all stays, and is followed."""
        self._stage = "replacing the container that was created before"
        try:
            await self._engine.remove_idle(new.id)
        except EngineRefused:  # it was started just now, or somebody else removes it
            await asyncio.sleep(OWNER_PAUSE)

    async def _found(self) -> FoundContainer | None:
        if not self._call.adopted:
            return await self._engine.inspect(self._name)
        try:
            return await self._link.found_at(self._place, self._name)
        except EngineElsewhere:
            raise NotStarted(NOT_BEGUN) from None

    async def _create(self) -> str | None:
        """Its id, which nobody else knows; None: the name is taken, by us, if an answer was lost or another node had it
        before."""
        target = self._target
        image = str(target.image_name)
        body = creation(self._call, target, self._setting, self._installation, self._link.about)
        self._stage = "creating its container"
        if target.pull == "always":
            await self._pull(image)
        try:
            try:
                return await self._engine.create(self._name, body)
            except ImageMissing:
                if target.pull == "never":
                    error = f'image {image} is not on the container engine, and target.pull is "never"'
                    raise NotStarted(Outcome(kind="error", error=error)) from None
                await self._pull(image)
                return await self._engine.create(self._name, body)
        except NameTaken:
            await self._await_owner()
            return None
        except EngineRefused as refused:
            retryable = refused.status >= 500
            error = f"not started: the container engine refused it: {refused}"
            raise NotStarted(Outcome(kind="error", retryable=retryable, error=error)) from None

    async def _await_owner(self) -> None:
        """An engine takes a name before it shows the container that has it."""
        for _ in range(round(OWNER_WITHIN / OWNER_PAUSE)):
            if await self._engine.inspect(self._name) is not None:
                return
            await asyncio.sleep(OWNER_PAUSE)
        error = f"not started: the container engine says that the name {self._name} is in use, and shows no container"
        raise NotStarted(Outcome(kind="error", retryable=True, error=error))

    async def _pull(self, image: str) -> None:
        self._stage = f"pulling image {image}"
        self._call.log(f"pulling image {image}\n")
        try:
            async with asyncio.timeout(PULL_WITHIN):
                await self._engine.pull(image, registry_login(image, self._setting.registries))
        except TimeoutError:
            error = f"not started: pulling image {image} took longer than {PULL_WITHIN / 60:g} minutes"
            raise NotStarted(Outcome(kind="error", retryable=True, error=error)) from None
        except (EngineRefused, SettingsError) as refused:
            error = f"not started: image {image} can't be pulled: {refused}"
            raise NotStarted(Outcome(kind="error", retryable=True, error=error)) from None

    async def _start(self, created: str) -> bool:
        """From here on it may run: an answer that is lost does not say that it does not, nor does an engine that was
        restarted meanwhile and says that it is new: the process may run without it. So it is asked for once only, and
        by the id: who adopts the run in between replaces the container. False: somebody did."""
        self._may_begin()
        self._stage = "starting its container"
        self._begin(self._clock.monotonic())
        starting = asyncio.ensure_future(self._engine.start(created))
        try:
            await asyncio.shield(starting)
        except EngineRefused as refused:
            if refused.status == 404 and await self._engine.inspect(created) is None:
                await asyncio.sleep(OWNER_PAUSE)
                return False
            error = f"not started: {refused}"
            retryable = refused.status >= 500 and "executable file not found" not in error
            raise NotStarted(Outcome(kind="error", retryable=retryable, error=error)) from None
        except EngineAway as away:
            self._link.lost(away)
            self._following.cut = True
        finally:
            if not starting.done():  # what is stopped now must not be started after that
                if self._call.stopped in _KILLS:
                    await asyncio.wait({starting}, timeout=STOP_WITHIN / 2)
                starting.cancel()
                await asyncio.gather(starting, return_exceptions=True)
        return True

    # the rest

    async def _follow(self, found: FoundContainer | None) -> Outcome | Ended:
        """`found`: what another node has started, with its age."""
        if found is not None:
            self._begin(self._clock.monotonic() - found.started_ago)
        async with self._following.logged():
            try:
                over = await self._following.until_over()
            except asyncio.CancelledError:
                if self._call.stopped in _KILLS:
                    await self._following.stop()
                raise
        if over is None:
            error = "its container was removed by somebody else before its result was read"
            return Outcome(kind="error", retryable=True, error=error)
        if over.is_new:
            error = f"the container engine went away while it started the container, {_UNKNOWN}"
            return Outcome(kind="error", retryable=True, error=error)
        if was_overdue(over):
            error = f"timed out after {self._call.timeout or over.lasted:g} s: no node was there to end it in time"
            late = Outcome(kind="timeout", retryable=True, error=error)
            return Ended(late, self._began, self._clock.monotonic() - over.ended_ago)
        memory = self._target.memory_bytes or self._setting.memory
        printed = await self._printed() if over.state.exit_code == 0 else None
        outcome = outcome_of(over.state, memory, printed, cut=self._following.cut)
        return Ended(outcome, self._began, self._clock.monotonic() - over.ended_ago)

    async def _printed(self) -> LastLine | None:
        """None: the engine can't tell what it printed, which is no reason to run it again."""
        try:
            async with asyncio.timeout(RESULT_WITHIN):
                while True:
                    try:
                        return await last_line(self._engine, self._name)
                    except EngineAway as away:
                        self._link.lost(away)
                        await asyncio.sleep(1.0)
        except (TimeoutError, EngineRefused):
            return None

    def _begin(self, at: float) -> None:
        if self._began is None:
            self._began = at
            self._call.begun(at)


def _foreign(name: str) -> Outcome:
    error = (
        f"the container engine has a container {name} that is not of this installation: two installations may use one "
        "engine only with different databases of jobs; remove it, or use another engine"
    )
    return Outcome(kind="error", error=error)
