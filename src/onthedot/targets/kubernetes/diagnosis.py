"""What `onthedot doctor` says of the cluster."""

from __future__ import annotations

from onthedot.settings import KubernetesSetting
from onthedot.targets.contract import TargetDiagnosis
from onthedot.targets.kubernetes.api import ApiAway, ApiRefused, KubernetesApi
from onthedot.targets.kubernetes.link import look_at

__all__ = ["diagnosis_of_cluster"]

_SUBJECT = "kubernetes"
_RIGHTS = (
    *((verb, "jobs", "batch", "") for verb in ("create", "get", "list", "watch", "delete")),
    *((verb, "pods", "", "") for verb in ("list", "watch")),
    ("get", "pods", "", "log"),
    ("list", "events", "", ""),
)
_ADVICE = "apply the Role of docs/kubernetes.md in this namespace, and bind it to the account of the node"


async def diagnosis_of_cluster(api: KubernetesApi, setting: KubernetesSetting) -> TargetDiagnosis:
    try:
        about = await look_at(api, setting)
        assert api.access is not None
        found = f"{about.version} at {api.address} ({api.access.origin})"
        if about.lacks is not None:
            return TargetDiagnosis(_SUBJECT, f"{found}: {about.lacks}", _ADVICE)
        named = (*setting.namespaces, *(each.namespace for each in setting.templates.values()))
        spaces = list(dict.fromkeys((about.namespace, *filter(None, named))))
        for namespace in spaces:
            lacking = [
                f"{verb} {resource}{'/' + part if part else ''}"
                for verb, resource, group, part in _RIGHTS
                if not await api.may(verb, namespace, resource, group, part)
            ]
            if lacking:
                missing = f"it may not {', '.join(lacking)} in namespace {namespace}"
                return TargetDiagnosis(_SUBJECT, f"{found}: {missing}", _ADVICE)
    except (ApiAway, ApiRefused) as error:
        return TargetDiagnosis(_SUBJECT, str(error), _advice(error))
    finally:
        await api.close()
    what = ", ".join((*setting.images, *(f"template {name}" for name in setting.templates)))
    return TargetDiagnosis(_SUBJECT, f"{found}, namespace {', '.join(spaces)}, place {about.uid}; {what}")


def _advice(error: ApiAway | ApiRefused) -> str:
    if isinstance(error, ApiAway):
        return "check that the address of the API server is right, that it answers, and that its certificate is trusted"
    if error.status == 401:
        return "the API server does not accept these credentials: renew the token or certificate of the node"
    if error.status == 403:
        return "allow the node to get the namespace kube-system (docs/kubernetes.md), or set [kubernetes] place"
    return "run the node in a cluster, or correct [kubernetes] kubeconfig and context"
