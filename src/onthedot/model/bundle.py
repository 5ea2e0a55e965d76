"""All that is known of a run or an incident, in one file that can be handed on: an incident bundle."""

from __future__ import annotations

from typing import Literal

import msgspec

from onthedot.model.audit_entry import AuditEntry
from onthedot.model.destination import DestinationView
from onthedot.model.incident import IncidentView
from onthedot.model.job import JobView
from onthedot.model.node import NodeName, NodeView
from onthedot.model.preview import Explanation
from onthedot.model.run import RecentRun, RunView
from onthedot.model.version import JobVersion

__all__ = ["BUNDLE_FORMAT", "BundleFormat", "IncidentBundle"]

BundleFormat = Literal["onthedot-incident-bundle/1"]
BUNDLE_FORMAT: BundleFormat = "onthedot-incident-bundle/1"


class IncidentBundle(msgspec.Struct, frozen=True, kw_only=True):
    """Parts that could not be read are null or empty, and `missing` says why. Secrets are masked: those of the job
    wherever they stand, values with a secret name, and what looks like a credential.

    `job`: as it is now; null: it was deleted. `versions`: the one that the run was started with, the one before and the
    one after it. `explanation`: why the slot was fired. `incidents` and `changes`: of the job, from a day before the
    run to a day after it. `recent_runs`: the last 20 of the job. `nodes`: those that are there now; `node_names`: those
    that had the run. `log`: its last 64 KB."""

    format: BundleFormat
    made_at: str
    made_by: str
    incident: IncidentView | None
    run: RunView | None
    last_good_run: RunView | None
    explanation: Explanation | None
    job: JobView | None
    versions: list[JobVersion]
    recent_runs: list[RecentRun]
    incidents: list[IncidentView]
    changes: list[AuditEntry]
    destination: DestinationView | None
    nodes: list[NodeView]
    node_names: list[NodeName]
    log: str | None
    missing: dict[str, str]
