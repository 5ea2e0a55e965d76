"""How many files and sockets this process may have open at once, and how they are divided.

A node that opens one for each webhook until there is none left can't answer its API nor reach its store. So what sends
has a share, and the rest is kept back for those two, for worker processes and for what nobody counts.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource

__all__ = ["MOST", "MOST_CLIENTS", "allowed", "for_clients", "for_sending", "limit", "none_left", "raise_limit"]

MOST = 65_536
"""No more is asked for: whatever we start inherits it, and some programs walk through all numbers up to the limit."""
MOST_CLIENTS = 2000
_FEW_CLIENTS = 32
_BEFORE_CLIENTS = 384
_KEPT_BACK = 64  # for the store, for logs and for what nobody counts
_PER_WORKER = 8


def limit() -> int | None:
    """The present limit; None: there is none."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def allowed() -> int:
    """How far the operator lets us raise it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)


def raise_limit() -> int | None:
    """From the soft limit, which is meant for shells (often 1,024), as far as the operator allows. The new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = allowed()
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # then it stays as it is
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return limit()


def for_clients(most: int | None) -> int:
    """Of so many, how many connections the clients of the API may have open: half of what is there beyond 384."""
    return MOST_CLIENTS if most is None else max(_FEW_CLIENTS, min(MOST_CLIENTS, (most - _BEFORE_CLIENTS) // 2))


def for_sending(most: int | None, processes: int = 0) -> int | None:
    """Of so many, how many connections webhooks may have open; None: as many as they like. What clients may have is not
    theirs, nor what is kept back for the store and for each worker process."""
    if most is None:
        return None
    return max(1, most // 4, most - for_clients(most) - _KEPT_BACK - _PER_WORKER * processes)


def none_left() -> bool:
    """Whether not one more can be opened now. For failures that don't say why, such as those of a name's look-up."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    return False
