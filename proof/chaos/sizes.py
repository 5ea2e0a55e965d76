"""How long, how much, how often."""

from __future__ import annotations

import msgspec

from proof.chaos.workload import Load

__all__ = ["SIZES", "Size"]


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of faults, then `quiet` seconds without, in which everything must heal. gap: seconds between faults."""

    seconds: float
    quiet: float
    gap: float
    load: Load
    calm: float = 0.0  # seconds before the first fault
    executors: int = 3
    apis: int = 2
    both: int = 1  # nodes that are API and executor in one process
    longest_outage: float = 50.0


SIZES = {
    "smoke": Size(
        seconds=22, quiet=10, gap=1.3, load=Load(firings=40), calm=3, executors=2, apis=1, longest_outage=6.0
    ),
    "single": Size(seconds=40, quiet=14, gap=3.5, load=Load(firings=60), calm=6, longest_outage=15.0),
    "short": Size(seconds=120, quiet=30, gap=2.5, load=Load(firings=100), calm=20),
    "full": Size(seconds=620, quiet=40, gap=2.6, load=Load(firings=330, verbs=4.0), calm=60, executors=5),
}
