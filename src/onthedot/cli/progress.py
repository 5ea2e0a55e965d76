"""Progress of long work: one line on a terminal, nothing in a file or a pipe."""

from __future__ import annotations

import sys
import time
from typing import Self

__all__ = ["ProgressLine"]

EVERY = 0.1


class ProgressLine:
    """`line.tell("runs", 5_000, 20_000)` as often as one likes; `with` takes the line away at the end."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._told_at = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def tell(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if self._shown and (now - self._told_at >= EVERY or done >= total):
            self._told_at = now
            percent = 100 if not total else min(100, 100 * done // total)
            sys.stderr.write(f"\r\033[K{what}  {done:,} of {total:,}  {percent} %")
            sys.stderr.flush()
