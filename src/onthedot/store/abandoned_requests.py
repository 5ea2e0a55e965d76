"""Who asked for a change may be gone before it is written: then nothing is written.

A node that froze, or waited for the database, finds requests that were given up long ago. Their clients have asked
another node meanwhile, and perhaps changed their minds: a pause carried out then would be for ever.

The asker is looked at in the transaction, right before it is committed: all that had to be waited for (a connection, a
lock, another writer of the same key) lies behind. What follows is bounded by the database itself, which ends a
transaction of ours that does nothing for three seconds.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

from onthedot.errors import Abandoned
from onthedot.model.actor import ITSELF, ChangeActor
from onthedot.model.duration import SECOND

__all__ = ["ASKER", "PATIENCE", "Asker", "acting", "too_late"]

PATIENCE = 30 * SECOND
"""How long after it was read a request may still be carried out: longer than clients wait."""


class Asker(Protocol):
    name: str | None
    """Of the key it came with: new jobs belong to it."""
    actor: ChangeActor | None
    """Who it is, for what is written about changes; None: not known (yet)."""

    def check(self, *, late: bool = True) -> None:
        """Raise Abandoned if nobody waits for the answer any more; with `late`, also if it took too long."""
        ...


ASKER: ContextVar[Asker | None] = ContextVar("onthedot.asker", default=None)
"""Whose request is being carried out. None: the node's own will, or a caller in this process that waits."""


def acting() -> ChangeActor:
    """Who changes what is changed now."""
    asker = ASKER.get()
    return ITSELF if asker is None or asker.actor is None else asker.actor


def too_late() -> Abandoned:
    return Abandoned(f"not completed within {PATIENCE // SECOND} s; nothing was written; retry")
