"""One Job from its creation to its end: followed, however often the API server goes away, and ended if wanted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from onthedot.clock import Clock
from onthedot.targets.coroutine import take_cancel
from onthedot.targets.kubernetes.api import ApiAway, ApiRefused, KubernetesApi
from onthedot.targets.kubernetes.link import ClusterElsewhere, ClusterLink
from onthedot.targets.kubernetes.manifest import GRACE
from onthedot.targets.kubernetes.objects import ClusterEvent, KubeJob, KubePod
from onthedot.targets.kubernetes.pod_log import PodLog
from onthedot.targets.kubernetes.watch import SeenJob

__all__ = ["STOP_WITHIN", "JobFollowing"]

STOP_WITHIN = GRACE + 20.0
"""Seconds in which a cluster that works has ended a pod."""
STOP_AGAIN_FOR = 60.0
"""Seconds for which it is asked beyond that, after its end was recorded."""
LOOK_EVERY = 30.0
"""Without news it is asked for so often: a watch may be dead without a word."""
LOG_WITHIN = 120.0
"""Seconds for the rest of the log after the end."""
LAST_WORDS_WITHIN = 2.0
"""… after it was ended."""
WORDS_WITHIN = 5.0
PAUSE = 0.3


class NotStartedInTime(Exception):
    """Nothing of it ran within the time that the operator allows for that."""


class JobFollowing:
    def __init__(
        self,
        api: KubernetesApi,
        link: ClusterLink,
        uid: str,
        namespace: str,
        name: str,
        selector: str,
        seen: SeenJob,
        log: Callable[[str], None],
        *,
        clock: Clock,
    ) -> None:
        """`uid`: of the cluster."""
        self._api, self._link, self._uid = api, link, uid
        self._namespace, self._name, self._selector = namespace, name, selector
        self.seen = seen
        self._clock = clock
        self._log = PodLog(api, namespace, seen, log)
        self._reading: asyncio.Task[None] | None = None
        self._is_stopped = False

    @property
    def has_started(self) -> bool:
        return self._log.started.is_set()

    async def until_over(self, start_by: float) -> KubeJob | None:
        """How it ended; None: it is gone. NotStartedInTime at `start_by`, on the monotonic clock, if nothing of it ran
        until then. Whether it goes on is asked apart from its log, which may end at any time."""
        look = False
        while True:
            if (look or self.seen.doubt) and not await self._look():
                return None
            if self.seen.pod is not None and self.seen.pod.has_started:
                self._log.started.set()
            job = self.seen.job
            if job is not None and job.is_over:
                return job
            within = LOOK_EVERY
            if not self.has_started:
                within = min(within, start_by - self._clock.monotonic())
                if within <= 0 and not await self._has_started_now():
                    raise NotStartedInTime
            look = not await self.seen.news(max(0.01, within))

    async def _look(self) -> bool:
        """False: it is gone."""
        while True:
            try:
                job = await self._link.job_at(self._uid, self._namespace, self._name)
                if job is not None:
                    self.seen.follow(job)
                return job is not None
            except ClusterElsewhere:
                pass
            except (ApiAway, ApiRefused) as error:
                self._link.lost(error)
            await asyncio.sleep(PAUSE)

    async def _has_started_now(self) -> bool:
        try:
            self.seen.pod = await self.pod()
        except (ApiAway, ApiRefused) as error:  # nobody knows
            self._link.lost(error)
            await asyncio.sleep(PAUSE)
            return True
        return self.seen.pod is not None and self.seen.pod.has_started

    async def pod(self) -> KubePod | None:
        """As it is now. There is one; what is gone by itself is not there any more."""
        pods = await self._api.pods_of(self._namespace, self._selector)
        return max(pods, key=lambda pod: pod.metadata.creation_timestamp or "", default=None)

    async def pod_now(self) -> KubePod | None:
        """As `pod`, or what was seen last, if it can't be asked in a few seconds."""
        with suppress(ApiAway, ApiRefused, TimeoutError):
            async with asyncio.timeout(WORDS_WITHIN):
                self.seen.pod = await self.pod()
        return self.seen.pod

    async def at_the_end(self) -> KubePod | None:
        """Its pod, asked until somebody answers: the run's exit code is there."""
        while True:
            try:
                pod = await self.pod()
                if pod is not None:
                    self.seen.pod = pod
                    self._log.started.set()
                return pod
            except ApiRefused:
                return self.seen.pod
            except ApiAway as away:
                self._link.lost(away)
                await asyncio.sleep(PAUSE)

    async def events(self) -> list[ClusterEvent]:
        """What the cluster tells of it: nothing, if it can't be asked in a few seconds."""
        names = [self._name, *([self.seen.pod.metadata.name] if self.seen.pod is not None else [])]
        found: list[ClusterEvent] = []
        with suppress(ApiAway, ApiRefused, TimeoutError):
            async with asyncio.timeout(WORDS_WITHIN):
                for name in names:
                    found += await self._api.events_of(self._namespace, name)
        return found

    @asynccontextmanager
    async def logged(self) -> AsyncIterator[None]:
        """Its log is followed inside, and read to its end on the way out; not if it is left by an error."""
        reading = self._reading = asyncio.create_task(self._log.run(), name=f"onthedot-log-{self._name}")
        try:
            yield
            if not self._is_stopped:
                await self._read_rest(LOG_WITHIN)
        finally:
            self._reading = None
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read_rest(self, within: float) -> None:
        self._log.over.set()
        if self._reading is not None and self.has_started:
            await asyncio.wait({self._reading}, timeout=within)

    async def stop(self) -> None:
        """Deleted, with time to tidy up; it is gone when its pod is. An API server that is away is asked until the time
        is up. The engine does not wait as long: it says then that it may still be running."""
        take_cancel()
        self._is_stopped = True
        try:
            async with asyncio.timeout(STOP_WITHIN + STOP_AGAIN_FOR):
                while not await self._is_gone():
                    await self.seen.news(PAUSE)
        except TimeoutError:
            return
        await self._read_rest(LAST_WORDS_WITHIN)

    async def _is_gone(self) -> bool:
        try:
            job = await self._link.job_at(self._uid, self._namespace, self._name)
            if job is None:
                return True
            if job.metadata.deletion_timestamp is None:
                await self._api.delete_job(self._namespace, self._name, job.metadata.uid, "Foreground")
        except ClusterElsewhere:
            pass
        except (ApiAway, ApiRefused) as error:
            self._link.lost(error)
        return False
