"""When a schedule fires, said a second time and as plainly as possible: nothing of `onthedot.timing` is used."""

from __future__ import annotations

from proof.oracle.slots import slots_of

__all__ = ["slots_of"]
