"""Who is called and how it goes there: what the live nodes say of their destinations, and what waits in the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from onthedot.errors import NotFound
from onthedot.model.destination import (
    BreakerView,
    DestinationDetail,
    DestinationJob,
    DestinationLoad,
    DestinationView,
    read_waiting,
    waits_range,
)
from onthedot.model.instant import format_instant
from onthedot.model.job import JobView
from onthedot.model.labels import type_of
from onthedot.service.base import ServiceBase
from onthedot.store import DestinationCount, JobFilter

__all__ = ["DestinationVerbs", "destination_views"]

MOST = 500
"""Destinations in one answer."""

MOST_JOBS, MOST_FAILING, MOST_FAILURES = 100, 20, 10

_WORST = ("closed", "half_open", "open")


class DestinationVerbs(ServiceBase):
    async def list_destinations(self, tenant: int) -> list[DestinationView]:
        """Those of a tenant that are called now, that failed last, or that runs wait for; in trouble first. Nodes tell
        with their beats, each of no more than so many: what is of the last second."""
        return (await self._told(tenant))[:MOST]

    async def _told(self, tenant: int) -> list[DestinationView]:
        told = {
            node: [load for load in loads if _is_of(load.requires, tenant)]
            for node, loads in (await self.store.destinations_of_nodes()).items()
        }
        ranges = [waits_range(capability, tenant) for capability in self.targets.waiting_capabilities()]
        named = {load.requires for loads in told.values() for load in loads}
        if ranges:
            named |= set((await self.store.waited_for(ranges, MOST)).requires)
        counts = await self.store.count_waiting(sorted(named)) if named else []
        return destination_views(told.items(), counts)

    async def get_destination(self, tenant: int, name: str) -> DestinationDetail:
        """One of them with its jobs and their last failures; also one that nobody calls now. NotFound: it is not in
        trouble, and no job calls it."""
        found = [each for each in await self._told(tenant) if each.destination == name]
        wanted = JobFilter(q=name, ended=False, limit=MOST_JOBS + 1)
        listed = (await self.store.list_jobs(tenant, wanted)).items
        jobs = [job for job in listed if self.targets.destination(job.target) == name]
        if not found and not jobs:
            raise NotFound(f"destination {name[:200]!r} not found: no job calls it, and no run waits for it")
        failing = JobFilter(q=name, failing=True, limit=MOST_FAILING)
        failed = [*jobs[: MOST_JOBS - MOST_FAILING], *(await self.store.list_jobs(tenant, failing)).items]
        callers = {job.id for job in failed if self.targets.destination(job.target) == name}
        runs = (await self.store.recent_runs(tenant, sorted(callers))).values()
        failures = sorted(
            (run for of_job in runs for run in of_job if run.status == "FAILED"),
            key=lambda run: (run.scheduled_for, run.id),
            reverse=True,
        )
        view = _joined(found) if found else _idle(name, jobs[0].target.type)
        return DestinationDetail(
            **msgspec.structs.asdict(view),
            jobs=[_job(job) for job in jobs[:MOST_JOBS]],
            more_jobs=len(listed) > MOST_JOBS,
            failed_runs=failures[:MOST_FAILURES],
        )

    async def open_breakers(self) -> dict[str, int]:
        """How many breakers of all nodes are not closed, by state; each node tells of no more than it tells of."""
        told = await self.store.destinations_of_nodes()
        return Counter(load.breaker for loads in told.values() for load in loads if load.breaker != "closed")


def _is_of(requires: str, tenant: int) -> bool:
    waiting = read_waiting(requires)
    return waiting is not None and waiting.tenant == tenant


def destination_views(
    told: Iterable[tuple[str, Sequence[DestinationLoad]]], counts: Iterable[DestinationCount]
) -> list[DestinationView]:
    """Joined by what runs require that wait there."""
    waiting = {count.requires: count for count in counts if count.waiting}
    by_place: dict[str, list[tuple[str, DestinationLoad]]] = {requires: [] for requires in waiting}
    for node, loads in told:
        for load in loads:
            by_place.setdefault(load.requires, []).append((node, load))
    views = [_view(requires, loads, waiting.get(requires)) for requires, loads in by_place.items()]
    return sorted(views, key=_trouble_first)


def _view(requires: str, loads: list[tuple[str, DestinationLoad]], count: DestinationCount | None) -> DestinationView:
    place = read_waiting(requires)
    assert place is not None
    opened = [load.since for _, load in loads if load.since is not None]
    probes = [load.next_probe for _, load in loads if load.next_probe is not None]
    return DestinationView(
        destination=place.destination,
        kind=type_of(place.capability),
        breaker=max((load.breaker for _, load in loads), key=_WORST.index, default="closed"),
        in_flight=sum(load.in_flight for _, load in loads),
        failures=max((load.failures for _, load in loads), default=0),
        since=format_instant(min(opened)) if opened else None,
        waiting=0 if count is None else count.waiting,
        waiting_since=None if count is None or count.since is None else format_instant(count.since),
        nodes=[
            BreakerView(
                node=node,
                breaker=load.breaker,
                in_flight=load.in_flight,
                failures=load.failures,
                since=None if load.since is None else format_instant(load.since),
                next_probe=None if load.next_probe is None else format_instant(load.next_probe),
                per_second=load.per_second,
                p50_ms=load.p50,
                p99_ms=load.p99,
            )
            for node, load in loads
        ],
        next_probe=format_instant(min(probes)) if probes else None,
        p50_ms=_mean_p50(loads),
        p99_ms=max((load.p99 for _, load in loads if load.p99 is not None), default=None),
        per_second=_sum(load.per_second for _, load in loads),
    )


def _sum(rates: Iterable[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return round(sum(known), 1) if known else None


def _joined(views: list[DestinationView]) -> DestinationView:
    """Jobs that require labels wait for a destination apart from the others: one for whoever looks at it."""
    first, *others = views  # the one in trouble
    if not others:
        return first
    waits = [view.waiting_since for view in views if view.waiting_since is not None]
    return msgspec.structs.replace(
        first,
        in_flight=sum(view.in_flight for view in views),
        waiting=sum(view.waiting for view in views),
        waiting_since=min(waits, default=None),
        nodes=[node for view in views for node in view.nodes],
        per_second=_sum(view.per_second for view in views),
        p99_ms=max((view.p99_ms for view in views if view.p99_ms is not None), default=None),
    )


def _idle(name: str, kind: str) -> DestinationView:
    return DestinationView(
        destination=name,
        kind=kind,
        breaker="closed",
        in_flight=0,
        failures=0,
        since=None,
        waiting=0,
        waiting_since=None,
        nodes=[],
    )


def _job(job: JobView) -> DestinationJob:
    return DestinationJob(
        id=job.id,
        key=job.key,
        name=job.name,
        state=job.state,
        next_run=job.next_run,
        last_status=job.stats.last_status,
    )


def _mean_p50(loads: list[tuple[str, DestinationLoad]]) -> int | None:
    """By how many calls each node knows."""
    known = [(load.p50, load.calls) for _, load in loads if load.p50 is not None and load.calls]
    return round(sum(p50 * calls for p50, calls in known) / sum(calls for _, calls in known)) if known else None


def _trouble_first(view: DestinationView) -> tuple[int, int, int, int, str]:
    return (-_WORST.index(view.breaker), -view.waiting, -view.failures, -view.in_flight, view.destination)
