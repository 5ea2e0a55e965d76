"""Amounts of CPU and memory as Kubernetes writes them: `500m` is half a CPU, `256Mi` are 256 MB. Pure."""

from __future__ import annotations

import re
from decimal import Decimal

__all__ = ["ACCEPTED_QUANTITIES", "read_quantity"]

ACCEPTED_QUANTITIES = "an amount as Kubernetes writes it, such as 500m, 2, 256Mi or 1Gi"
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?", re.ASCII)
_UNITS = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTP", 1)},
    **{unit: Decimal(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), 1)},
}


def read_quantity(given: str | float) -> float:
    """CPUs, bytes or pieces. ValueError if it is no amount."""
    match = _QUANTITY.fullmatch(given if isinstance(given, str) else f"{given:.12g}")
    if match is None:
        raise ValueError(f"{given!r} is not {ACCEPTED_QUANTITIES}")
    return float(Decimal(match[1]) * _UNITS[match[2] or ""])
