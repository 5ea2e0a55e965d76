"""Which bytes of a client commit something at PostgreSQL: COMMIT, or a statement that writes on its own."""

from __future__ import annotations

import re

__all__ = ["Commits"]

ENCRYPTION = (80877103, 80877104)  # asked for before the session begins, and refused on the loopback interface
WRITES = re.compile(rb"\b(INSERT INTO|UPDATE|DELETE FROM)\b")


class Commits:
    """One connection's, message by message: a name stands for its statement until another takes it."""

    def __init__(self) -> None:
        self._pending = b""
        self._begun = False
        self._writing: set[bytes] = set()
        self._within = False  # a transaction: then only its COMMIT counts

    def sends(self, data: bytes) -> bool:
        """Whether this portion holds the end of a message that commits."""
        self._pending += data
        found = False
        while (message := self._take()) is not None:
            found = self._commits(*message) or found
        return found

    def _take(self) -> tuple[bytes, bytes] | None:
        head = 1 if self._begun else 0
        if len(self._pending) < head + 4:
            return None
        end = head + int.from_bytes(self._pending[head : head + 4], "big")
        if len(self._pending) < end:
            return None
        kind, body = self._pending[:head], self._pending[head + 4 : end]
        self._pending = self._pending[end:]
        if not self._begun and int.from_bytes(body[:4], "big") not in ENCRYPTION:
            self._begun = True
        return kind, body

    def _commits(self, kind: bytes, body: bytes) -> bool:
        if kind == b"Q":
            return self._spoken(body)
        if kind == b"P":
            name, text, _ = body.split(b"\x00", 2)
            (self._writing.add if WRITES.search(text) else self._writing.discard)(name)
        elif kind == b"B":
            _, name, _ = body.split(b"\x00", 2)
            return not self._within and name in self._writing
        return False

    def _spoken(self, text: bytes) -> bool:
        if text.startswith(b"BEGIN"):
            self._within = True
        elif text.startswith((b"COMMIT", b"ROLLBACK")):
            self._within = False
            return text.startswith(b"COMMIT")
        return False
