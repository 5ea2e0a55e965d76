"""The registry: what this node can do, kind by kind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.targets import Target
from onthedot.settings import Settings
from onthedot.targets.contract import Call, Cause, Done, Ended, Handle, Kind, Stop, TargetDiagnosis
from onthedot.targets.setup import FileGrants
from onthedot.telemetry import emit

if TYPE_CHECKING:
    from onthedot.targets.webhook.own_ports import OwnPort

__all__ = ["Targets"]


class Targets:
    """Every kind of target of one node. `async with targets:` around the engine.

    `plugins` are other people's kinds: one that fails is left out, and the others go on. `broken` says by name why a
    plug-in can't be used.
    """

    def __init__(
        self, kinds: Iterable[Kind] = (), plugins: Iterable[Kind] = (), broken: Mapping[str, str] | None = None
    ) -> None:
        self._plugins = {kind.tag: kind for kind in plugins}
        self._kinds: dict[type, Kind] = {kind.spec: kind for kind in (*kinds, *self._plugins.values())}
        self._by_name: dict[str, Kind] = {kind.tag: kind for kind in self._kinds.values()}
        self.broken: dict[str, str] = {}
        for name, why in (broken or {}).items():
            self._breaks(name, why)
        self._missing = _Missing()
        self._open = AsyncExitStack()

    # for the engine

    def kind_of(self, target: Target) -> Kind:
        """Always one: what is not here refuses its calls."""
        return self._kinds.get(type(target), self._missing)

    def capabilities(self) -> list[str]:
        found = []
        for name, kind in self._by_name.items():
            try:
                found += kind.capabilities()
            except Exception as error:
                if name not in self._plugins:
                    raise
                self._breaks(name, f"{type(error).__name__}: {error}")
        return found

    def capacities(self, concurrency: int) -> dict[str, int]:
        """By kind, how many calls there may be at once."""
        found = {}
        for name, kind in self._by_name.items():
            wanted = concurrency if kind.profile.capacity is None else kind.profile.capacity
            found[name] = wanted if kind.profile.at_most is None else min(wanted, kind.profile.at_most)
        return found

    def ahead(self, name: str) -> int:
        """How many calls more than its capacity a kind takes at this moment."""
        kind = self._by_name.get(name)
        return 0 if kind is None else kind.ahead()

    @property
    def in_process(self) -> frozenset[str]:
        return frozenset(name for name, kind in self._by_name.items() if kind.profile.in_process)

    @property
    def having_destinations(self) -> frozenset[str]:
        return frozenset(name for name, kind in self._by_name.items() if kind.profile.has_destinations)

    @property
    def sharing_workers(self) -> frozenset[str]:
        """Kinds of whose workers each job and each tenant has a share."""
        return frozenset(name for name, kind in self._by_name.items() if kind.profile.shares_workers)

    def waiting_capabilities(self) -> list[str]:
        """With which runs of this node may have to wait for a destination."""
        kinds = [kind for kind in self._by_name.values() if kind.profile.has_destinations]
        return [capability for kind in kinds for capability in kind.capabilities()]

    def destination(self, target: Target) -> str | None:
        """Who is called by runs of it; None: nobody in particular, or that can't be told here."""
        try:
            return self.kind_of(target).destination(target)
        except Exception:
            return None

    @property
    def surviving(self) -> frozenset[str]:
        """Kinds whose work goes on without its node."""
        return frozenset(kind.tag for kind in self.surviving_kinds())

    def surviving_kinds(self) -> list[Kind]:
        return [kind for kind in self._kinds.values() if kind.profile.survives_node]

    def swept_kinds(self) -> list[Kind]:
        """Kinds of which something may be left outside."""
        profiles = [(kind, kind.profile) for kind in self._kinds.values()]
        return [kind for kind, profile in profiles if profile.survives_node or profile.leaves_behind]

    # for whoever makes jobs, and for the operator

    def check(self, target: Target, tenant: int = 1) -> None:
        """Refuse at creation what can be known to be impossible: what is wrong anywhere, then what is wrong here."""
        if problems := list(target.problems()):
            raise Invalid(problems)
        kind = self._kinds.get(type(target))
        if kind is None:
            problem = "this type of target is not supported on this node"
            if target.type in self.broken:
                problem += ": its plug-in can't be used; `onthedot doctor` shows the reason"
            raise Invalid.one("target.type", problem, given=target.type, accepted=", ".join(self._by_name))
        kind.check(target, tenant)

    def problem(self, target: Target, tenant: int = 1) -> str | None:
        """Why runs of it would fail here; see `Kind.problem`."""
        try:
            return self.kind_of(target).problem(target, tenant)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    async def diagnose(self) -> list[TargetDiagnosis]:
        """What each kind finds when it tries what it needs."""
        found: list[TargetDiagnosis] = []
        for name, kind in self._by_name.items():
            try:
                found += await kind.diagnose()
            except Exception as error:
                found.append(TargetDiagnosis(name, f"{type(error).__name__}: {error}", "please report this as a bug"))
        return found

    def register(self, settings: Settings, granted: Mapping[int, FileGrants] | None = None) -> None:
        """Replace what may be called: by all, as the settings say, and besides by single tenants."""
        for kind in self._kinds.values():
            kind.register(settings, granted or {})

    @property
    def plugins(self) -> list[str]:
        """Names of the plug-ins that can be used."""
        return [name for name in self._plugins if name not in self.broken]

    async def reload(self) -> None:
        for kind in self._kinds.values():
            await kind.reload()

    def trust(self, *, is_open: bool, own_ports: frozenset[OwnPort]) -> None:
        for kind in self._kinds.values():
            kind.trust(is_open=is_open, own_ports=own_ports)

    def belong_to(self, installation: str) -> None:
        for kind in self._kinds.values():
            kind.belong_to(installation)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opening:
            for kind in [*self._kinds.values()]:
                try:
                    await opening.enter_async_context(kind)
                except Exception as error:
                    if kind.tag not in self._plugins:
                        raise
                    del self._kinds[kind.spec], self._by_name[kind.tag]
                    self._breaks(kind.tag, f"{type(error).__name__}: {error}")
            self._open = opening.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._open.aclose()

    def _breaks(self, name: str, why: str) -> None:
        if self.broken.get(name) != why:  # told once, not with every look
            self.broken[name] = why
            emit("plugin.broken", plugin=name, error=why)


class _Missing(Kind):
    """In the place of a kind that this node does not have."""

    def capabilities(self) -> list[str]:
        return []

    def start(self, call: Call, at: float, done: Done) -> Handle:
        return _Refusal(f"this node does not support {call.target.type} targets", at, done)


class _Refusal:
    def __init__(self, why: str, at: float, done: Done) -> None:
        ended = Ended(Outcome(kind="refused", error=why), at)
        self._telling: asyncio.Handle | None = asyncio.get_running_loop().call_soon(self._tell, done, ended)

    def stop(self, cause: Cause) -> Stop:
        if self._telling is None:
            return Stop.ENDED
        self._telling.cancel()
        self._telling = None
        return Stop.NOT_BEGUN

    def recorded(self) -> None:
        """Nothing was started."""

    def _tell(self, done: Done, ended: Ended) -> None:
        self._telling = None
        done(ended)


def names(registered: Sequence[str]) -> str:
    """What is accepted, for an error message."""
    return ", ".join(sorted(registered)) or "none (nothing is registered on this node)"
