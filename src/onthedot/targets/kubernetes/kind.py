"""Kubernetes: a Job of a cluster for each try, with an image that the operator allows or a template of the operator's.

The Job of a try is named `<run id>-<try>`, and what has this name is this try: it is created once, whoever asks, and a
node that adopts the run finds it by that. A node that stops lets go of it; only a time-out and a cancel delete it while
it runs. It stays for a while after its end, so that the name is taken for whoever comes late, longer if it failed, and
is deleted by the sweep of the node once its result is recorded. Complete is done, with the last line of the log as the
result if it is JSON; everything else is an error that is tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from onthedot.clock import Clock, SystemClock
from onthedot.errors import Invalid, NotAvailable
from onthedot.model.image import ImageRule
from onthedot.model.quantity import read_quantity
from onthedot.model.run import Outcome
from onthedot.model.size import format_size
from onthedot.model.targets import KubernetesTarget
from onthedot.settings import KubernetesSetting
from onthedot.targets.contract import Call, Ended, Profile, TargetDiagnosis
from onthedot.targets.coroutine import CoroutineKind
from onthedot.targets.kubernetes.access import load_access
from onthedot.targets.kubernetes.api import KubernetesApi
from onthedot.targets.kubernetes.diagnosis import diagnosis_of_cluster
from onthedot.targets.kubernetes.following import STOP_WITHIN
from onthedot.targets.kubernetes.link import ClusterLink
from onthedot.targets.kubernetes.manifest import INSTALLATION, keep_failed_of, namespace_of, selector_of, try_of
from onthedot.targets.kubernetes.objects import KubeJob, age
from onthedot.targets.kubernetes.run import KubernetesRun
from onthedot.targets.kubernetes.watch import NamespaceWatch
from onthedot.targets.setup import KindSetup

__all__ = ["KubernetesJobs"]


class KubernetesJobs(CoroutineKind):
    """The kind `kubernetes`."""

    spec = KubernetesTarget

    def __init__(
        self,
        setting: KubernetesSetting,
        *,
        executes: bool = True,
        capacity: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`executes`: whether this node runs Jobs, or only lets jobs be made."""
        self.profile = Profile(capacity=capacity, survives_node=True, stop_within=STOP_WITHIN)
        self._setting = setting
        self._rules = [ImageRule.parse(pattern) for pattern in setting.images]
        self._executes = executes and setting.is_used
        self._clock = clock or SystemClock()
        self._api = KubernetesApi(lambda: load_access(setting))
        self._link = ClusterLink(self._api, setting)
        self._watches: dict[str, NamespaceWatch] = {}
        self._installation = "unknown"
        self._found: dict[str, tuple[str, str]] = {}  # namespace and name of Jobs, by `<run id>-<try>`

    @classmethod
    def of(cls, setup: KindSetup) -> KubernetesJobs:
        settings = setup.settings
        setting = settings.kubernetes
        executes = "executor" in settings.roles
        return cls(setting, executes=executes, capacity=setting.concurrency or settings.function_processes)

    def belong_to(self, installation: str) -> None:
        self._installation = installation

    async def __aenter__(self) -> Self:
        if self._executes:
            await self._link.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        for watch in self._watches.values():
            await watch.close()
        self._watches = {}
        await self._link.close()

    def capabilities(self) -> list[str]:
        """Nothing while the cluster is away: others may reach it."""
        if self._link.about is None:
            return []
        return [self.tag, *(f"{self.tag}@{self._link.place(namespace)}" for namespace in self._namespaces)]

    def adopted_by(self, target: KubernetesTarget) -> str:
        return f"{self.tag}@{self._link.place(self._namespace(target))}"

    @property
    def _namespaces(self) -> list[str]:
        """The one that Jobs go to that name none is the first."""
        setting = self._setting
        of_templates = (each.namespace for each in setting.templates.values())
        named = (setting.namespace or self._link.namespace, *setting.namespaces, *of_templates)
        return list(dict.fromkeys(filter(None, named)))

    def _namespace(self, target: KubernetesTarget) -> str:
        return namespace_of(target, self._setting, self._link.namespace)

    # whoever makes jobs

    def check(self, target: KubernetesTarget, tenant: int = 1) -> None:
        if not self._setting.is_used:
            problem = "not available: the operator allows no image and no template on this node"
            accepted = '[kubernetes] images = ["registry.example/*"] in onthedot.toml'
            raise NotAvailable.one("target.type", problem, given=target.type, accepted=accepted)
        if target.template is not None:
            if target.template not in self._setting.templates:
                accepted = ", ".join(self._setting.templates) or "none: the operator registers no template"
                raise Invalid.one("target.template", "unknown template", given=target.template, accepted=accepted)
            return
        if not any(rule.allows(target.image_name) for rule in self._rules if target.image_name is not None):
            accepted = ", ".join(self._setting.images) or "none: only templates are allowed"
            problem = f"{target.image_name} is not allowed by the operator"
            raise Invalid.one("target.image", problem, given=target.image, accepted=accepted)
        if target.namespace is not None and target.namespace not in self._namespaces:
            accepted = ", ".join(self._namespaces)
            raise Invalid.one(
                "target.namespace", "not allowed by the operator", given=target.namespace, accepted=accepted
            )
        if target.service_account is not None and target.service_account not in self._setting.service_accounts:
            accepted = ", ".join(self._setting.service_accounts) or "none: the operator allows no service account"
            given = target.service_account
            raise Invalid.one("target.service_account", "not allowed by the operator", given=given, accepted=accepted)
        self._check_resources(target)

    def _check_resources(self, target: KubernetesTarget) -> None:
        if target.resources is None:
            return
        setting = self._setting
        most = {"memory": (setting.memory, format_size(setting.memory)), "cpu": (setting.cpus, f"{setting.cpus:g}")}
        for field, amounts in (("limits", target.resources.limits), ("requests", target.resources.requests)):
            for name, (limit, words) in most.items():
                if name in amounts and read_quantity(amounts[name]) > limit:
                    accepted = f"at most {words}, the limit that the operator set in [kubernetes]"
                    path = f"target.resources.{field}.{name}"
                    raise Invalid.one(path, "too large", given=amounts[name], accepted=accepted)

    def problem(self, target: KubernetesTarget, tenant: int = 1) -> str | None:
        return self.refusal(target, tenant)

    async def diagnose(self) -> Sequence[TargetDiagnosis]:
        if not self._executes:
            return ()
        return (await diagnosis_of_cluster(KubernetesApi(lambda: load_access(self._setting)), self._setting),)

    # runs

    async def send(self, call: Call) -> Outcome | Ended:
        assert isinstance(call.target, KubernetesTarget)
        refused = self.problem(call.target)  # the operator may have changed what is allowed since the job was made
        if refused is not None and not call.adopted:
            return Outcome(kind="refused", error=refused)
        namespace = self._namespace(call.target)
        run = KubernetesRun(
            call,
            call.target,
            self._setting,
            self._api,
            self._link,
            self._watch(namespace),
            namespace,
            self._installation,
            clock=self._clock,
            refused=refused,
        )
        return await run.carry_out()

    def _watch(self, namespace: str) -> NamespaceWatch:
        if namespace not in self._watches:
            selector = selector_of(self._installation)
            self._watches[namespace] = NamespaceWatch(self._api, self._link, namespace, selector)
        return self._watches[namespace]

    # what is left

    async def inventory(self) -> Sequence[str]:
        """Those that run, and those that ended so long ago that nobody can come late for them."""
        if self._link.about is None:
            return ()
        found: dict[str, tuple[str, str]] = {}
        for namespace in self._namespaces:
            async for job in self._api.jobs(namespace, selector_of(self._installation)):
                if self._may_go(job):
                    found[try_of(job.metadata)] = (namespace, job.metadata.name)
        self._found = found
        return list(found)

    def _may_go(self, job: KubeJob) -> bool:
        if not job.is_over:
            return True
        keep = self._setting.keep / 1000
        return age(job.ended_at, self._api.now) >= (keep if job.is_complete else max(keep, keep_failed_of(job)))

    async def remove(self, name: str) -> bool:
        """Not what has ended and was recorded only after it was listed: that is kept as long as any other."""
        namespace, job_name = self._found.get(name, ("", ""))
        found = await self._api.job(namespace, job_name) if namespace else None
        if found is None or found.metadata.label(INSTALLATION) != self._installation or not self._may_go(found):
            return False
        if found.metadata.deletion_timestamp is not None:
            return False  # on its way
        policy = "Background" if found.is_over else "Foreground"
        await self._api.delete_job(namespace, job_name, found.metadata.uid, policy)
        return True
