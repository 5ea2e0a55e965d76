"""A second opinion: which slots must have been decided, computed without the code that decides them.

Nothing here imports `plan`, `timing` or the store, and none of them imports this but the store's `proofs`, which brings
the rows. What a schedule means is written here a second time, so that a mistake there is not repeated here.
"""

from __future__ import annotations

from onthedot.audit.slots import CannotTell, ScheduleFacts, slots_between
from onthedot.audit.verdict import JobVerdict, LedgerEntry, judge

__all__ = ["CannotTell", "JobVerdict", "LedgerEntry", "ScheduleFacts", "judge", "slots_between"]
