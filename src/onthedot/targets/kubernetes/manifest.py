"""What a cluster is told to run: a Job of one pod that is started once, and nothing that the operator did not allow."""

from __future__ import annotations

import math
from hashlib import sha256
from typing import Any

from onthedot.model.duration import DAY
from onthedot.model.targets import KubernetesTarget
from onthedot.model.targets.kubernetes import PodResources
from onthedot.settings import KubernetesSetting
from onthedot.targets.contract import Call, run_environment
from onthedot.targets.kubernetes.objects import KubeJob, ObjectMeta

__all__ = [
    "GRACE",
    "INSTALLATION",
    "is_ours",
    "job_manifest",
    "job_name",
    "keep_failed_of",
    "namespace_of",
    "selector_of",
    "try_of",
]

INSTALLATION, RUN, TRY = "onthedot.installation", "onthedot.run", "onthedot.try"
KEEP_FAILED = "onthedot.keep-failed-seconds"
GRACE = 10
"""Seconds between SIGTERM and SIGKILL."""
DEADLINE_AFTER = 60
"""Seconds after the time-out at which the cluster ends a Job that no node has ended."""
NET = 7 * DAY // 1000
"""Seconds after its end at which the cluster deletes a Job that no node has deleted."""
LONGEST_NAME = 63


def job_name(run_id: str, try_number: int) -> str:
    """The fence: whoever has this try asks for the same Job, and only one can create it."""
    name = f"{run_id}-{try_number}"
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:20]}-{sha256(name.encode()).hexdigest()[:32]}-{try_number}"


def namespace_of(target: KubernetesTarget, setting: KubernetesSetting, default: str) -> str:
    if target.template is not None:
        template = setting.templates.get(target.template)
        return (template.namespace if template is not None else None) or setting.namespace or default
    return target.namespace or setting.namespace or default


def is_ours(found: KubeJob, call: Call, installation: str) -> bool:
    label = found.metadata.label
    return (label(INSTALLATION), label(RUN), label(TRY)) == (installation, call.run_id, str(call.try_number))


def try_of(meta: ObjectMeta) -> str:
    """`<run id>-<try>`, by its labels: a name may have been too long."""
    return f"{meta.label(RUN)}-{meta.label(TRY)}"


def selector_of(installation: str, call: Call | None = None) -> str:
    """Of everything that is ours, or of one try."""
    ours = f"{INSTALLATION}={installation}"
    return ours if call is None else f"{ours},{RUN}={call.run_id},{TRY}={call.try_number}"


def keep_failed_of(found: KubeJob) -> float:
    """Seconds."""
    try:
        return float((found.metadata.annotations or {}).get(KEEP_FAILED, "0"))
    except ValueError:
        return 0.0


def job_manifest(call: Call, target: KubernetesTarget, setting: KubernetesSetting, installation: str) -> dict[str, Any]:
    """One pod, never started again: `backoffLimit: 0` alone still allows a second one where the first was evicted or
    deleted while it runs."""
    labels = {INSTALLATION: installation, RUN: call.run_id, TRY: str(call.try_number)}
    labels["onthedot.tenant"] = str(call.tenant)
    annotations = {"onthedot.job": call.key or str(call.job_id), KEEP_FAILED: f"{target.keep_failed.seconds:g}"}
    pod = _pod_of_template(target.template, setting) if target.template is not None else _pod_of_image(target, setting)
    meta = pod.get("metadata") or {}
    spec = dict(pod["spec"])
    first, *others = spec["containers"]
    spec |= {"restartPolicy": "Never", "containers": [_with_environment(first, call), *others]}
    body: dict[str, Any] = {
        "backoffLimit": 0,
        "completions": 1,
        "parallelism": 1,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
        },
        "ttlSecondsAfterFinished": NET,
        "template": {
            "metadata": {
                "labels": {**(meta.get("labels") or {}), **labels},
                "annotations": {**(meta.get("annotations") or {}), **annotations},
            },
            "spec": spec,
        },
    }
    if call.timeout is not None:
        body["activeDeadlineSeconds"] = math.ceil(call.timeout) + DEADLINE_AFTER
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(call.run_id, call.try_number),
            "labels": labels,
            "annotations": annotations,
        },
        "spec": body,
    }


def _pod_of_template(name: str, setting: KubernetesSetting) -> dict[str, Any]:
    return setting.templates[name].pod


def _pod_of_image(target: KubernetesTarget, setting: KubernetesSetting) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "main",
        "image": str(target.image_name),
        "resources": _resources(target.resources or PodResources(), setting),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "env": [{"name": name, "value": _literal(value)} for name, value in target.env.items()],
    }
    if target.command:
        container["command"] = [_literal(word) for word in target.command]
    if target.args:
        container["args"] = [_literal(word) for word in target.args]
    spec: dict[str, Any] = {
        "containers": [container],
        "terminationGracePeriodSeconds": GRACE,
        "enableServiceLinks": False,
        "automountServiceAccountToken": target.service_account is not None,
    }
    if target.service_account is not None:
        spec["serviceAccountName"] = target.service_account
    return {"spec": spec}


def _with_environment(container: dict[str, Any], call: Call) -> dict[str, Any]:
    ours = run_environment(call)
    kept = [each for each in container.get("env") or () if each.get("name") not in ours]
    return {**container, "env": [*kept, *({"name": name, "value": _literal(value)} for name, value in ours.items())]}


def _literal(text: str) -> str:
    """Kubernetes replaces `$(NAME)` in values and arguments by variables of the pod; `$$` stands for one dollar."""
    return text.replace("$(", "$$(")


def _resources(given: PodResources, setting: KubernetesSetting) -> dict[str, Any]:
    """Without a request, Kubernetes takes the limit for it."""
    memory = f"{setting.memory >> 20}Mi" if setting.memory % (1 << 20) == 0 else str(setting.memory)
    limits = {"cpu": f"{setting.cpus:g}", "memory": memory, **given.limits}
    found = {"limits": {name: _amount(amount) for name, amount in limits.items()}}
    if given.requests:
        found["requests"] = {name: _amount(amount) for name, amount in given.requests.items()}
    return found


def _amount(given: str | float) -> str:
    return given if isinstance(given, str) else f"{given:.12g}"
