"""What stands in `runs.orders` for a run that is to stop: 'cancel', by a user; 'replace <run>', by a newer one that
takes its lane. (A node of an older version takes the second for the first, and stops it as well.)"""

from __future__ import annotations

__all__ = ["is_stop", "replace_by", "replaced_by", "why_stopped"]

_REPLACE = "replace "


def replace_by(run_id: str) -> str:
    return _REPLACE + run_id


def replaced_by(orders: str | None) -> str | None:
    """The newer run; None: it was not that."""
    return orders.removeprefix(_REPLACE) if orders is not None and orders.startswith(_REPLACE) else None


def is_stop(orders: str | None) -> bool:
    return orders == "cancel" or replaced_by(orders) is not None


def why_stopped(orders: str | None) -> str:
    """The reason that the ledger keeps."""
    return "cancelled" if replaced_by(orders) is None else "replaced"
