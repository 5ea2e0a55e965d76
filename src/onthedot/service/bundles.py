"""Incident bundles: all that is known of a run or an incident, read at once, without secrets."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

import msgspec

from onthedot.errors import NotFound, OnTheDotError
from onthedot.model.audit_entry import AuditEntry
from onthedot.model.bundle import BUNDLE_FORMAT, IncidentBundle
from onthedot.model.decoding import to_builtins
from onthedot.model.destination import DestinationView
from onthedot.model.duration import DAY
from onthedot.model.incident import IncidentView
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.job import JobRecord, JobSpec
from onthedot.model.node import NodeName
from onthedot.model.redaction import Redactor, hidden_by_masks, named_secrets
from onthedot.model.run import RecentRun, RunView
from onthedot.model.secret_text import MASK
from onthedot.model.secrets import masked
from onthedot.model.version import JobVersion
from onthedot.service.alerts import AlertVerbs
from onthedot.service.audit import AuditVerbs
from onthedot.service.cluster import ClusterVerbs
from onthedot.service.destinations import DestinationVerbs
from onthedot.service.jobs import JobVerbs
from onthedot.service.previews import PreviewVerbs
from onthedot.service.run_requests import RunRequestVerbs
from onthedot.service.runs import RunVerbs
from onthedot.store import IncidentFilter, Page
from onthedot.version import __version__

__all__ = ["BundleVerbs"]

T = TypeVar("T")
NOTHING: Page[Any] = Page(items=[], next=None)
MOST = 50
"""Incidents and changes in a bundle, the newest."""


class BundleVerbs(
    JobVerbs, RunVerbs, RunRequestVerbs, AuditVerbs, AlertVerbs, PreviewVerbs, ClusterVerbs, DestinationVerbs
):
    async def bundle_run(self, tenant: int, run_id: str) -> dict[str, Any]:
        """An `IncidentBundle` as JSON has it."""
        run = await self.inspect_run(tenant, run_id)
        return await self._bundle(tenant, run.job_id, run.scheduled_for, run, None)

    async def bundle_incident(self, tenant: int, incident_id: int) -> dict[str, Any]:
        """The same for an incident, with the run at which it was found last."""
        found = (await self.store.list_incidents(tenant, IncidentFilter(id=incident_id, limit=1))).items
        if not found:
            raise NotFound(f"incident {incident_id} not found")
        (incident,) = found
        run = None
        if incident.run_id is not None:
            with contextlib.suppress(NotFound):  # it is older than the retention period
                run = await self.inspect_run(tenant, incident.run_id)
        at = incident.opened_at if run is None else run.scheduled_for
        return await self._bundle(tenant, incident.job_id, at, run, incident)

    async def _bundle(
        self, tenant: int, job_id: int | None, at: str, run: RunView | None, incident: IncidentView | None
    ) -> dict[str, Any]:
        parts = _Parts()
        ids = [] if run is None else [run.node, *(each.node for each in (*run.attempts, *(run.refused or ())))]
        names = await parts.read("node_names", self.node_names(ids), {})
        nodes = await parts.read("nodes", self.list_nodes(), [])
        job, record, versions = None, None, list[JobVersion]()
        if job_id is not None:
            job = await parts.read("job", self.get_job(tenant, job_id), None)
        if job_id is not None and job is not None:
            record = await parts.read("job", self.store.get_record(tenant, job_id), None)
            versions = await parts.read("versions", self._versions_near(tenant, job_id, run), [])
        log = None if run is None else await parts.read("log", self.run_logs(tenant, run.id), None)
        of_job = (
            _OfJob() if job_id is None else await self._of_job(parts, tenant, job_id, at, run, known=job is not None)
        )
        bundle = IncidentBundle(
            format=BUNDLE_FORMAT,
            made_at=format_instant(await self.time.now()),
            made_by=f"On the Dot {__version__}",
            incident=incident,
            run=run,
            last_good_run=of_job.last_good,
            explanation=of_job.explanation,
            job=job,
            versions=versions,
            recent_runs=of_job.recent,
            incidents=of_job.incidents,
            changes=of_job.changes,
            destination=await parts.read("destination", self._called(tenant, record), None),
            nodes=nodes,
            node_names=[NodeName(id=each, name=name) for each, name in sorted(names.items())],
            log=log,
            missing=parts.missing,
        )
        secrets = await parts.read("versions", self._secrets(tenant, record, versions), [])
        return await self.aside.run(_redacted, bundle, secrets)

    async def _of_job(
        self, parts: _Parts, tenant: int, job_id: int, at: str, run: RunView | None, *, known: bool
    ) -> _OfJob:
        instant = parse_rfc3339(at) or 0
        since, until = instant - DAY, instant + DAY
        recent = await parts.read("recent_runs", self.recent_runs(tenant, [job_id]), {})
        incidents = IncidentFilter(job_id=job_id, limit=MOST, since=since, until=until)
        explained = None
        if known and run is not None:
            explained = await parts.read("explanation", self.explain(tenant, job_id, at), None)
        audit = self.list_audit(tenant, job=str(job_id), limit=MOST, since=since, until=until)
        return _OfJob(
            last_good=None if run is None else await parts.read("last_good_run", self.last_good_run(tenant, run), None),
            explanation=None if explained is None else msgspec.structs.replace(explained, run=None),
            recent=recent.get(job_id, []),
            incidents=(await parts.read("incidents", self.store.list_incidents(tenant, incidents), NOTHING)).items,
            changes=(await parts.read("changes", audit, NOTHING)).items,
        )

    async def _versions_near(self, tenant: int, job_id: int, run: RunView | None) -> list[JobVersion]:
        """The one that was in force when the run began, with those around it; without a run the present one."""
        began = None if run is None else run.started_at or run.scheduled_for
        after, cursor = None, None
        while True:
            page = await self.list_versions(tenant, job_id, cursor=cursor)
            for nth, version in enumerate(page.items):
                if began is None or version.at <= began:
                    before = page.items[nth + 1 : nth + 2]
                    return [*([] if after is None else [after]), version, *before]
                after = version
            if page.next is None:
                return [] if after is None else [after]
            cursor = page.next

    async def _called(self, tenant: int, record: JobRecord | None) -> DestinationView | None:
        """The destination of the job, if it is called now or is in trouble."""
        name = None if record is None else self.targets.destination(record.spec.target)
        if name is None:
            return None
        found = await self.list_destinations(tenant)
        return next((each for each in found if each.destination == name), None)

    async def _secrets(self, tenant: int, record: JobRecord | None, versions: Sequence[JobVersion]) -> list[str]:
        """Those of the job, of all versions that are told."""
        if record is None:
            return []
        older = [each.version for each in versions if not each.current]
        specs = [record.spec, *[await self.store.spec_at(tenant, record.id, version) for version in older]]
        return [each for spec in specs for each in secrets_of(spec)]


def secrets_of(spec: JobSpec) -> list[str]:
    plain = to_builtins(spec.target)
    return [
        *hidden_by_masks(plain, to_builtins(masked(spec.target))),
        *named_secrets(plain),
        *named_secrets(spec.params),
    ]


class _OfJob(msgspec.Struct, frozen=True, kw_only=True):
    last_good: RunView | None = None
    explanation: Any = None
    recent: list[RecentRun] = []
    incidents: list[IncidentView] = []
    changes: list[AuditEntry] = []


class _Parts:
    """Each is read by itself: what can't be read is named, and the others are there."""

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}

    async def read(self, name: str, part: Awaitable[T], instead: T) -> T:
        try:
            return await part
        except OnTheDotError as error:
            self.missing[name] = str(error)
            return instead


def _redacted(bundle: IncidentBundle, secrets: list[str]) -> dict[str, Any]:
    plain = to_builtins(bundle)
    named = (each for each in named_secrets(plain) if each != MASK)
    found: dict[str, Any] = Redactor([*secrets, *named]).value(plain)
    return found
