"""A world outside of all nodes, and a kind of target whose work lives there: it survives whichever node started it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from onthedot.clock import Clock
from onthedot.model.run import Outcome
from onthedot.model.targets import CommandTarget
from onthedot.targets import Call, Targets
from onthedot.targets.contract import NOT_BEGUN, Ended, Profile
from onthedot.targets.coroutine import CoroutineKind
from tests.engine.making import OK

__all__ = ["Reach", "Thing", "World"]


class Thing:
    def __init__(self, began: float) -> None:
        self.began = began
        self.killed_at: float | None = None
        self.recorded = False
        self.over = asyncio.Event()


class World:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.things: dict[str, Thing] = {}
        self.created: list[str] = []  # each time
        self.calls: list[Call] = []
        self.is_stubborn = False

    def create(self, name: str) -> Thing:
        self.created.append(name)
        self.things[name] = thing = Thing(self.clock.monotonic())
        return thing

    @property
    def only(self) -> Thing:
        (thing,) = self.things.values()
        return thing


class Outside(CoroutineKind):
    spec = CommandTarget

    def __init__(self, world: World, capacity: int, *, creates: bool, places: Sequence[str]) -> None:
        """`creates` False: it hangs right before it would."""
        self.profile = Profile(capacity=capacity, survives_node=True)
        self._world, self._creates, self._places = world, creates, places

    def capabilities(self) -> list[str]:
        return [f"command:{place}" for place in self._places]

    async def send(self, call: Call) -> Outcome | Ended:
        world, name = self._world, f"{call.run_id}-{call.try_number}"
        world.calls.append(call)
        try:
            thing = world.things.get(name)
            if thing is None and call.stopped is None:
                if not call.may_create:
                    return Outcome(kind="unknown", error="nothing is there")
                if not call.may_begin():
                    return NOT_BEGUN
                if not self._creates:
                    await asyncio.Event().wait()
                call.begun(world.clock.monotonic())
                thing = world.create(name)
            if thing is None:
                await asyncio.Event().wait()  # it is to be stopped
                raise AssertionError("nobody did")
            call.begun(thing.began)
            call.log("all of it\n")
            await thing.over.wait()
        except asyncio.CancelledError:
            found = world.things.get(name)
            if call.stopped in ("cancelled", "timeout") and found is not None:
                found.killed_at = world.clock.monotonic()
            raise
        return OK

    def recorded(self, call: Call) -> None:
        thing = self._world.things.get(f"{call.run_id}-{call.try_number}")
        if thing is not None:
            thing.recorded = True

    async def inventory(self) -> Sequence[str]:
        return [name for name, thing in self._world.things.items() if not thing.recorded]

    async def remove(self, name: str) -> None:
        if self._world.is_stubborn:
            raise OSError("it can't be removed now")
        del self._world.things[name]


class Reach:
    """What a node brings that reaches this world."""

    def __init__(
        self, world: World, *, capacity: int = 4, creates: bool = True, places: Sequence[str] = ("backup",)
    ) -> None:
        self.targets = Targets([Outside(world, capacity, creates=creates, places=places)])
