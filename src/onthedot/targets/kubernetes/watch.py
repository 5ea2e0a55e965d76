"""Follows the Jobs of this installation in one namespace, and their pods: one list and one watch of each, for all runs.

A watch goes on from the version that was seen last. If the API server does not have that any more (410 Gone), it is
listed anew. Whoever follows a Job is only told that it changed, or may be gone: the API server itself is asked before
anything is concluded from a Job that is not seen.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

import msgspec

from onthedot.targets.kubernetes.api import ApiAway, ApiRefused, KubernetesApi, VersionGone, refusal
from onthedot.targets.kubernetes.link import ClusterLink
from onthedot.targets.kubernetes.manifest import try_of
from onthedot.targets.kubernetes.objects import KubeJob, KubePod, ObjectMeta, WatchEvent

__all__ = ["NamespaceWatch", "SeenJob"]

WATCH_SECONDS = 240
"""After so many seconds the API server ends a watch by itself, and it is asked for anew."""
SILENCE = WATCH_SECONDS + 30.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0


class SeenJob:
    """What was seen last of one try. `changed` is set with each news; `doubt`: its Job may be gone."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.job: KubeJob | None = None
        self.pod: KubePod | None = None
        self.doubt = False
        self._told: KubeJob | None = None  # by the watch, which may be faster than the answer to who made it

    def follow(self, job: KubeJob) -> None:
        """This very Job: news of one that had its name before are none."""
        is_told = self._told is not None and self._told.metadata.uid == job.metadata.uid
        self.job, self.doubt = self._told if is_told and not job.is_over else job, False

    def tell(self, found: KubeJob | KubePod) -> None:
        if isinstance(found, KubePod):
            self.pod = found
        else:
            self._told = found
            if self.job is not None and self.job.metadata.uid == found.metadata.uid:
                self.job = found
        self.changed.set()

    async def news(self, within: float) -> bool:
        """False: there were none."""
        try:
            async with asyncio.timeout(within):
                await self.changed.wait()
        except TimeoutError:
            return False
        self.changed.clear()
        return True


T = TypeVar("T", KubeJob, KubePod)


class _Meta(msgspec.Struct):
    metadata: ObjectMeta


class _ObjectWatch(Generic[T]):
    """One kind of object."""

    def __init__(self, watch: NamespaceWatch, path: str, kind: type[T]) -> None:
        self._watch, self._path = watch, path
        self._kind: type[T] = kind

    async def run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                version = await self._list()
                pause = FIRST_PAUSE
                while True:
                    version = await self._follow(version)
            except VersionGone:
                await asyncio.sleep(FIRST_PAUSE)
            except (ApiAway, ApiRefused) as error:
                self._watch.link.lost(error)
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _list(self) -> str:
        names: set[str] = set()
        after = ""
        while True:
            page = await self._watch.api.page(self._path, self._watch.selector, after)
            for raw in page.items:
                found = msgspec.json.decode(raw, type=self._kind)
                names.add(try_of(found.metadata))
                self._watch.saw(found)
            after = page.metadata.next_page or ""
            if not after:
                self._watch.listed(self._kind, names)
                return page.metadata.resource_version

    async def _follow(self, version: str) -> str:
        """The version that was seen last, when the API server ends it."""
        query = {
            "watch": "1",
            "labelSelector": self._watch.selector,
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        async with self._watch.api.stream(self._path, query, SILENCE) as lines:
            async for event in _events(lines):
                if event.type == "ERROR":
                    raise refusal(200, bytes(event.object))
                meta = msgspec.json.decode(event.object, type=_Meta).metadata
                version = meta.resource_version
                if event.type == "DELETED":
                    self._watch.gone(try_of(meta))
                elif event.type != "BOOKMARK":
                    self._watch.saw(msgspec.json.decode(event.object, type=self._kind))
        return version


async def _events(lines: AsyncIterator[bytes]) -> AsyncIterator[WatchEvent]:
    async for line in lines:
        if line.endswith(b"\n"):  # else it was cut
            try:
                yield msgspec.json.decode(line, type=WatchEvent)
            except msgspec.MsgspecError as error:
                raise ApiAway(f"the API server sent an invalid watch event: {error}") from error


class NamespaceWatch:
    """Runs from the first Job that is followed on."""

    def __init__(self, api: KubernetesApi, link: ClusterLink, namespace: str, selector: str) -> None:
        self.api, self.link, self.selector = api, link, selector
        self._seen: dict[str, list[SeenJob]] = {}
        self._watches = (
            _ObjectWatch(self, f"/apis/batch/v1/namespaces/{namespace}/jobs", KubeJob),
            _ObjectWatch(self, f"/api/v1/namespaces/{namespace}/pods", KubePod),
        )
        self._tasks: list[asyncio.Task[None]] = []

    @contextmanager
    def following(self, name: str) -> Iterator[SeenJob]:
        """`<run id>-<try>`; the same one may be followed twice for a moment, when it comes back to this node."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(watch.run(), name="onthedot-kubernetes") for watch in self._watches]
        seen = SeenJob()
        self._seen.setdefault(name, []).append(seen)
        try:
            yield seen
        finally:
            self._seen[name].remove(seen)
            if not self._seen[name]:
                del self._seen[name]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    def saw(self, found: KubeJob | KubePod) -> None:
        for seen in self._seen.get(try_of(found.metadata), ()):
            seen.tell(found)

    def gone(self, name: str) -> None:
        for seen in self._seen.get(name, ()):
            seen.doubt = True
            seen.changed.set()

    def listed(self, kind: type[KubeJob | KubePod], names: set[str]) -> None:
        """What was deleted while nobody watched is not told of any more."""
        if kind is KubeJob:
            for name in self._seen.keys() - names:
                self.gone(name)
