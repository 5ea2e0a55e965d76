"""Put a bug in, for the length of a simulation: replaced attributes, rewritten statements of one world's database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import msgspec

from proof.sim.world import World

__all__ = ["Bug", "planted"]


class Bug(msgspec.Struct, frozen=True, kw_only=True):
    """swaps: (where, name, what instead). statements: (name, part of its text, what instead).

    faults: what the nemesis does meanwhile. shows: the kinds of violation that give it away.
    """

    name: str
    what: str
    faults: tuple[str, ...] = ()
    shows: tuple[str, ...]
    swaps: tuple[tuple[Any, str, Any], ...] = ()
    statements: tuple[tuple[str, str, str], ...] = ()


@contextmanager
def planted(bug: Bug) -> Iterator[Callable[[World], None]]:
    """The bug is in. Yields what puts its statements into a world."""
    with ExitStack() as stack:
        for where, name, instead in bug.swaps:
            stack.enter_context(patch.object(where, name, instead))
        yield lambda world: _rewrite(world, bug)


def _rewrite(world: World, bug: Bug) -> None:
    statements: dict[str, str] = world.driver.queries._statements
    for name, part, instead in bug.statements:
        text = statements[name]
        if part not in text:
            raise LookupError(f"{bug.name}: the statement {name} has changed, {part!r} is not in it any more")
        statements[name] = text.replace(part, instead)
