"""The witness over time: what begins, what goes on and what has ended; and when it could not look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from onthedot.model.instant import format_instant
from onthedot.witness.looking import FindingKind, WitnessFinding

__all__ = ["BLIND_MS", "Watch", "WitnessMessage"]

BLIND_MS = 45_000
"""From then on it is worth an alert that nothing can be seen."""
REPEAT_MS = 15 * 60_000


class WitnessMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What channels are told."""

    event: Literal["found", "still", "recovered"]
    kind: str
    text: str
    at: str


class Watch:
    """Looks of one sort go in, what is worth telling comes out. One message when something begins, one each quarter of
    an hour while it lasts, one when it is over.

    `kinds`: what such a look can find. `blind`: the word for being unable to look. `brief`: whether that is told
    afterwards also if it did not last long enough for an alert."""

    def __init__(self, now: int, kinds: Sequence[FindingKind], *, blind: str = "blind", brief: bool = True) -> None:
        self._told: dict[str, int] = {}
        self._kinds = kinds
        self._blind, self._brief = blind, brief
        self.found: dict[str, int] = dict.fromkeys(kinds, 0)
        """How many of each kind the last look has found."""
        self.looked_at = now
        self.blind_since: int | None = None

    @property
    def well(self) -> bool:
        return not self._told and self.blind_since is None

    def saw(self, now: int, found: Sequence[WitnessFinding]) -> list[WitnessMessage]:
        """A look has succeeded."""
        messages = []
        if self.blind_since is not None:
            told = self._told.pop("blind", None)
            if self._brief or told is not None:
                text = f"{self._blind} from {format_instant(self.blind_since)} to {format_instant(now)}"
                messages.append(_message("found", "blind", text, now))
            self.blind_since = None
        self.looked_at = now
        silent = any(finding.kind == "silent" for finding in found)
        for kind in self._kinds:
            if kind == "standing" and silent:
                continue  # not looked at, and with nobody there to start them due runs can only go on standing
            these = [finding for finding in found if finding.kind == kind]
            self.found[kind] = sum(finding.number for finding in these)
            messages += self._about(kind, these, now)
        return messages

    def _about(self, kind: str, found: Sequence[WitnessFinding], now: int) -> list[WitnessMessage]:
        told = self._told.get(kind)
        if not found:
            if told is None:
                return []
            del self._told[kind]
            return [_message("recovered", kind, f"{kind}: no longer", now)]
        if told is not None and now - told < REPEAT_MS:
            return []
        self._told[kind] = now
        number = self.found[kind]
        more = f" (and {number - 1:,} more)" if number > 1 else ""
        return [_message("found" if told is None else "still", kind, found[0].text + more, now)]

    def saw_nothing(self, now: int, why: str) -> list[WitnessMessage]:
        """It could not look. Blind from the last good look on."""
        if self.blind_since is None:
            self.blind_since = self.looked_at
        told = self._told.get("blind")
        if now - self.blind_since < BLIND_MS or (told is not None and now - told < REPEAT_MS):
            return []
        self._told["blind"] = now
        since = format_instant(self.blind_since)
        return [_message("found" if told is None else "still", "blind", f"{self._blind} since {since}: {why}", now)]


def _message(event: Literal["found", "still", "recovered"], kind: str, text: str, now: int) -> WitnessMessage:
    return WitnessMessage(event=event, kind=kind, text=text, at=format_instant(now))
