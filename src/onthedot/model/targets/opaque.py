"""A target of a kind that this process does not know: its plug-in is not installed here, or a newer release made it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onthedot.errors import Invalid, NotAvailable
from onthedot.model.secret_text import MASK
from onthedot.model.targets.spec import Target, TargetSummary

__all__ = ["OpaqueTarget"]


class OpaqueTarget(dict[str, Any], Target):
    """The JSON object as it is stored, so that it is written back as it was read. It can be listed, paused and deleted,
    but neither made nor changed; and since nobody here knows what of it is secret, nothing but its type is shown.

    Only who made it knew how to write its capability and level: they are those of the job's row.
    """

    __slots__ = ("_capability", "_level")

    def __init__(self, stored: Mapping[str, Any], capability: str | None = None, level: int | None = None) -> None:
        super().__init__(stored)
        self._capability = capability
        self._level = level

    @property
    def type(self) -> str:
        return str(self["type"])

    def capability(self) -> str:
        if self._capability is None:
            raise self._not_here()
        return self._capability

    def level_with(self, params: Mapping[str, Any]) -> int:
        if self._level is None:
            raise self._not_here()
        return self._level

    def _not_here(self) -> Invalid:
        message = f"not available: {self.type!r} is not installed here"
        return NotAvailable.one(
            "target.type", message, given=self.type, accepted="a node on which its plug-in is installed"
        )

    def masked(self) -> OpaqueTarget:
        return OpaqueTarget({name: value if name == "type" else MASK for name, value in self.items()})

    def summary(self) -> TargetSummary:
        return TargetSummary(self.type, "not known here", f"{self.type} (not known here)")
