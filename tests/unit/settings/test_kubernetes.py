"""[kubernetes]: what is read, what is wrong, and templates that are checked field by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onthedot.errors import SettingsError
from onthedot.model.duration import MINUTE, SECOND, Duration
from onthedot.settings import KubernetesSetting, KubernetesTemplate, load_settings
from scripts import pod_fields


def loaded(table: Any, tmp_path: Path) -> KubernetesSetting:
    (tmp_path / "none.toml").write_text("")
    environ = {"ONTHEDOT_KUBERNETES": json.dumps(table)}
    return load_settings({}, environ=environ, file=tmp_path / "none.toml").kubernetes


POD = {"containers": [{"name": "main", "image": "alpine", "resources": {"limits": {"memory": "1Gi", "cpu": 1}}}]}


def test_what_is_read(tmp_path):
    assert loaded({}, tmp_path) == KubernetesSetting()
    assert not KubernetesSetting().is_used
    (tmp_path / "pod.yaml").write_text(f"apiVersion: v1\nkind: Pod\nspec: {json.dumps(POD)}\n")
    table = {
        "images": ["alpine", "alpine"],
        "kubeconfig": "/etc/kube",
        "context": "prod",
        "namespace": "jobs",
        "namespaces": ["batch"],
        "service_accounts": ["reader"],
        "memory": "2G",
        "cpus": 0.5,
        "concurrency": 3,
        "start_within": "30s",
        "keep": "1m",
        "place": "here",
        "templates": {"a": {"file": str(tmp_path / "pod.yaml")}, "b": {"spec": POD, "namespace": "other"}},
    }
    assert loaded(table, tmp_path) == KubernetesSetting(
        images=("alpine",),
        kubeconfig="/etc/kube",
        context="prod",
        namespace="jobs",
        namespaces=("batch",),
        service_accounts=("reader",),
        memory=2 << 30,
        cpus=0.5,
        concurrency=3,
        start_within=Duration(30 * SECOND),
        keep=Duration(MINUTE),
        place="here",
        templates={
            "a": KubernetesTemplate(pod={"spec": POD}),
            "b": KubernetesTemplate(pod={"spec": POD}, namespace="other"),
        },
    )


def template(**more: Any) -> dict[str, Any]:
    return {"templates": {"report": {"spec": {**POD, **more}}}}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"images": ["http://x/*"]}, "http://x/*"),
        ({"memory": "lots"}, "lots"),
        ({"cpus": 0}, "cpus"),
        ({"namespace": "A b"}, "namespace"),
        ({"start_within": 0}, "start_within"),
        ({"privileged": True}, "privileged"),
        ({"templates": {"a b": {"spec": POD}}}, "a b"),
        ({"templates": {"report": {}}}, "either file or spec"),
        ({"templates": {"report": {"file": "/nowhere.yaml"}}}, "/nowhere.yaml"),
        ({"templates": {"report": {"spec": POD, "metadata": {"name": "x"}}}}, "metadata.name"),
        (template(restartPolicy="Always"), "spec.restartPolicy must be Never"),
        (template(activeDeadlineSeconds=3), "spec.activeDeadlineSeconds"),
        (template(nodeSelectr={}), "unknown field spec.nodeSelectr (did you mean nodeSelector?)"),
        (template(containers=[]), "spec.containers is empty"),
        (template(containers=[{"image": "x"}]), "spec.containers[0].name is missing"),
        (template(containers=[{"name": "x", "env": [{"name": "A", "value": 1}]}]), "env[0].value must be text"),
        (template(containers=[{"name": "x", "resources": {"limit": {}}}]), "resources.limit (did you mean limits?)"),
        (template(hostPID="yes"), "spec.hostPID must be true or false"),
        (template(volumes=[{"name": "x", "hostPath": {"path": "/", "kind": "x"}}]), "spec.volumes[0].hostPath.kind"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, table, words):
    with pytest.raises(SettingsError) as raised:
        loaded(table, tmp_path)
    assert words in str(raised.value)


def test_the_fields_are_those_of_kubernetes():
    assert pod_fields.PLACE.read_text() == pod_fields.text(), "run scripts/pod_fields.py"
