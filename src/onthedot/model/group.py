"""Concurrency groups: how many runs may be running at once, over all jobs that name the group and all nodes.

In the store a group is a text: `1/db` is the group `db` of tenant 1, and `1/#17` the runs of job 17 alone, for
`max_running`. `#` is no letter of a group's name. A tenant's groups are its own.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from onthedot.model.policy import Policy

__all__ = ["MAX_RUNNING", "GroupView", "Membership", "groups_of_tenant", "membership", "read_group"]

MAX_RUNNING = "max_running"
"""What a run waits for whose job has as many runs as it may."""
_OWN = "#"
_AFTER_SLASH = "0"


class Membership(msgspec.Struct, frozen=True):
    """Which group the runs of a job belong to, and how many of it may be running at once as far as this job says."""

    key: str
    limit: int


def membership(tenant: int, job_id: int, policy: Policy) -> Membership | None:
    """None: its runs need not know of others."""
    if policy.concurrency is not UNSET:
        return Membership(f"{tenant}/{policy.concurrency.group}", policy.concurrency.limit)
    if policy.max_running is not UNSET:
        return Membership(f"{tenant}/{_OWN}{job_id}", policy.max_running)
    return None


def read_group(key: str) -> tuple[int, str | None, int | None]:
    """(tenant, name of the group, job whose own it is): one of the last two."""
    tenant, _, rest = key.partition("/")
    if rest.startswith(_OWN):
        return int(tenant), None, int(rest[len(_OWN) :])
    return int(tenant), rest, None


def groups_of_tenant(tenant: int) -> tuple[str, str]:
    """Between these two are all groups of a tenant."""
    return f"{tenant}/", f"{tenant}{_AFTER_SLASH}"


class GroupView(msgspec.Struct, frozen=True, kw_only=True):
    """A concurrency group over all nodes. `group` is null for the runs of one job with `max_running`, and `job_id` for
    all others. `limit` is the smallest that a job of the group names, `highest_limit` the largest; `waiting` is
    counted up to a thousand."""

    group: str | None
    job_id: int | None
    limit: int
    highest_limit: int
    running: int
    waiting: int
    waiting_since: str | None
