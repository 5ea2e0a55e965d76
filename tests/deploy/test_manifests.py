"""The Kubernetes manifests: valid by the strict schemas, and what they promise. They are what `helm template` gives;
`make test-deploy` compares them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

MANIFESTS = Path(__file__).parents[2] / "deploy" / "kubernetes" / "onthedot.yaml"
PRODUCTION = Path(__file__).with_name("production.yaml")
FILES = (MANIFESTS, PRODUCTION)


@cache
def objects(file: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.load_all(file.read_text(), yaml.CSafeLoader) if each]


def of_kind(file: Path, kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in objects(file) if each["kind"] == kind}


def pods(file: Path) -> list[dict[str, Any]]:
    owners = [*of_kind(file, "Deployment").values(), *of_kind(file, "Job").values()]
    assert len(owners) == 4
    return [owner["spec"]["template"]["spec"] for owner in owners]


def test_they_fit_the_strict_schemas():
    """Those that are applied without helm; tests/deploy/test_chart_values.py does the same for all other values."""
    checked = objects(MANIFESTS)
    assert len(checked) >= 9
    for each in checked:
        kubernetes_validate.validate(each, "1.37", strict=True)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_runs_as_root_or_writes_where_it_should_not(file):
    for pod in pods(file):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["enableServiceLinks"] is False, "the Service onthedot would set ONTHEDOT_PORT"
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {mount["name"] for mount in container["volumeMounts"]} == {
                volume["name"] for volume in pod["volumes"]
            }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nodes_have_probes_and_time_to_drain(file):
    nodes = {name: each for name, each in of_kind(file, "Deployment").items() if not name.endswith("-witness")}
    assert len(nodes) == 2
    for name, deployment in nodes.items():
        pod = deployment["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        env = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert len(env) == len(container["env"]), "a variable is there twice"
        assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "metrics"}
        assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "metrics"}
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert ports["metrics"] == int(env["ONTHEDOT_METRICS_PORT"])
        assert set(ports) == ({"http", "metrics"} if name.endswith("-api") else {"metrics"})
        assert env["ONTHEDOT_ROLES"] == name.rpartition("-")[2]
        wait = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
        grace = int(env["ONTHEDOT_GRACE"].removesuffix("s"))
        assert pod["terminationGracePeriodSeconds"] >= wait + grace + 5
    assert all(spec["spec"]["maxUnavailable"] == 1 for spec in of_kind(file, "PodDisruptionBudget").values())
    assert (len(of_kind(file, "PodDisruptionBudget")), len(of_kind(file, "NetworkPolicy"))) == (2, 3)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_witness_is_one_pod_without_rights_away_from_the_nodes(file):
    deployment = of_kind(file, "Deployment")["onthedot-witness"]
    assert deployment["spec"]["replicas"] == 1, "two would send each alert twice"
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    env = {entry["name"]: entry for entry in container["env"]}
    assert container["args"][0] == "witness"
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"] == {"path": "/healthz", "port": "metrics"}, "it has no /readyz"
    assert container["ports"] == [{"name": "metrics", "containerPort": int(env["ONTHEDOT_METRICS_PORT"]["value"])}]
    assert {"requests", "limits"} == set(container["resources"])
    assert "ONTHEDOT_ADMIN_KEY" not in env
    assert env["ONTHEDOT_WITNESS_PING_URL"]["valueFrom"]["secretKeyRef"]["optional"] is True
    account = pod["serviceAccountName"]
    assert of_kind(file, "ServiceAccount")[account]["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is False
    bound = {subject["name"] for binding in of_kind(file, "RoleBinding").values() for subject in binding["subjects"]}
    assert account not in bound
    (apart,) = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert apart["podAffinityTerm"]["labelSelector"]["matchExpressions"][0]["values"] == ["api", "executor"]


def test_the_witness_reaches_its_database_and_ping_url():
    anywhere = of_kind(MANIFESTS, "NetworkPolicy")["onthedot-witness"]["spec"]
    assert anywhere["policyTypes"] == ["Ingress"], "outgoing connections are not limited"
    limited = of_kind(PRODUCTION, "NetworkPolicy")["onthedot-witness"]["spec"]
    assert limited["policyTypes"] == ["Ingress", "Egress"]
    assert [[port["port"] for port in rule["ports"]] for rule in limited["egress"]] == [[53, 53], [5432], [443]]
    assert "to" not in limited["egress"][0], "the resolver may be anywhere"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_labels_select_the_pods_they_should(file):
    for deployment in of_kind(file, "Deployment").values():
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
        role = labels["app.kubernetes.io/component"]
        for kind, place in (("PodDisruptionBudget", "selector"), ("NetworkPolicy", "podSelector")):
            found = [
                name
                for name, each in of_kind(file, kind).items()
                if each["spec"][place]["matchLabels"].items() <= labels.items()
            ]
            if (kind, role) == ("PodDisruptionBudget", "witness"):
                assert found == [], "a single pod moves when its machine is drained"
            else:
                assert found == [f"onthedot-{role}"]
        (service,) = of_kind(file, "Service").values()
        assert (service["spec"]["selector"].items() <= labels.items()) == (role == "api")


def test_jobs_may_be_created_in_the_namespace_of_the_release_alone():
    assert {each["kind"] for each in objects(PRODUCTION)} >= {"Role", "RoleBinding", "ServiceAccount"}
    assert not {each["kind"] for file in FILES for each in objects(file)} & {"ClusterRole", "ClusterRoleBinding"}
    (role,) = of_kind(PRODUCTION, "Role").values()
    assert {(resource, *rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]} == {
        ("jobs", "create", "get", "list", "watch", "delete"),
        ("pods", "get", "list", "watch"),
        ("pods/log", "get"),
        ("events", "list"),
    }
    (binding,) = of_kind(PRODUCTION, "RoleBinding").values()
    assert binding["subjects"][0]["namespace"] == "jobs"
    tokens = {
        name: each["spec"]["template"]["spec"]["automountServiceAccountToken"]
        for name, each in of_kind(PRODUCTION, "Deployment").items()
    }
    assert tokens == {"onthedot-api": False, "onthedot-executor": True, "onthedot-witness": False}
    assert not of_kind(MANIFESTS, "Role")


def test_the_executors_are_scaled_by_their_load():
    (scaler,) = of_kind(PRODUCTION, "HorizontalPodAutoscaler").values()
    (metric,) = scaler["spec"]["metrics"]
    assert metric["pods"]["metric"] == {"name": "onthedot_load"}
    executor = of_kind(PRODUCTION, "Deployment")["onthedot-executor"]
    assert scaler["spec"]["scaleTargetRef"]["name"] == executor["metadata"]["name"]
    assert "replicas" not in executor["spec"], "an upgrade must not set what the autoscaler decides"
