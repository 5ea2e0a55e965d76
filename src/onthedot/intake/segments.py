"""Which messages may be carried out together: in their order, as long as none could overtake another one that names the
same job. What is created goes to the store in one batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onthedot.intake.commands import Command

__all__ = ["segments"]


def segments(commands: Sequence[Command]) -> Iterator[list[Command]]:
    """Each is over before the next one begins. One that names its job by id goes alone: which keys it touches, nobody
    knows."""
    part: list[Command] = []
    names: set[str] = set()
    for command in commands:
        touches = command.does.names() | {f"#{command.repeat.key}"}  # nor two with the same id
        fits = (
            bool(part)
            and (command.op == "create") == (part[-1].op == "create")
            and command.does.id is None
            and part[-1].does.id is None
            and not touches & names
        )
        if part and not fits:
            yield part
            part, names = [], set()
        part.append(command)
        names |= touches
    if part:
        yield part
