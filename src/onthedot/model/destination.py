"""Destinations and shares: what a run that is due may have to wait for in the store.

Destinations: who is called, as scheme, host and port of a URL, or a broker's name. A tenant's are its own.

A run that waits for one requires more of a node than its job does: `webhook@https://example.com` instead of `webhook`,
`webhook@#2/https://example.com` for tenant 2. So no node claims it with the others, and what waits for one destination
is found by an index. `#` is no letter of a URL's origin nor of a broker's name, and stands before all of them.

A run that waits because its job or its tenant has its share of the workers requires that in the same way:
`function:reports@job:17`, `function:reports@#2/job:17`, `function:reports@#2/tenant:2`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from onthedot.model.job import JobState
from onthedot.model.run import RecentRun

__all__ = [
    "BreakerView",
    "DestinationDetail",
    "DestinationJob",
    "DestinationLoad",
    "DestinationView",
    "Share",
    "Waiting",
    "capability_of",
    "kind_range",
    "read_share",
    "read_waiting",
    "waits_for",
    "waits_for_share",
    "waits_range",
]

_AT = "@"
_AFTER_AT = chr(ord(_AT) + 1)
_FIRST_TENANT = 1


class Waiting(msgspec.Struct, frozen=True):
    """What `requires` says of a run that waits."""

    capability: str
    tenant: int
    destination: str


def waits_for(capability: str, destination: str, tenant: int) -> str:
    """What a run requires while it waits for this destination."""
    if tenant == _FIRST_TENANT:
        return f"{capability}@{destination}"
    return f"{capability}@#{tenant}/{destination}"


def read_waiting(requires: str) -> Waiting | None:
    """None: it does not say that."""
    capability, at, rest = requires.partition(_AT)
    if not at:
        return None
    if not rest.startswith("#"):
        return Waiting(capability, _FIRST_TENANT, rest)
    number, _, destination = rest[1:].partition("/")
    return Waiting(capability, int(number), destination) if number.isascii() and number.isdigit() else None


def capability_of(requires: str) -> str:
    """What it requires of a node: of a run that waits for a destination, too."""
    return requires.partition(_AT)[0]


def waits_range(capability: str, tenant: int | None = None) -> tuple[str, str]:
    """Between these two is all that runs require which wait with this capability; of one tenant, if it is given."""
    if tenant is None:
        return f"{capability}@", f"{capability}{_AFTER_AT}"
    if tenant == _FIRST_TENANT:
        return f"{capability}@$", f"{capability}{_AFTER_AT}"  # `$` comes after `#`
    return f"{capability}@#{tenant}/", f"{capability}@#{tenant}0"  # `0` comes after `/`


def kind_range(kind: str) -> tuple[str, str]:
    """Between these two is all that runs of a kind of target require which has capabilities of its own, such as
    `function:reports`: waiting or not."""
    return f"{kind}:", f"{kind};"  # `;` comes after `:`


class Share(msgspec.Struct, frozen=True):
    """Of the workers: a job's, or a tenant's."""

    tenant: int
    job_id: int | None = None


def waits_for_share(capability: str, share: Share) -> str:
    """What a run requires while it waits for a worker of this share."""
    name = f"tenant:{share.tenant}" if share.job_id is None else f"job:{share.job_id}"
    return waits_for(capability, name, share.tenant)


def read_share(requires: str) -> Share | None:
    """None: it does not say that."""
    waiting = read_waiting(requires)
    if waiting is None:
        return None
    what, _, number = waiting.destination.partition(":")
    if what not in ("job", "tenant") or not (number.isascii() and number.isdigit()):
        return None
    return Share(waiting.tenant, int(number) if what == "job" else None)


class DestinationLoad(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a node says of a destination with its beat: short names, because they are stored each second."""

    requires: str
    breaker: Literal["closed", "open", "half_open"] = "closed"
    in_flight: int = 0
    failures: int = 0
    since: int | None = None  # ms: when its breaker opened
    next_probe: int | None = None  # ms: from when on a call may go there again to see whether it is back
    per_second: float | None = None  # calls that ended, over the last seconds
    calls: int = 0  # of which the percentiles are
    p50: int | None = None  # ms
    p99: int | None = None


class BreakerView(msgspec.Struct, frozen=True, kw_only=True):
    """One node's breaker of a destination, and its calls there."""

    node: str
    breaker: Literal["closed", "open", "half_open"]
    in_flight: int
    failures: int
    since: str | None
    next_probe: str | None = None
    per_second: float | None = None
    p50_ms: int | None = None
    p99_ms: int | None = None


class DestinationView(msgspec.Struct, frozen=True, kw_only=True):
    """A destination over all nodes. `breaker` is open if one node's is; `waiting` is counted up to a thousand. `p50_ms`
    and `p99_ms`: how long the last calls took, up to 200 of each node; of several nodes the mean, and the slowest.
    `per_second`: calls that ended, over the last seconds; null: not known yet.
    `next_probe`: from when on the first of the nodes whose breaker is open sends a run to see whether it is back; an
    instant that has passed: with the next run."""

    destination: str
    kind: str
    breaker: Literal["closed", "open", "half_open"]
    in_flight: int
    failures: int
    since: str | None
    waiting: int
    waiting_since: str | None
    nodes: list[BreakerView]
    p50_ms: int | None = None
    p99_ms: int | None = None
    next_probe: str | None = None
    per_second: float | None = None


class DestinationJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that calls a destination and has not ended."""

    id: int
    key: str | None
    name: str | None
    state: JobState
    next_run: str | None
    last_status: str | None


class DestinationDetail(DestinationView, frozen=True, kw_only=True):
    """A destination with the jobs that call it, up to 100 (`more_jobs`: there are more), and the last 10 of their runs
    that failed, newest first."""

    jobs: list[DestinationJob]
    more_jobs: bool
    failed_runs: list[RecentRun]
