"""Every combination of values that the pages describe: helm takes it, and what it gives fits the strict schemas of the
oldest Kubernetes that the chart allows and of the newest. `make test-deploy`."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.deploy.chart import CHART, Object, rendered
from tests.deploy.programs import helm

pytestmark = pytest.mark.timeout(300)
VERSIONS = ("1.29", "1.37")
EXISTING: dict[str, Any] = {"secret": {"existing": "db"}}
AUTHORITY = {
    "extraVolumes": [{"name": "ca", "secret": {"secretName": "db-ca"}}],
    "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/db-ca", "readOnly": True}],
}
MADE = {
    "secret": {"store": "postgresql://u:p@db.example/d?sslrootcert=/etc/db-ca/ca.crt", "adminKey": "otd_" + "k" * 30}
}
BASE = {"ServiceAccount", "Service", "Deployment", "Job", "PodDisruptionBudget", "NetworkPolicy"}
COMBINATIONS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "existing secret": (EXISTING, BASE),
    "secret of the chart, external database with its authority": ({**MADE, **AUTHORITY}, BASE | {"Secret"}),
    "HPA": ({**EXISTING, "autoscaling": {"enabled": True}}, BASE | {"HorizontalPodAutoscaler"}),
    "KEDA": ({**EXISTING, "executor": {"replicas": None}}, BASE),
    "no network policy": ({**EXISTING, "networkPolicy": {"enabled": False}}, BASE - {"NetworkPolicy"}),
    "network policy with peers": (
        {
            **EXISTING,
            "networkPolicy": {
                "apiFrom": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
                "metricsFrom": [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}],
            },
        },
        BASE,
    ),
    "no disruption budget": ({**EXISTING, "podDisruptionBudget": {"enabled": False}}, BASE - {"PodDisruptionBudget"}),
    "disruption budget in per cent": ({**EXISTING, "podDisruptionBudget": {"maxUnavailable": "25%"}}, BASE),
    "TLS at the ingress": (
        {**EXISTING, "api": {"ingress": {"enabled": True, "host": "jobs.example.com", "tlsSecret": "jobs-tls"}}},
        BASE | {"Ingress"},
    ),
    "TLS in the pods and behind an ingress": (
        {
            **EXISTING,
            "api": {
                "tlsSecret": "jobs-tls",
                "service": {"port": 443, "type": "LoadBalancer", "annotations": {"example.com/internal": "true"}},
                "ingress": {
                    "enabled": True,
                    "className": "nginx",
                    "annotations": {"nginx.ingress.kubernetes.io/backend-protocol": "HTTPS"},
                },
            },
        },
        BASE | {"Ingress"},
    ),
    "targets of the type kubernetes": (
        {
            **EXISTING,
            "serviceAccount": {"mayCreateJobs": True},
            "settingsFile": '[kubernetes]\nimages = ["registry.example/*"]\n',
        },
        BASE | {"Role", "RoleBinding", "ConfigMap"},
    ),
    "all of production": (
        yaml.safe_load((CHART / "examples" / "values-production.yaml").read_text()),
        BASE | {"HorizontalPodAutoscaler", "Ingress", "PodMonitor", "Role", "RoleBinding", "ConfigMap"},
    ),
    "no witness": ({**EXISTING, "witness": {"enabled": False}}, BASE),
    "a witness with a ping URL, told where it may connect": (
        {
            "secret": {**MADE["secret"], "witnessPingUrl": "https://ping.example/0f3c"},
            "settingsFile": '[channels.ops]\nurl_env = "OPS_URL"\n',
            "extraEnv": [{"name": "OPS_URL", "valueFrom": {"secretKeyRef": {"name": "ops", "key": "url"}}}],
            "witness": {
                "every": "1m",
                "reach": "6h",
                "late": "PT2M",
                "nodeSelector": {"pool": "monitoring"},
                "tolerations": [{"key": "monitoring", "operator": "Exists"}],
            },
            "networkPolicy": {"witnessTo": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 5432}]}]},
        },
        BASE | {"Secret", "ConfigMap"},
    ),
    "a ping URL in the settings": ({**EXISTING, "settings": {"WITNESS_PING_URL": "https://ping.example/0f3c"}}, BASE),
    "witness without network policy": (
        {**EXISTING, "networkPolicy": {"enabled": False}, "podMonitor": {"enabled": True}},
        (BASE | {"PodMonitor"}) - {"NetworkPolicy"},
    ),
    "no migration by the chart": ({**EXISTING, "migration": {"enabled": False}}, BASE - {"Job"}),
    "a pool of its own": ({**EXISTING, "executor": {"labels": ["gpu"]}, "api": {"replicas": 0}}, BASE),
    "Prometheus operator": ({**EXISTING, "podMonitor": {"enabled": True}}, BASE | {"PodMonitor"}),
}


@pytest.mark.parametrize("name", COMBINATIONS)
@pytest.mark.parametrize("release", ["onthedot", "jobs"])
def test_a_combination(name: str, release: str, tmp_path: Path) -> None:
    values, kinds = COMBINATIONS[name]
    file = tmp_path / "values.json"
    file.write_text(json.dumps(values))
    linted = subprocess.run(
        [helm(), "lint", "--strict", CHART, "-f", file], capture_output=True, text=True, check=False, timeout=60
    )
    assert linted.returncode == 0, linted.stdout + linted.stderr
    objects = rendered("-f", file, release=release)
    assert {each["kind"] for each in objects} == kinds
    names = [(each["kind"], each["metadata"]["name"]) for each in objects]
    assert len(names) == len(set(names))
    for each in objects:
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", each["metadata"]["name"])
        if each["kind"] != "PodMonitor":
            for version in VERSIONS:
                kubernetes_validate.validate(each, version, strict=True)
    _hold_together(objects)
    parts = {each["metadata"].get("labels", {}).get("app.kubernetes.io/component") for each in objects}
    assert ("witness" in parts) == values.get("witness", {}).get("enabled", True)


def _hold_together(objects: list[Object]) -> None:
    """What refers to another object of the release finds it, and each volume that is mounted is there."""
    there = {(each["kind"], each["metadata"]["name"]) for each in objects}
    for each in objects:
        if each["kind"] not in ("Deployment", "Job"):
            continue
        pod = each["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
        env = [entry["name"] for entry in container["env"]]
        assert len(env) == len(set(env))
        assert pod["enableServiceLinks"] is False
        if each["kind"] == "Deployment":
            assert ("ServiceAccount", pod["serviceAccountName"]) in there
    for each in objects:
        if each["kind"] == "HorizontalPodAutoscaler":
            assert ("Deployment", each["spec"]["scaleTargetRef"]["name"]) in there
        if each["kind"] == "Ingress":
            backend = each["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
            assert ("Service", backend["name"]) in there


def test_the_example_for_keda_scales_the_deployment_that_leaves_its_number_open(tmp_path: Path) -> None:
    (scaled,) = yaml.safe_load_all((CHART / "examples" / "keda.yaml").read_text())
    file = tmp_path / "values.json"
    file.write_text(json.dumps(COMBINATIONS["KEDA"][0]))
    (executor,) = [
        each
        for each in rendered("-f", file)
        if (each["kind"], each["metadata"]["name"]) == ("Deployment", scaled["spec"]["scaleTargetRef"]["name"])
    ]
    assert "replicas" not in executor["spec"]
    known = {"scaleTargetRef", "minReplicaCount", "maxReplicaCount", "pollingInterval", "cooldownPeriod", "triggers"}
    assert set(scaled["spec"]) == known
    for trigger in scaled["spec"]["triggers"]:
        assert set(trigger) == {"type", "metadata"}
        assert set(trigger["metadata"]) == {"serverAddress", "query", "threshold", "activationThreshold"}
        assert all(isinstance(value, str) for value in trigger["metadata"].values())


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"secret": {"store": "postgresql://u@h/d", "adminKey": "short"}}, "/secret/adminKey"),
        (
            {**EXISTING, "autoscaling": {"enabled": True, "minReplicas": 30}},
            "autoscaling.minReplicas must not be greater than autoscaling.maxReplicas",
        ),
    ],
)
def test_values_that_no_cluster_or_node_would_take_are_refused(
    values: dict[str, Any], told: str, tmp_path: Path
) -> None:
    file = tmp_path / "values.json"
    file.write_text(json.dumps(values))
    command = [helm(), "template", "onthedot", str(CHART), "--namespace", "jobs", "-f", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert told in done.stderr
