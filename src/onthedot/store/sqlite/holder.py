"""Where the server that holds an SQLite file listens: it wrote that down in the file, which others may still read."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from urllib.parse import quote

__all__ = ["binding_of_holder"]

_NEWEST = "SELECT binding FROM nodes WHERE lost_at IS NULL AND binding IS NOT NULL ORDER BY started_at DESC LIMIT 1"


def binding_of_holder(url: str) -> str | None:
    """ "127.0.0.1:8000"; None: it can't be read, or nobody there serves the API.

    Not for a process that has the file open itself: closing it here would drop the locks it has on it.
    """
    path = Path(url.removeprefix("sqlite:///")).absolute()
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=1.0)) as reader:
            reader.row_factory = sqlite3.Row
            row = reader.execute(_NEWEST).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else str(row["binding"])
