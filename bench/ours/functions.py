"""What worker processes are asked to call."""

from __future__ import annotations

__all__ = ["noop"]


def noop() -> None:
    """Nothing: what is measured is everything around it."""
