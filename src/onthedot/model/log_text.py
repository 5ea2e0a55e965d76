"""What a log that is read again and again has gained since the last look."""

from __future__ import annotations

__all__ = ["added"]

_OVERLAP = 200
"""Characters of the old end that are looked for where the beginning is gone."""


def added(seen: str, text: str) -> str:
    """A log only grows, until it is over 64 KB: then its beginning goes, and what is new follows the old end."""
    if text.startswith(seen):
        return text[len(seen) :]
    tail = seen[-_OVERLAP:]
    place = text.rfind(tail)
    return text[place + len(tail) :] if place >= 0 else text
