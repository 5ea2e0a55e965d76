"""The registry: what this node can do, and the one door through which the engine does it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Protocol, Self, runtime_checkable

from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.targets import Target
from onthedot.targets.contract import Call, HandOver, Kind, NotBegun, Timekeeper
from onthedot.targets.webhook.own_ports import OwnPort

__all__ = ["Targets"]


@runtime_checkable
class Registering(Protocol):
    """A kind whose members the operator names, at the start and whenever the jobs file is read again."""

    def register(self, registered: Any, own: Mapping[int, Any]) -> None: ...


@runtime_checkable
class Reloading(Protocol):
    async def reload(self) -> None: ...


@runtime_checkable
class Trusting(Protocol):
    def trust(self, *, is_open: bool, doors: frozenset[OwnPort]) -> None: ...


@runtime_checkable
class HandingOver(Protocol):
    def hand_over(self, call: Call, ended: Callable[[Outcome | None], None]) -> Callable[[], bool | None]: ...


class Targets:
    """Every kind of target of one node, by `type`. `async with targets:` around the engine."""

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        *,
        capacity: Mapping[str, int] | None = None,
        most: Mapping[str, int] | None = None,
        inside: frozenset[str] = frozenset(),
    ) -> None:
        self._kinds = dict(kinds)
        self.capacity: dict[str, int] = dict(capacity or {})
        """How many sends of a type run at once here, where there is a limit; what is over it waits inside `send`."""
        self.most: dict[str, int] = dict(most or {})
        """How many sends of a type there may be at once, whatever was set: this process can have no more open."""
        self.inside = inside
        """The types that run in this very process."""
        self.direct: dict[str, HandOver] = {
            name: kind.hand_over for name, kind in self._kinds.items() if isinstance(kind, HandingOver)
        }
        """By type, the door of kinds that need no task here; all have `send` as well."""
        self.timekeepers: dict[str, Timekeeper] = {
            name: kind for name, kind in self._kinds.items() if isinstance(kind, Timekeeper)
        }
        """By type, the kinds that take calls before their instant."""
        self._open = AsyncExitStack()

    @property
    def offers(self) -> list[str]:
        return [offer for kind in self._kinds.values() for offer in kind.offers]

    def ahead(self, kind: str) -> int:
        """How many sends more than its capacity a kind takes at this moment."""
        ahead: int = getattr(self._kinds.get(kind), "ahead", 0)
        return ahead

    def register(self, kind: str, registered: Any, own: Mapping[int, Any] | None = None) -> None:
        """Replace what may be called: modules and functions for `function`, settings by name for `command`. `own`: what
        may be called besides, by tenant."""
        found = self._kinds[kind]
        assert isinstance(found, Registering), f"{kind} has no members to register"
        found.register(registered, own or {})

    async def reload(self) -> None:
        """Let idle workers go, so that the next calls import their modules afresh."""
        for kind in self._kinds.values():
            if isinstance(kind, Reloading):
                await kind.reload()

    def trust(self, *, is_open: bool, doors: frozenset[OwnPort]) -> None:
        """Whether the installation is open, and which ports are its own, for kinds that ask."""
        for kind in self._kinds.values():
            if isinstance(kind, Trusting):
                kind.trust(is_open=is_open, doors=doors)

    def check(self, target: Target, tenant: int = 1) -> None:
        """Refuse at creation what can be known to be impossible: what is wrong anywhere, then what is wrong here."""
        if problems := list(target.problems()):
            raise Invalid(problems)
        kind = self._kinds.get(target.type)
        if kind is None:
            problem = "this kind of target is not offered here"
            raise Invalid.one("target.type", problem, given=target.type, accepted=", ".join(self._kinds))
        kind.check(target, tenant)

    def problem(self, target: Target, tenant: int = 1) -> str | None:
        """Why runs of it would fail here, as far as it can be seen without running it; None: it may well work. Reads
        files: not for the loop of the engine."""
        look: Callable[[Any, int], str | None] | None
        look = getattr(self._kinds.get(target.type), "problem", None)  # not every kind can look
        return None if look is None else look(target, tenant)

    async def send(self, call: Call) -> Outcome:
        """Send once. Raises nothing but CancelledError and, where the call listens for it, NotBegun: a target that
        fails in a way nobody foresaw is a failed try."""
        kind = self._kinds.get(call.target.type)
        if kind is None:
            return Outcome(kind="refused", error=f"this node has no {call.target.type} targets")
        try:
            return await kind.send(call)
        except (asyncio.CancelledError, NotBegun):
            raise
        except Exception as error:
            return Outcome(kind="error", retryable=True, error=f"{type(error).__name__}: {error}")

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opening:
            for kind in self._kinds.values():
                await opening.enter_async_context(kind)
            self._open = opening.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._open.aclose()


def names(registered: Sequence[str]) -> str:
    """What is accepted, for an error message."""
    return ", ".join(sorted(registered)) or "nothing is registered on this node"
