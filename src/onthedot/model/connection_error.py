"""Why a connection was not made, as people read it."""

from __future__ import annotations

import os

__all__ = ["unreached_words"]


def unreached_words(error: OSError, host: str, port: int | None) -> str:
    """`Connection refused (127.0.0.1, port 80)`: each event loop, and each library, words the same error in its own
    way."""
    number = error.errno
    why = os.strerror(number) if number is not None and number > 0 else error.strerror or str(error)
    return f"{why} ({host}, port {port})"
