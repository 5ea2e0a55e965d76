"""How many workers of a node one job or one tenant may have, so that the work of others starts on time.

A worker that runs somebody's function or script for an hour can be taken back by nobody. So some have to be free before
others want them: one job has all but a quarter of the workers while the rest is idle, and half of them once it is not;
one tenant leaves a quarter to the others.
"""

from __future__ import annotations

__all__ = ["kept_free", "room_of_job", "room_of_tenant"]


def kept_free(workers: int) -> int:
    """Workers that one job or one tenant never has. Of a single worker there is nothing to share.

    >>> [kept_free(workers) for workers in (1, 2, 4, 16)]
    [0, 1, 1, 4]
    """
    return 0 if workers < 2 else max(1, workers // 4)


def room_of_job(workers: int, busy: int, own: int) -> int:
    """How many more workers a job may have that has `own` of the `busy` ones. Half of them whoever has the others;
    beyond that, as many as leave enough free. It may be more than are free.

    >>> [room_of_job(8, busy, own) for busy, own in ((0, 0), (5, 5), (6, 6), (6, 3), (8, 4))]
    [6, 1, -2, 1, 0]
    """
    return max((workers + 1) // 2 - own, workers - kept_free(workers) - busy)


def room_of_tenant(workers: int, own: int) -> int:
    """The same for a tenant, where there are several.

    >>> [room_of_tenant(8, own) for own in (0, 6, 7)]
    [6, 0, -1]
    """
    return workers - kept_free(workers) - own
