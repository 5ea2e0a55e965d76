"""Concurrency groups: who may run now, who waits, and whose turn is next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

__all__ = ["TURN_MS", "GroupState", "InLine", "Turns", "take_turns"]

TURN_MS = 5000
"""For so long a run whose turn has come has precedence over later ones. If no node takes it by then, because none can
run it, its place is given to the next."""


class InLine(msgspec.Struct, frozen=True, order=True, gc=False):
    """A run that wants to run, or waits: the oldest comes first."""

    due_at: int
    id: str


class GroupState(msgspec.Struct, frozen=True, kw_only=True):
    """A group as one transaction sees it that has locked it. `limit`: the smallest that its jobs name."""

    limit: int
    running: int

    @property
    def room(self) -> int:
        """Not less than none: a limit may have been lowered below what is running."""
        return max(0, self.limit - self.running)


class Turns(msgspec.Struct, frozen=True, kw_only=True):
    run: list[str]  # of those that want to run now
    wake: list[str]  # of those that wait


def take_turns(
    state: GroupState, wanting: Iterable[InLine], called: Iterable[InLine], waiting: Sequence[InLine]
) -> Turns:
    """Who gets the room there is, the oldest first.

    wanting: those that a claim has in hand. called: those whose turn has come a moment ago, and that nobody has
    claimed yet: their places are kept. waiting: those that are set aside; the oldest, at least as many as there is
    room.

    >>> state = GroupState(limit=2, running=0)
    >>> turns = take_turns(state, [InLine(5, "e"), InLine(3, "c")], [InLine(1, "a")], [InLine(4, "d")])
    >>> turns.run, turns.wake
    (['c'], [])
    """
    wanted, kept, aside = set(wanting), set(called), set(waiting)
    first = sorted(wanted | kept | aside)[: state.room]
    return Turns(
        run=[each.id for each in first if each in wanted],
        wake=[each.id for each in first if each in aside and each not in wanted and each not in kept],
    )
