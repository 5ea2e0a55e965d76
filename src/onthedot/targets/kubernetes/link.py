"""Whether the API server answers, and which cluster it is. Away, it is looked for again and again, and no run is begun
meanwhile: what is due waits for a node that reaches its cluster."""

from __future__ import annotations

import msgspec

from onthedot.settings import KubernetesSetting
from onthedot.targets.kubernetes.api import ApiAway, ApiRefused, KubernetesApi
from onthedot.targets.kubernetes.objects import KubeJob
from onthedot.targets.reconnection import Reconnection
from onthedot.telemetry import emit

__all__ = ["ClusterAbout", "ClusterElsewhere", "ClusterLink", "look_at"]


class ClusterElsewhere(Exception):
    """Who answers is not the cluster that was asked for: what it does not have may well be there."""


class ClusterAbout(msgspec.Struct, frozen=True):
    """Who it is. `lacks`: why no Job can be made there; None: they can."""

    version: str  # v1.33.1
    uid: str  # the same for every node that reaches it
    namespace: str  # of Jobs that name none
    lacks: str | None = None


async def look_at(api: KubernetesApi, setting: KubernetesSetting) -> ClusterAbout:
    """Files with addresses and credentials are read again: they may have been the reason why it was away."""
    await api.reload()
    assert api.access is not None
    version = await api.version()
    uid = setting.place
    if uid is None:
        try:
            uid = await api.cluster_uid()
        except ApiRefused as refused:
            if refused.status == 401:
                raise
            why = "it may not read the namespace kube-system, whose uid says which cluster it is"
            raise ApiRefused(refused.status, refused.reason, f"{why} ({refused})") from refused
    namespace = setting.namespace or api.access.namespace
    named = (*setting.namespaces, *(each.namespace for each in setting.templates.values()))
    for each in dict.fromkeys((namespace, *filter(None, named))):
        if not await api.may("create", each, "jobs", "batch"):
            return ClusterAbout(version, uid, namespace, f"it may not create Jobs in namespace {each}")
    return ClusterAbout(version, uid, namespace)


class ClusterLink:
    """Kept by a task of its own, from `open` to `close`."""

    def __init__(self, api: KubernetesApi, setting: KubernetesSetting) -> None:
        self._api, self._setting = api, setting
        self.about: ClusterAbout | None = None  # None: it does not answer
        self.uid = setting.place or "unknown"
        self.namespace = setting.namespace or "default"
        self._is_told = False
        self._reconnection = Reconnection(self._look, lambda: self.about is not None, "onthedot-kubernetes-link")

    async def open(self) -> None:
        await self._reconnection.open()

    async def close(self) -> None:
        await self._reconnection.close()
        await self._api.close()

    def place(self, namespace: str) -> str:
        return f"{self.uid}/{namespace}"

    def lost(self, why: ApiAway | ApiRefused) -> None:
        """A call found that it does not answer, or does not know us any more. That it refuses one thing says nothing of
        others."""
        if self.about is not None and (isinstance(why, ApiAway) or why.status == 401):
            self.about = None
            self._tell(str(why))
            self._reconnection.lost()

    async def is_at(self, uid: str) -> bool:
        """Whether who answers now is this cluster: only then is what it does not have gone."""
        try:
            found = self._setting.place or await self._api.cluster_uid()
        except (ApiAway, ApiRefused) as error:
            self.lost(error)
            return False
        return found == uid

    async def job_at(self, uid: str, namespace: str, name: str) -> KubeJob | None:
        """None: it is gone. That counts only from a cluster that was this one before and after it was asked: an address
        may lead to another for a moment, and its answer does not say whose it is."""
        found = await self._api.job(namespace, name)
        if found is None and await self.is_at(uid):
            found = await self._api.job(namespace, name)
            if found is None and await self.is_at(uid):
                return None
        if found is None:
            raise ClusterElsewhere
        return found

    async def _look(self) -> bool:
        try:
            about = await look_at(self._api, self._setting)
        except (ApiAway, ApiRefused) as error:
            self.about = None
            self._tell(str(error))
            return False
        if about.lacks is not None:
            self.about = None
            self._tell(about.lacks)
            return False
        if self.about is None:
            emit("kubernetes.cluster", address=self._api.address, version=about.version)
        self.uid, self.namespace = about.uid, about.namespace
        self.about, self._is_told = about, False
        return True

    def _tell(self, why: str) -> None:
        if not self._is_told:  # once until it is back, not with every look
            self._is_told = True
            emit("kubernetes.unavailable", address=self._api.address, error=why)
