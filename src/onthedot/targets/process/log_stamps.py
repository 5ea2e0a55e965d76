"""Lines of logs that begin with their time, as container engines and Kubernetes write them."""

from __future__ import annotations

from datetime import datetime

__all__ = ["Instant", "stamped"]

Instant = tuple[int, int]  # seconds since the epoch, nanoseconds


def stamped(entry: bytes) -> tuple[Instant | None, bytes]:
    """The time that stands before it, which may be any offset from UTC, and the rest."""
    stamp, space, text = entry.partition(b" ")
    if not space or len(stamp) > 40:
        return None, entry
    try:
        said = stamp.decode("ascii")
        seconds = int(datetime.fromisoformat(said).timestamp() // 1)
        fraction = said[20:].rstrip("Z").partition("+")[0].partition("-")[0] if said[19:20] == "." else ""
        return (seconds, int(fraction[:9].ljust(9, "0"))), text
    except ValueError:
        return None, entry
