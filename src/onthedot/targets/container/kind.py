"""Containers: an image that the operator allows, created, started and followed by a container engine.

The container of a try is named `<run id>-<try>`, and what has this name is this try: it is created once, whoever asks,
and a node that adopts the run finds it by that. A node that stops lets go of it; only a time-out and a cancel stop it.
It stays for a while after its end, so that the name is taken for whoever comes late, and is removed by the sweep of the
node once its result is recorded. Exit code 0 is done, with the last line of its standard output as the result if it is
JSON; everything else is an error that is tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from onthedot.clock import Clock, SystemClock
from onthedot.errors import Invalid, NotAvailable
from onthedot.model.image import ImageName, ImageRule
from onthedot.model.run import Outcome
from onthedot.model.size import format_size
from onthedot.model.targets import ContainerTarget
from onthedot.settings import ContainerSetting
from onthedot.targets.container.diagnosis import diagnosis_of
from onthedot.targets.container.following import STOP_WITHIN
from onthedot.targets.container.run import ContainerRun
from onthedot.targets.container_engine.access import EngineAddress
from onthedot.targets.container_engine.deadline import end_overdue
from onthedot.targets.container_engine.engine import ContainerEngine
from onthedot.targets.container_engine.labels import INSTALLATION, KIND
from onthedot.targets.container_engine.link import EngineLink
from onthedot.targets.contract import Call, Ended, Profile, TargetDiagnosis
from onthedot.targets.coroutine import CoroutineKind
from onthedot.targets.setup import KindSetup

__all__ = ["Containers"]


class Containers(CoroutineKind):
    """The kind `container`."""

    spec = ContainerTarget

    def __init__(
        self,
        setting: ContainerSetting,
        *,
        executes: bool = True,
        capacity: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`executes`: whether this node runs containers, or only lets jobs be made."""
        self.profile = Profile(capacity=capacity, survives_node=True, stop_within=STOP_WITHIN + 2)
        self._setting = setting
        self._rules = [ImageRule.parse(pattern) for pattern in setting.images]
        self._executes = executes and bool(self._rules)
        self._clock = clock or SystemClock()
        self._engine = ContainerEngine(EngineAddress.of(setting))
        self._link = EngineLink(self._engine, setting.place)
        self._installation = "unknown"
        self._ended: dict[str, float] = {}  # when containers that are over ended, on the monotonic clock

    @classmethod
    def of(cls, setup: KindSetup) -> Containers:
        settings = setup.settings
        setting = settings.containers
        executes = "executor" in settings.roles
        return cls(setting, executes=executes, capacity=setting.concurrency or settings.function_processes)

    def belong_to(self, installation: str) -> None:
        self._installation = installation

    async def __aenter__(self) -> Self:
        if self._executes:
            await self._link.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._link.close()

    def capabilities(self) -> list[str]:
        """Nothing while the engine is away: others may have one that answers."""
        return [] if self._link.about is None else [self.tag, self.adopted_by(None)]

    def adopted_by(self, target: object) -> str:
        return f"{self.tag}@{self._link.place}"

    # whoever makes jobs

    def check(self, target: ContainerTarget, tenant: int = 1) -> None:
        if not self._rules:
            problem = "not available: the operator allows no image on this node"
            accepted = '[containers] images = ["registry.example/*"] in onthedot.toml'
            raise NotAvailable.one("target.type", problem, given=target.type, accepted=accepted)
        if not self._allows(target.image_name):
            accepted = ", ".join(self._setting.images)
            problem = f"{target.image_name} is not allowed by the operator"
            raise Invalid.one("target.image", problem, given=target.image, accepted=accepted)
        memory, setting = target.memory_bytes, self._setting
        if memory is not None and memory > setting.memory:
            accepted = f"at most {format_size(setting.memory)}, the limit that the operator set in [containers]"
            raise Invalid.one("target.memory", "too large", given=target.memory, accepted=accepted)
        if target.cpus is not None and target.cpus > setting.cpus:
            accepted = f"at most {setting.cpus:g}, the limit that the operator set in [containers]"
            raise Invalid.one("target.cpus", "too large", given=target.cpus, accepted=accepted)
        if target.network and setting.network is None:
            accepted = "false, unless the operator names a network in [containers]"
            raise Invalid.one(
                "target.network", "containers have no network on this node", given=True, accepted=accepted
            )

    def _allows(self, image: ImageName) -> bool:
        return any(rule.allows(image) for rule in self._rules)

    def problem(self, target: ContainerTarget, tenant: int = 1) -> str | None:
        return self.refusal(target, tenant)

    async def diagnose(self) -> Sequence[TargetDiagnosis]:
        return (await diagnosis_of(self._setting),) if self._executes else ()

    # runs

    async def send(self, call: Call) -> Outcome | Ended:
        assert isinstance(call.target, ContainerTarget)
        refused = self.problem(call.target)  # the operator may have changed what is allowed since the job was made
        if refused is not None and not call.adopted:
            return Outcome(kind="refused", error=refused)
        run = ContainerRun(
            call,
            call.target,
            self._setting,
            self._engine,
            self._link,
            self._installation,
            clock=self._clock,
            refused=refused,
        )
        return await run.carry_out()

    # what is left

    async def inventory(self) -> Sequence[str]:
        """Those that run or were never started, and those that ended so long ago that nobody can come late for them."""
        if self._link.about is None:
            return ()
        found = await self._engine.labelled(f"{INSTALLATION}={self._installation}")
        listed = {each.name: each for each in found if KIND not in each.labels}
        self._ended = {name: at for name, at in self._ended.items() if name in listed}
        return [name for name, each in listed.items() if each.is_going or await self._is_old(name)]

    async def end_overdue(self) -> Sequence[str]:
        return () if self._link.about is None else await end_overdue(self._engine)

    async def _is_old(self, name: str) -> bool:
        now = self._clock.monotonic()
        if name not in self._ended:
            found = await self._engine.inspect(name)
            if found is None or not found.is_over:
                return False
            self._ended[name] = now - found.ended_ago
        return now - self._ended[name] >= self._setting.keep / 1000

    async def remove(self, name: str) -> bool:
        """Not what has ended and was recorded only after it was listed: that is kept as long as any other."""
        found = await self._engine.inspect(name)
        if found is None or found.label(INSTALLATION) != self._installation:
            return False
        if found.is_over and found.ended_ago < self._setting.keep / 1000:
            return False
        await self._engine.remove(name)
        return True
