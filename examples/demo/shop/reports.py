"""Numbers for people: they take a while and say how far they are."""

from __future__ import annotations

import logging
import random
import time

log = logging.getLogger(__name__)


def build(report: str = "sales", seconds: float = 2.0) -> dict[str, object]:
    """A report in ten steps: long enough to follow its log, or to cancel it."""
    for step in range(1, 11):
        time.sleep(seconds / 10)
        log.info("%s: step %d of 10, %d rows", report, step, step * random.randint(800, 1200))
    return {"report": report, "rows": random.randint(8_000, 12_000)}


def forecast(days: int = 14) -> dict[str, object]:
    log.info("fitting %d days", days)
    time.sleep(random.uniform(1.0, 2.5))
    if random.random() < 0.3:
        raise RuntimeError("the model did not converge after 200 iterations")
    return {"days": days, "error_percent": round(random.uniform(3, 9), 1)}
