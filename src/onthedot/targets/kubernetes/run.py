"""One try of a run: its Job is found or created, followed, and ended if that is wanted."""

from __future__ import annotations

import asyncio

from onthedot.clock import Clock
from onthedot.model.run import Outcome
from onthedot.model.targets import KubernetesTarget
from onthedot.settings import KubernetesSetting
from onthedot.targets.contract import NOT_BEGUN, Call, Ended
from onthedot.targets.coroutine import take_cancel
from onthedot.targets.kubernetes.api import ApiAway, ApiRefused, JobTaken, KubernetesApi
from onthedot.targets.kubernetes.following import PAUSE, JobFollowing, NotStartedInTime
from onthedot.targets.kubernetes.link import ClusterElsewhere, ClusterLink
from onthedot.targets.kubernetes.manifest import is_ours, job_manifest, job_name, selector_of
from onthedot.targets.kubernetes.objects import KubeJob, KubePod, age
from onthedot.targets.kubernetes.pod_log import last_line
from onthedot.targets.kubernetes.verdict import outcome_of, why_it_waits
from onthedot.targets.kubernetes.watch import NamespaceWatch
from onthedot.targets.process.last_line import LastLine

__all__ = ["KubernetesRun"]

RESULT_WITHIN = 60.0
LATE = 5.0
"""Seconds ago: what ended before that ended while nobody followed it. The times of a cluster are whole seconds."""
_FINAL = (400, 413, 422)
"""The Job itself is wrong."""
_KILLS = ("cancelled", "timeout")


class NotMade(Exception):
    """There is no Job to follow; what is to be said of it."""

    def __init__(self, said: Outcome | Ended) -> None:
        self.said = said


class KubernetesRun:
    def __init__(
        self,
        call: Call,
        target: KubernetesTarget,
        setting: KubernetesSetting,
        api: KubernetesApi,
        link: ClusterLink,
        watch: NamespaceWatch,
        namespace: str,
        installation: str,
        *,
        clock: Clock,
        refused: str | None = None,
    ) -> None:
        """`refused`: why no Job may be created for it any more; one that is there goes on."""
        self._call, self._target, self._setting = call, target, setting
        self._api, self._link, self._watch = api, link, watch
        self._namespace, self._installation, self._clock = namespace, installation, clock
        self._refused = refused
        self._name = job_name(call.run_id, call.try_number)
        self._uid = link.uid if call.place is None else call.place.partition("@")[2].rpartition("/")[0]
        self._began: float | None = None

    async def carry_out(self) -> Outcome | Ended:
        call = self._call
        with self._watch.following(f"{call.run_id}-{call.try_number}") as seen:
            following = JobFollowing(
                self._api,
                self._link,
                self._uid,
                self._namespace,
                self._name,
                selector_of(self._installation, call),
                seen,
                call.log,
                clock=self._clock,
            )
            try:
                try:
                    seen.follow(await self._found_or_created())
                except asyncio.CancelledError:
                    if call.stopped not in _KILLS:
                        raise
                    if self._began is not None:
                        return await self._killed(following)
                    if call.adopted:
                        await following.stop()
                    raise
                return await self._follow(following)
            except NotMade as why:
                return why.said
            except ApiRefused as refused:
                return Outcome(kind="error", retryable=True, error=f"Kubernetes refused it: {refused}")
            except ApiAway as away:  # nothing was created: what was is followed until the API server is back
                self._link.lost(away)
                return NOT_BEGUN

    # the start

    async def _found_or_created(self) -> KubeJob:
        call = self._call
        if call.try_number > 1 and not call.adopted:
            await self._end_the_one_before()
        found = await self._found()
        if found is None:
            if not call.may_create:
                error = "its Job is gone, and nobody knows whether it ran"
                raise NotMade(Outcome(kind="unknown", error=error))
            if self._refused is not None:
                raise NotMade(Outcome(kind="refused", error=self._refused))
            if call.stopped is None and not call.may_begin():
                raise NotMade(NOT_BEGUN)
            self._begin(self._clock.monotonic())
            return await self._create()
        self._check_owner(found)
        self._begin(self._clock.monotonic() - age(found.metadata.creation_timestamp, self._api.now))
        return found

    async def _found(self) -> KubeJob | None:
        if not self._call.adopted:
            return await self._api.job(self._namespace, self._name)
        try:
            return await self._link.job_at(self._uid, self._namespace, self._name)
        except ClusterElsewhere:
            raise NotMade(NOT_BEGUN) from None

    async def _end_the_one_before(self) -> None:
        """What is left of it must not run beside this one; if it has ended, it is kept for who wants to look at it."""
        name = job_name(self._call.run_id, self._call.try_number - 1)
        found = await self._api.job(self._namespace, name)
        if found is not None and not found.is_over and found.metadata.deletion_timestamp is None:
            await self._api.delete_job(self._namespace, name, found.metadata.uid, "Foreground")

    async def _create(self) -> KubeJob:
        """From the first request on it may run: an answer that is lost does not say that it does not. So it is looked
        for until somebody answers, and asked for again only if it is not there: by its name there is only one."""
        body = job_manifest(self._call, self._target, self._setting, self._installation)
        while True:
            try:
                return await self._api.create_job(self._namespace, body)
            except JobTaken:  # by us, if an answer was lost or another node had it before
                found = await self._seen_again()
                if found is None:
                    error = "its Job was removed by somebody else before it was seen"
                    raise NotMade(Outcome(kind="error", retryable=True, error=error)) from None
                self._check_owner(found)
                return found
            except ApiRefused as refused:
                self._link.lost(refused)
                error = f"not started: Kubernetes refused it: {refused}"
                raise NotMade(Outcome(kind="error", retryable=refused.status not in _FINAL, error=error)) from None
            except ApiAway as away:
                self._link.lost(away)
                found = await self._seen_again()
            if found is not None:
                self._check_owner(found)
                return found
            if not self._call.may_begin():  # it may yet appear: whoever adopts the run finds it then
                raise NotMade(Ended(None, self._began))

    async def _seen_again(self) -> KubeJob | None:
        """Asked until the cluster answers."""
        while True:
            await asyncio.sleep(PAUSE)
            try:
                return await self._link.job_at(self._uid, self._namespace, self._name)
            except ClusterElsewhere:
                pass
            except (ApiAway, ApiRefused) as error:
                self._link.lost(error)

    def _check_owner(self, found: KubeJob) -> None:
        if not is_ours(found, self._call, self._installation):
            error = (
                f"namespace {self._namespace} has a Job {self._name} that is not of this installation: two of them may "
                "use one namespace only with different databases of jobs; remove it, or use another namespace"
            )
            raise NotMade(Outcome(kind="error", error=error))

    # the rest

    async def _follow(self, following: JobFollowing) -> Outcome | Ended:
        assert self._began is not None
        start_by = self._began + self._setting.start_within.seconds
        async with following.logged():
            try:
                over = await following.until_over(start_by)
                pod = await following.at_the_end() if over is not None else None
            except NotStartedInTime:
                words = why_it_waits(following.seen.pod, await following.events())
                error = f"not started within {self._setting.start_within}: {words}"
                await following.stop()
                return Outcome(kind="error", retryable=True, error=error)
            except asyncio.CancelledError:
                if self._call.stopped not in _KILLS:
                    raise
                return await self._killed(following)
        if over is None:
            error = "its Job was removed by somebody else before its result was read"
            return Outcome(kind="error", retryable=True, error=error)
        printed = await self._printed(pod) if over.is_complete and pod is not None else None
        events = [] if over.is_complete else await following.events()
        ago = age(over.ended_at, self._api.now)
        ended = None if ago < LATE else max(self._began, self._clock.monotonic() - ago)
        return Ended(outcome_of(over, pod, printed, events), self._began, ended)

    async def _killed(self, following: JobFollowing) -> Ended:
        """Of what never ran it is said why; everything else the engine knows."""
        take_cancel()
        outcome = None
        if self._call.stopped == "timeout" and not following.has_started:
            pod = await following.pod_now()
            if pod is None or not pod.has_started:
                words = why_it_waits(pod, await following.events())
                error = f"not started within {self._call.timeout:g} s: {words}"
                outcome = Outcome(kind="timeout", retryable=True, error=error)
        await following.stop()
        return Ended(outcome, self._began)

    async def _printed(self, pod: KubePod) -> LastLine | None:
        """None: nobody can tell what it printed, which is no reason to run it again."""
        try:
            async with asyncio.timeout(RESULT_WITHIN):
                while True:
                    try:
                        return await last_line(self._api, self._namespace, pod)
                    except ApiAway as away:
                        self._link.lost(away)
                        await asyncio.sleep(1.0)
        except (TimeoutError, ApiRefused):
            return None

    def _begin(self, at: float) -> None:
        if self._began is None:
            self._began = at
            self._call.begun(at)
