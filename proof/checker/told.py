"""What a row tells of its attempts."""

from __future__ import annotations

from proof.checker.ledger import Attempt, Entry, Live

__all__ = ["KEPT", "told"]

KEPT = 20
"""So many attempts a row keeps, the last ones."""


def told(row: Entry | Live) -> list[Attempt]:
    """The attempts that a row tells of. One that ended at its first attempt tells of it itself."""
    if row.attempts or isinstance(row, Live):
        return list(row.attempts)
    if row.outcome is None or not row.token:
        return []
    return [
        Attempt(
            attempt=row.token,
            node=row.node or "",
            started_at=row.started_at,
            finished_at=row.finished_at,
            outcome=str(row.outcome.get("kind")),
            error=row.error,
        )
    ]
