"""The commands of docs/kubernetes-deployment.md for a cluster, typed as they stand: the real helm and kubectl, a
stand-in for the cluster that runs the migration and the witness, and a real PostgreSQL. `make test-deploy`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.programs import helm, kubectl
from tests.docs.blocks import ROOT, blocks_of, shell_text
from tests.manual.reader import Network, Reader, can_make_networks, network
from tests.services.process import COMMAND
from tests.services.waiting import until_blocking

pytestmark = pytest.mark.timeout(300)
PAGE = "docs/kubernetes-deployment.md"
REPOSITORY = "https://prometheus-community.github.io/helm-charts"
RULES = """
apiVersion: v1
kind: ConfigMap
metadata: {name: prometheus-adapter}
data:
  config.yaml: |
    rules:
{{ toYaml .Values.rules.custom | indent 6 }}
"""
"""Of the chart prometheus-adapter: what it makes of the values that we give it."""


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    if not can_make_networks():
        pytest.skip("the ports of the manual need a network of their own, which only root can make")
    (tmp_path / "network").mkdir()
    with network(tmp_path / "network") as made:
        made.empty_databases()
        reader = _with_a_cluster(tmp_path / "reader", made)
        try:
            yield reader
        finally:
            reader.close()


def _with_a_cluster(directory: Path, network: Network) -> Reader:
    for folder in ("bin", ".kube", "cluster", "chart/templates"):
        (directory / folder).mkdir(parents=True)
    (directory / "bin" / "helm").symlink_to(helm())
    (directory / "bin" / "kubectl").symlink_to(kubectl())
    (directory / "deploy").symlink_to(ROOT / "deploy")
    named: dict[str, dict[str, object]] = {
        "clusters": {"cluster": {"server": "http://127.0.0.1:6443"}},
        "users": {"user": {}},
    }
    contexts = [{"name": "here", "context": {"cluster": "here", "user": "here", "namespace": "default"}}]
    config = {kind: [{"name": "here", **each}] for kind, each in named.items()}
    known = {"apiVersion": "v1", "kind": "Config", "current-context": "here", "contexts": contexts}
    (directory / ".kube" / "config").write_text(json.dumps(known | config))
    (directory / "chart" / "Chart.yaml").write_text("apiVersion: v2\nname: prometheus-adapter\nversion: 1.0.0\n")
    (directory / "chart" / "templates" / "rules.yaml").write_text(RULES)
    reader = Reader(directory, network)
    python = COMMAND.parent / "python"
    reader.type(
        f"PYTHONPATH={ROOT} {python} -m tests.deploy.small_cluster 6443 cluster > cluster.log 2>&1 &\n"
        "until kubectl version > /dev/null 2>&1; do sleep 0.2; done\n"
    )
    return reader


def test_the_commands_for_a_cluster(reader: Reader) -> None:
    install, logs, adapter = (
        shell_text(block)
        for block in blocks_of(PAGE)
        if block.language == "sh" and block.text.startswith(("kubectl", "helm"))
    )
    reader.type(install)
    objects = json.loads(reader.type("kubectl -n onthedot get deployments,services,networkpolicies -o json\n"))["items"]
    assert {each["metadata"]["name"] for each in objects} == {
        f"onthedot{end}" for end in ("", "-api", "-executor", "-witness")
    }
    reader.type("onthedot migrate --check --store postgresql://scheduler@db.internal/onthedot\n")  # the Job did it
    reader.type(logs)
    said = reader.directory / "terminal-2.log"
    until_blocking(lambda: "silent" in said.read_text(), "the witness says that no node is alive", 60)
    reader.type(
        "kubectl create namespace monitoring\nhelm package chart -d charts && helm repo index charts\n"
        f"{COMMAND.parent / 'python'} -m http.server -b 127.0.0.1 -d charts 8099 > charts.log 2>&1 &\n"
        "until curl -fs http://127.0.0.1:8099/index.yaml > /dev/null; do sleep 0.1; done\n"
    )
    assert REPOSITORY in adapter
    told = reader.type(adapter.replace(REPOSITORY, "http://127.0.0.1:8099"))
    assert json.loads(told[told.index('{"') :])["items"][0]["value"] == "250m"
    asked = (reader.directory / "cluster.log").read_text()
    assert "POST /api/v1/namespaces/onthedot/pods/onthedot-api-0/portforward" in asked
