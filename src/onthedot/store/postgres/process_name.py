"""Each connection names the process that has it, so that another one can end the transactions of a process that froze.

A node that was frozen between two messages of a transaction keeps its locks for as long as it is frozen. Where it waits
between statements `idle_in_transaction_session_timeout` ends the transaction; inside COPY, or between preparing and
executing a statement, the server does not call it idle. `declare_lost` ends those: see `end_transactions_of`.
"""

from __future__ import annotations

from onthedot.store.queries import LONGEST_PROCESS

__all__ = ["name_process"]

LONGEST = 63  # bytes; PostgreSQL cuts the rest


def name_process(application_name: str, host: str, pid: int) -> str:
    process = f"{pid}@{host}"[:LONGEST_PROCESS]
    return f"{application_name[: LONGEST - len(process) - 1]} {process}"
