"""The warehouse: its database takes one question at a time, so that these wait for each other."""

from __future__ import annotations

import random
import time


def recount(aisle: str = "A", seconds: float = 9.0) -> dict[str, object]:
    print(f"aisle {aisle}: counting")
    time.sleep(random.uniform(0.8, 1.2) * seconds)
    print(f"aisle {aisle}: done")
    return {"aisle": aisle, "boxes": random.randint(200, 900)}


def sync_levels(warehouse: str = "Leipzig") -> dict[str, object]:
    time.sleep(random.uniform(0.05, 0.3))
    return {"warehouse": warehouse, "changed": random.randint(0, 25)}
