"""What is read of the objects of a cluster. Fields that are not needed are not decoded."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

__all__ = [
    "ClusterEvent",
    "ContainerLook",
    "KubeJob",
    "KubePod",
    "ObjectList",
    "ObjectMeta",
    "WatchEvent",
    "age",
]


class ObjectMeta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None

    def label(self, name: str) -> str | None:
        return (self.labels or {}).get(name)


class StatusCondition(msgspec.Struct, frozen=True, rename="camel"):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class KubeJobStatus(msgspec.Struct, frozen=True, rename="camel"):
    conditions: list[StatusCondition] | None = None
    completion_time: str | None = None


class KubeJob(msgspec.Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    status: KubeJobStatus = KubeJobStatus()

    def condition(self, name: str) -> StatusCondition | None:
        found = (each for each in self.status.conditions or () if each.type == name and each.status == "True")
        return next(found, None)

    @property
    def is_complete(self) -> bool:
        return self.condition("Complete") is not None

    @property
    def is_over(self) -> bool:
        """All its pods have ended. `FailureTarget` and `SuccessCriteriaMet`, which come before that, do not count."""
        return self.is_complete or self.condition("Failed") is not None

    @property
    def ended_at(self) -> str | None:
        over = self.condition("Complete") or self.condition("Failed")
        return self.status.completion_time or (over.last_transition_time if over is not None else None)


class ContainerWaits(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class ContainerRuns(msgspec.Struct, frozen=True, rename="camel"):
    started_at: str | None = None


class ContainerEnded(msgspec.Struct, frozen=True, rename="camel"):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerPhase(msgspec.Struct, frozen=True):
    waiting: ContainerWaits | None = None
    running: ContainerRuns | None = None
    terminated: ContainerEnded | None = None


class ContainerLook(msgspec.Struct, frozen=True):
    """The status of one container of a pod."""

    name: str
    state: ContainerPhase = ContainerPhase()


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[StatusCondition] | None = None
    container_statuses: list[ContainerLook] | None = None
    init_container_statuses: list[ContainerLook] | None = None


class ResourceLimits(msgspec.Struct, frozen=True):
    limits: dict[str, Any] | None = None


class PodContainer(msgspec.Struct, frozen=True):
    name: str
    resources: ResourceLimits | None = None


class PodParts(msgspec.Struct, frozen=True):
    containers: list[PodContainer]


class KubePod(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: PodParts
    status: PodStatus = PodStatus()

    @property
    def main(self) -> PodContainer:
        """Its first container: whose log and result are the run's."""
        return self.spec.containers[0]

    @property
    def looks(self) -> list[ContainerLook]:
        """The main container first, those that prepare the pod last."""
        status = self.status
        found = sorted(status.container_statuses or (), key=lambda each: each.name != self.main.name)
        return [*found, *(status.init_container_statuses or ())]

    @property
    def has_started(self) -> bool:
        """Its main container runs, or has."""
        state = next((each.state for each in self.looks if each.name == self.main.name), None)
        return state is not None and (state.running is not None or state.terminated is not None)


class ClusterEvent(msgspec.Struct, frozen=True, rename="camel"):
    reason: str | None = None
    message: str | None = None
    type: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None

    @property
    def at(self) -> str:
        return self.last_timestamp or self.event_time or ""


class _ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    next_page: str | None = msgspec.field(default=None, name="continue")


class ObjectList(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw]
    metadata: _ListMeta = _ListMeta()


class WatchEvent(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


def age(stamp: str | None, now: float) -> float:
    """Seconds since then, by the clock of the API server; 0 if nobody knows."""
    if not stamp:
        return 0.0
    try:
        return max(0.0, now - datetime.fromisoformat(stamp).timestamp())
    except ValueError:
        return 0.0
