"""Nodes and the witness with exactly the environment and arguments of the chart's pods, on a real PostgreSQL: probes,
metrics, TLS, the migration, an end that loses nothing, and an alert when all are gone. `make test-deploy`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.chart import Pod, pod_template, rendered, secrets_in
from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port
from tests.services.process import COMMAND
from tests.services.waiting import until_blocking
from tests.targets.making_certificates import Authority

KEY = "otd_" + "k" * 40
GRACE = 8
SETTINGS_FILE = """
[commands.hello]
argv = ["/bin/echo", "hello"]

[channels.ops]
url_env = "OPS"
"""
HEALTH_CHECK = Path(__file__).parents[2] / "deploy" / "docker" / "healthcheck.py"
pytestmark = pytest.mark.timeout(180)


class Release:
    """The pods of the chart with these values. Each has ports of its own, because all are on one machine."""

    def __init__(self, home: Path, store: str) -> None:
        self.home = home
        self.hearing = free_port()
        heard = f"http://127.0.0.1:{self.hearing}"
        self.authority = Authority(home)
        certificate, key = self.authority.issue("server")
        self._tls = {"tls.crt": Path(certificate).read_text(), "tls.key": Path(key).read_text()}
        self.port = free_port()
        self.values = home / "values.json"
        self.values.write_text(
            json.dumps(
                {
                    "secret": {"store": store, "adminKey": KEY, "witnessPingUrl": f"{heard}/ping"},
                    "settings": {"LOG_LEVEL": "INFO", "LEASE": "5s", "EGRESS_ALLOW": "127.0.0.0/8"},
                    "settingsFile": SETTINGS_FILE,
                    "extraEnv": [{"name": "OPS", "value": f"{heard}/alert"}],
                    "graceSeconds": GRACE,
                    "api": {"port": self.port, "tlsSecret": "jobs-tls", "publicUrl": f"https://127.0.0.1:{self.port}"},
                    "executor": {"labels": ["eu"], "concurrency": 50},
                }
            )
        )
        self.pods: list[Pod] = []

    def pod(self, part: str, name: str, *, links: bool = False) -> Pod:
        objects = rendered("-f", self.values, "--set", f"metricsPort={free_port()}")
        files = {each["metadata"]["name"]: each["data"] for each in objects if each["kind"] == "ConfigMap"}
        secrets: dict[str, dict[str, str]] = {**files, "jobs-tls": self._tls}
        for secret, content in secrets_in(objects).items():
            secrets[secret] = {**secrets.get(secret, {}), **content}
        template = pod_template(objects, f"onthedot-{part}")
        pod = Pod(name, template, home=self.home, secrets=secrets, links=links)
        self.pods.append(pod)
        pod.start()
        return pod

    def cli(self, *arguments: str) -> Any:
        env = {"ONTHEDOT_URL": f"https://127.0.0.1:{self.port}", "ONTHEDOT_KEY": KEY, "HOME": str(self.home)}
        done = subprocess.run(
            [COMMAND, "--ca", str(self.authority.file), *arguments, "--json"],
            env=env, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def release(tmp_path: Path, empty_postgres_url: str) -> Iterator[Release]:
    made = Release(tmp_path, empty_postgres_url)
    try:
        yield made
    finally:
        for pod in made.pods:
            pod.close()


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[str]:
    """Answers after two seconds: whoever ends meanwhile has to wait for it."""
    port = free_port()
    with _echo(port, tmp_path / "arrived", "--delay", "2s"):
        yield f"http://127.0.0.1:{port}/echo"


@contextmanager
def _echo(port: int, file: Path, *options: str) -> Iterator[None]:
    """A receiver that writes what arrives to `file`."""
    with file.open("wb") as out:
        process = subprocess.Popen([COMMAND, "echo", "--port", str(port), *options, "--json"], stdout=out, stderr=out)
    orphan_reaper.runs(process.pid, signal.SIGKILL)
    try:
        yield
    finally:
        process.kill()
        process.wait()
        orphan_reaper.ended(process.pid)


def test_the_pods_of_the_chart(release: Release, receiver: str, tmp_path: Path) -> None:
    migration = release.pod("migrate", "onthedot-migrate-x")
    assert migration.ended(60) == 0, migration.log.read_text()
    api, executor = release.pod("api", "onthedot-api-1"), release.pod("executor", "onthedot-executor-1")
    api.ready()
    executor.ready()

    for pod, path in ((api, "/readyz"), (api, "/healthz"), (executor, "/readyz")):  # what the image asks, over TLS too
        subprocess.run([sys.executable, "-IS", HEALTH_CHECK, path], env=pod.env, check=True, timeout=20)

    nodes = {node["name"]: node for node in release.cli("nodes")}
    assert set(nodes) == {"onthedot-api-1", "onthedot-executor-1"}, "NODE_NAME is the name of the pod"
    assert executor.asked(f"http://127.0.0.1:{executor.port('metrics')}/jobs")[0] == 404, (
        "nothing but probes and metrics"
    )
    assert re.search(r"^onthedot_load 0", executor.metrics(), re.MULTILINE)
    assert "onthedot_runs_due 0" in api.metrics()

    # A firing is under way when the pod is told to end: it ends in order, with its result, and only once.
    release.cli("timer", "1s", receiver)
    until_blocking(lambda: b"run_id" in (tmp_path / "arrived").read_bytes(), "the request arrives")
    began = time.monotonic()
    assert executor.terminated() == 0, executor.log.read_text()[-3000:]
    assert time.monotonic() - began < executor.template["terminationGracePeriodSeconds"]
    (run,) = _runs(release)
    assert (run["status"], run["attempt"]) == ("DONE", 1)
    assert (tmp_path / "arrived").read_bytes().count(b"run_id") == 1

    # Nobody executes now, as after scaling to none: the API nodes report what is due, and KEDA starts somebody.
    release.cli("timer", "1s", receiver)
    until_blocking(lambda: "onthedot_runs_due 1" in api.metrics(), "API nodes report due runs", 60)
    second = release.pod("executor", "onthedot-executor-2", links=True)  # by other manifests than ours
    second.ready()
    until_blocking(lambda: [run["status"] for run in _runs(release)] == ["DONE", "DONE"], "the second arrives", 60)
    assert api.terminated() == 0
    assert second.terminated() == 0


def test_the_witness_of_the_chart(release: Release, tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    with _echo(release.hearing, heard):
        assert release.pod("migrate", "onthedot-migrate-x").ended(60) == 0
        executor = release.pod("executor", "onthedot-executor-1")
        executor.ready()
        witness = release.pod("witness", "onthedot-witness-1")
        witness.ready()
        subprocess.run(
            [sys.executable, "-IS", HEALTH_CHECK, "/healthz", str(witness.port("metrics"))],
            env=witness.env, check=True, timeout=20,
        )  # fmt: skip
        assert witness.asked(f"http://127.0.0.1:{witness.port('metrics')}/jobs")[0] == 404
        until_blocking(lambda: b"/ping" in heard.read_bytes(), "the ping of the Secret's URL", 60)
        until_blocking(lambda: _found(witness, "silent") == 0, "all is well", 60)
        assert b"/alert" not in heard.read_bytes()

        executor.close()  # kill -9 of the last node: nobody but the witness can tell
        until_blocking(lambda: b"/alert" in heard.read_bytes(), "the alert to the channel of the settings file", 60)
        assert _found(witness, "silent") == 1
        assert witness.probed("livenessProbe") == 200, "what it sees is no reason to restart it"
        assert re.search(r'^\{.*"silent"', witness.log.read_text(), re.MULTILINE)

        second = release.pod("executor", "onthedot-executor-2")
        second.ready()
        until_blocking(lambda: _found(witness, "silent") == 0, "somebody is there again", 60)
        assert witness.terminated() == 0, witness.log.read_text()[-3000:]


def _found(witness: Pod, kind: str) -> float:
    value = re.search(rf'^onthedot_witness_findings\{{kind="{kind}"\}} (\S+)$', witness.metrics(), re.MULTILINE)
    assert value is not None
    return float(value[1])


def _runs(release: Release) -> list[dict[str, Any]]:
    found = release.cli("runs", "list")
    return list(found["items"] if isinstance(found, dict) else found)
