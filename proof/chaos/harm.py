"""What the nemesis did, as it knows it."""

from __future__ import annotations

import msgspec

__all__ = ["Harm"]


class Harm(msgspec.Struct, frozen=True, kw_only=True):
    """A fault as the nemesis knows it: `pid` None hits all. `count`: connections cut, COMMIT answers swallowed …"""

    at: int
    until: int
    what: str
    pid: int | None = None
    name: str = ""
    detail: str = ""
    count: int = 0
