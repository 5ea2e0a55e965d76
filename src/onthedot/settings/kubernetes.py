"""Parses the tables [kubernetes] and [kubernetes.templates.NAME]."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from onthedot.model.duration import DAY, SECOND
from onthedot.model.image import ImageRule
from onthedot.model.size import read_size
from onthedot.settings.pod_template import pod_template_problems
from onthedot.settings.structs import KubernetesSetting, KubernetesTemplate
from onthedot.settings.wrong_value import WrongValue, read_duration, wrong_field

__all__ = ["parse_kubernetes"]

_ACCEPTED = (
    'a table [kubernetes] with images = ["registry.example/*", …], kubeconfig = "FILE", context = "NAME", '
    'namespace = "NAME", namespaces = ["NAME", …], service_accounts = ["NAME", …], memory = "1G", cpus = 1, '
    'concurrency = 4, start_within = "15m", keep = "10m" and place = "NAME", and tables [kubernetes.templates.NAME] '
    'with file = "pod.yaml" or metadata and spec of a pod, and optionally namespace, or the same as JSON'
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", re.ASCII)
_PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}", re.ASCII)
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_DEFAULT = KubernetesSetting()


class _Template(msgspec.Struct, forbid_unknown_fields=True):
    file: str | None = None
    metadata: dict[str, Any] | None = None
    spec: dict[str, Any] | None = None
    namespace: str | None = None


class _KubernetesTable(msgspec.Struct, forbid_unknown_fields=True):
    images: list[str] = []
    templates: dict[str, _Template] = {}
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    namespaces: list[str] = []
    service_accounts: list[str] = []
    memory: str = "1G"
    cpus: float = _DEFAULT.cpus
    concurrency: int | None = None
    start_within: str | float = str(_DEFAULT.start_within)
    keep: str | float = str(_DEFAULT.keep)
    place: str | None = None


def parse_kubernetes(value: Any) -> KubernetesSetting:
    if isinstance(value, KubernetesSetting):
        return value
    try:
        table = (
            msgspec.json.decode(value, type=_KubernetesTable)
            if isinstance(value, str)
            else msgspec.convert(value, _KubernetesTable)
        )
        for pattern in table.images:
            ImageRule.parse(pattern)
        keep = read_duration(table.keep, "kubernetes.keep")
        start_within = read_duration(table.start_within, "kubernetes.start_within")
        memory = read_size(table.memory)
        templates = {name: _template(name, given) for name, given in table.templates.items()}
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise WrongValue(_ACCEPTED, wrong_field(error, value, _KubernetesTable, "kubernetes")) from None
    spaces = (table.namespace, *table.namespaces, *(each.namespace for each in templates.values()))
    for name, fits in (
        ("cpus", 0.01 <= table.cpus <= 256),
        ("concurrency", table.concurrency is None or 1 <= table.concurrency <= 10_000),
        ("keep", 0 <= keep <= 30 * DAY),
        ("start_within", SECOND <= start_within <= 7 * DAY),
        ("place", table.place is None or _PLACE.fullmatch(table.place)),
        ("namespace", all(each is None or _LABEL.fullmatch(each) for each in spaces)),
    ):
        if not fits:
            raise WrongValue(_ACCEPTED, f"kubernetes.{name} is not valid")
    return KubernetesSetting(
        images=tuple(dict.fromkeys(table.images)),
        templates=templates,
        kubeconfig=table.kubeconfig,
        context=table.context,
        namespace=table.namespace,
        namespaces=tuple(dict.fromkeys(table.namespaces)),
        service_accounts=tuple(dict.fromkeys(table.service_accounts)),
        memory=memory,
        cpus=table.cpus,
        concurrency=table.concurrency,
        start_within=start_within,
        keep=keep,
        place=table.place,
    )


def _template(name: str, given: _Template) -> KubernetesTemplate:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid name of a template")
    if (given.file is None) == (given.spec is None):
        raise ValueError(f"templates.{name} must have either file or spec")
    pod = _from_file(name, given.file) if given.file is not None else {"spec": given.spec}
    if given.metadata is not None:
        pod = {**pod, "metadata": given.metadata}
    problems = [*pod_template_problems(pod)] or [*_rules(pod)]
    if problems:
        raise ValueError(f"templates.{name}: {'; '.join(problems[:5])}")
    return KubernetesTemplate(pod=pod, namespace=given.namespace)


def _from_file(name: str, file: str) -> dict[str, Any]:
    """A manifest of a Pod, or metadata and spec alone."""
    try:
        found = yaml.safe_load(Path(file).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(f"templates.{name}: {file} can't be read: {error}") from None
    if not isinstance(found, dict):
        raise TypeError(f"templates.{name}: {file} has no metadata and spec")
    kind, version = found.pop("kind", "Pod"), found.pop("apiVersion", "v1")
    if (kind, version) != ("Pod", "v1"):
        raise ValueError(f"templates.{name}: {file} is a {kind} of {version}; accepted is a Pod of v1")
    return found


def _rules(pod: dict[str, Any]) -> list[str]:
    """What would take from us how a run ends."""
    spec = pod.get("spec") or {}
    wrong = []
    if not spec.get("containers"):
        wrong.append("spec.containers is empty")
    if spec.get("restartPolicy", "Never") != "Never":
        wrong.append("spec.restartPolicy must be Never: retries are the job's policy")
    if "activeDeadlineSeconds" in spec:
        wrong.append("spec.activeDeadlineSeconds can't be set: the timeout is the job's policy")
    if "ephemeralContainers" in spec:
        wrong.append("spec.ephemeralContainers can't be set: Kubernetes adds them to pods that run")
    others = (pod.get("metadata") or {}).keys() - {"labels", "annotations"}
    return [*wrong, *(f"metadata.{field} can't be set: only labels and annotations" for field in sorted(others))]
