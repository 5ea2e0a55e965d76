"""compose.yaml on a real engine: whatever container is killed, stopped and started, each firing arrives.

A stack of its own name, ports and network; firings are counted at waitecho by their run id. The tests use it one after
the other, as somebody would. `make test-deploy`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.engine import ROOT, DeployEngine, running_deploy_engine
from tests.docs.blocks import blocks_of
from tests.services.process import COMMAND
from tests.services.waiting import until_blocking

URL = "http://127.0.0.1:18000"
STACK = {
    "COMPOSE_PROJECT_NAME": "onthedot-test",
    "OTD_IMAGE": "onthedot:test",
    "OTD_PUBLISH": "127.0.0.1:18000",
    "OTD_API_PORTS": "127.0.0.1:18001-18016",
    "OTD_SUBNET": "172.28.58.0/24",
}
RECURRING, SLOTS, ONE_OFFS, SECONDS = 5, 60, 300, 60
FIRINGS = RECURRING * SLOTS + ONE_OFFS
RETRY = {"attempts": 100, "backoff": "500ms", "factor": 1, "max": "1s"}


class Stack:
    def __init__(self, engine: DeployEngine) -> None:
        self.engine = engine
        engine.env |= STACK
        self.key = ""
        self.told = ""

    def compose(self, *arguments: str, check: bool = True) -> str:
        return self.engine.run("docker", "compose", *arguments, check=check).stdout

    def docker(self, *arguments: str) -> str:
        return self.engine.run("docker", *arguments).stdout.strip()

    def cli(self, *arguments: str, key: str | None = None, check: bool = True) -> Any:
        """The command line outside, through the published port."""
        env = {"ONTHEDOT_URL": URL, "ONTHEDOT_KEY": self.key if key is None else key}
        done = self.engine.run(str(COMMAND), *arguments, "--json", env=env, check=check)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def containers(self, service: str) -> list[str]:
        return sorted(self.compose("ps", "--all", "--format", "{{.Name}}", service).split())

    def state(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.docker("inspect", "--format", "{{json .State}}", name))
        return found

    def arrived(self) -> Counter[str]:
        """Run ids of all requests that waitecho answered, with how often each came."""
        lines = self.compose("logs", "--no-log-prefix", "waitecho").splitlines()
        seen = (json.loads(line) for line in lines if line.startswith("{"))
        return Counter(each["run_id"] for each in seen if each["path"] == "/echo" and each["run_id"])

    def tell_of_crashes(self) -> None:
        """What the database says of a process of its own that was killed: if nobody here did that, a test that fails
        for it says nothing of us."""
        said = self.compose("logs", "--no-log-prefix", "--timestamps", "storage", check=False).splitlines()
        crashes = [line for line in said if "terminated by signal" in line or "PANIC" in line]
        if crashes:
            sys.stdout.write("\n".join(["\nthe database crashed:", *crashes, ""]))

    def read_key(self) -> str:
        return self.compose("exec", "-T", "ui", "cat", "/run/onthedot/admin_key").strip()


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running_deploy_engine() as engine:
        made = Stack(engine)
        try:
            began = time.monotonic()
            made.told = told = engine.run("./run.sh", within=900).stdout
            sys.stdout.write(f"\nrun.sh: {time.monotonic() - began:.0f} s from nothing to ready, image built\n")
            size = int(made.docker("image", "inspect", "--format", "{{.Size}}", STACK["OTD_IMAGE"]))
            base = int(made.docker("image", "inspect", "--format", "{{.Size}}", "python:3.13-slim"))
            sys.stdout.write(f"image: {size / 1e6:.0f} MB, {(size - base) / 1e6:.0f} MB more than its base\n")
            assert f"On the Dot is ready: {URL}" in told
            assert "docker compose exec ui cat /run/onthedot/admin_key" in told
            made.key = made.read_key()
            yield made
        finally:
            made.tell_of_crashes()
            made.compose("down", "--volumes", "--timeout", "5", check=False)


def test_what_runs(stack: Stack) -> None:
    counts = {
        service: len(stack.containers(service))
        for service in ("storage", "crud-api", "executor", "ui", "waitecho", "witness")
    }
    assert counts == {"storage": 1, "crud-api": 2, "executor": 3, "ui": 1, "waitecho": 1, "witness": 1}
    until_blocking(lambda: _live(stack) == 6, "three API nodes and three executors", 60)
    assert stack.key.startswith("otd_")
    assert stack.cli("jobs", "list", key="otd_" + "wrong" * 8, check=False) is None
    inside = "id -u; touch /x 2>/dev/null || echo read-only; touch /var/lib/onthedot/x && echo data"
    for service in ("crud-api", "executor", "ui"):
        assert stack.compose("exec", "-T", service, "sh", "-c", inside).split() == ["10001", "read-only", "data"]
    assert stack.cli("timer", "5s", "http://169.254.169.254/latest", check=False) is None, "never a metadata address"
    probe = "python3 /usr/local/lib/onthedot/healthcheck.py"
    for service, at in (("crud-api", "/readyz"), ("executor", "/readyz"), ("executor", "/healthz")):
        stack.compose("exec", "-T", service, "sh", "-c", f"{probe} {at}")
    metrics = "import urllib.request as r; print(r.urlopen('http://executor:9090/metrics').read().decode())"
    assert "\nonthedot_load " in stack.compose("exec", "-T", "ui", "python3", "-c", metrics)
    inside = "id -u; touch /x 2>/dev/null || echo read-only; touch /var/lib/onthedot/x 2>/dev/null || echo no data"
    assert stack.compose("exec", "-T", "witness", "sh", "-c", inside).split("\n")[:3] == [
        "10001",
        "read-only",
        "no data",
    ]
    stack.compose("exec", "-T", "witness", "sh", "-c", f"{probe} /healthz 9090")
    until_blocking(lambda: _silent(stack) == "0.0", "the witness sees the nodes", 60)
    assert "Up to date" in stack.compose("run", "--rm", "-T", "migrate", "migrate", "--check")
    assert "CREATE TABLE" in stack.compose("run", "--rm", "-T", "migrate", "migrate", "--sql", "--all")


def test_what_run_sh_says_works_word_for_word(stack: Stack) -> None:
    """Each command that it prints, in a shell; what would not end is left out."""
    printed = [line.strip() for line in stack.told.splitlines() if line.strip().startswith("docker compose exec")]
    assert len(printed) == 2
    key, timer = (stack.engine.run("sh", "-c", line).stdout for line in printed)
    assert key.strip() == stack.key
    assert "http://waitecho:5003/echo" in timer
    until_blocking(lambda: len(stack.arrived()) == 1, "the webhook arrives", 60)


def test_the_database_is_no_receiver(stack: Stack, tmp_path: Path) -> None:
    """Although it is in the network that webhooks may call."""
    target = {"type": "webhook", "url": "http://storage:5432/"}
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({"jobs": [{"key": "into-storage", "schedule": {"in": "1s"}, "target": target}]}))
    stack.cli("jobs", "apply", str(file), check=False)
    ours = "j.id = h.job_id AND j.key = 'into-storage'"
    script = f"SELECT h.status, h.error FROM history h JOIN jobs j ON {ours}"
    status, _, reason = until_blocking(lambda: _sql(stack, script), "it has ended", 60).partition("|")
    assert status == "failed"
    assert "5432" in reason, reason


def test_killing_stopping_and_starting_any_container_loses_nothing(stack: Stack, tmp_path: Path) -> None:
    before = stack.arrived()
    stack.cli("jobs", "apply", str(_jobs_file(tmp_path)))
    first, second, third = stack.containers("executor")

    # The process dies: the engine starts it again by itself. (tini is the first process, and stays for that moment.)
    stack.engine.run("docker", "exec", first, "sh", "-c", "kill -9 -1", check=False)
    until_blocking(lambda: stack.state(first)["Running"] and _restarts(stack, first) == 1, "it is started again", 60)
    # kill -9 by hand, and an orderly stop: SIGTERM drains, exit code 0 (here and below).
    stack.docker("kill", second)
    stack.docker("stop", third)
    assert stack.state(third)["ExitCode"] == 0
    stack.docker("start", second, third)
    one, other = stack.containers("crud-api")
    for name in (one, stack.containers("ui")[0], stack.containers("waitecho")[0], stack.containers("storage")[0]):
        stack.docker("kill", name)
        stack.docker("start", name)
    single = [stack.containers(service)[0] for service in ("waitecho", "storage", "witness")]
    for name in (other, *single, first):
        stack.docker("stop", name)
        assert stack.state(name)["ExitCode"] == 0, name
        stack.docker("start", name)
    stack.docker("restart", stack.containers("ui")[0])
    assert stack.state(other)["Running"]

    def missing() -> int:
        return FIRINGS - len(stack.arrived() - before)

    until_blocking(lambda: missing() <= 0, f"{FIRINGS} firings arrive at waitecho", 240)
    arrived = stack.arrived() - before
    again = sum(arrived.values()) - len(arrived)
    sys.stdout.write(f"\nfirings: {len(arrived)} of {FIRINGS} arrived, {again} of them once more after a fault\n")
    assert len(arrived) == FIRINGS
    until_blocking(lambda: _done(stack) == FIRINGS, "all results are recorded", 60)


def test_more_executors(stack: Stack) -> None:
    before = stack.containers("executor")
    kept = [stack.state(name)["StartedAt"] for name in before]
    stack.engine.run("./run.sh", "--scale", "executor=5", within=300)
    assert [stack.state(name)["StartedAt"] for name in before] == kept, "those that run go on"
    assert len(stack.containers("executor")) == 5
    until_blocking(lambda: _live(stack) == 8, "five executors and three API nodes", 60)


def test_the_upgrade_of_the_manual(stack: Stack, tmp_path: Path) -> None:
    """`git pull && ./run.sh` as it stands, in a checkout that is a commit behind."""
    (typed,) = (block.text for block in blocks_of("docs/deployment.md") if block.text.startswith("git pull"))
    behind = tmp_path / "checkout"
    git = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run([*git, "clone", "--quiet", ROOT, tmp_path / "upstream"], check=True)
    subprocess.run([*git, "clone", "--quiet", tmp_path / "upstream", behind], check=True)
    commit = [*git, "commit", "--quiet", "--allow-empty", "--message", "A new version"]
    subprocess.run(commit, cwd=tmp_path / "upstream", check=True)
    made = stack.cli("timer", "1h", "http://waitecho:5003/echo")
    told = stack.engine.run("sh", "-ec", f"cd {behind}\n{typed}", within=900).stdout
    assert f"On the Dot is ready: {URL}" in told
    log = subprocess.run(["git", "log", "-1", "--format=%s"], cwd=behind, check=True, capture_output=True, text=True)
    assert log.stdout == "A new version\n"
    assert stack.read_key() == stack.key
    assert stack.cli("jobs", "show", str(made["id"]))["state"] == "active"
    until_blocking(lambda: _live(stack) >= 6, "all nodes are there", 60)


def test_the_admin_key_is_rotated(stack: Stack) -> None:
    old = stack.key
    stack.compose("run", "--rm", "secrets", "new-admin-key")
    assert stack.cli("jobs", "list", key=old) is not None, "until the nodes start again"
    stack.compose("restart", "ui", "crud-api")
    new = stack.read_key()
    assert new != old
    until_blocking(lambda: stack.cli("jobs", "list", key=new, check=False) is not None, "the new key works", 60)
    assert stack.cli("jobs", "list", key=old, check=False) is None


def test_stopped_and_started_as_a_whole(stack: Stack) -> None:
    """`docker compose up` alone, without run.sh: the database, the key and what was due meanwhile are still there."""
    before, key = stack.arrived(), stack.read_key()
    made = stack.cli("timer", "10s", "http://waitecho:5003/echo", key=key)
    assert made
    stack.compose("stop")
    codes = {
        name: stack.state(name)["ExitCode"] for name in stack.compose("ps", "--all", "--format", "{{.Name}}").split()
    }
    assert set(codes.values()) == {0}, codes
    began = time.monotonic()
    stack.compose("up", "--detach", "--wait")
    sys.stdout.write(f"\ndocker compose up: {time.monotonic() - began:.1f} s until all are ready\n")
    assert stack.read_key() == key
    until_blocking(lambda: len(stack.arrived() - before) == 1, "what was due while all was down arrives", 60)


def test_the_image_alone(stack: Stack) -> None:
    """As docs/deployment.md runs it: SQLite in a volume, read-only root, ready, and drained with exit code 0."""
    name = "onthedot-test-alone"
    options = (
        "--init",
        "--read-only",
        "--tmpfs",
        "/tmp",
        "-v",
        f"{name}:/var/lib/onthedot",
        "-p",
        "127.0.0.1:18090:8000",
    )
    stack.docker("run", "-d", "--name", name, *options, "-e", f"ONTHEDOT_ADMIN_KEY={stack.key}", STACK["OTD_IMAGE"])
    try:
        began = time.monotonic()
        until_blocking(lambda: stack.state(name)["Health"]["Status"] == "healthy", "healthy", 60)
        sys.stdout.write(f"\nthe image alone: healthy after {time.monotonic() - began:.1f} s\n")
        stack.docker("stop", name)
        assert stack.state(name)["ExitCode"] == 0
    finally:
        stack.engine.run("docker", "rm", "--force", "--volumes", name, check=False)
        stack.engine.run("docker", "volume", "rm", name, check=False)


def _jobs_file(folder: Path) -> Path:
    target = {"type": "webhook", "url": "http://waitecho:5003/echo"}
    jobs: list[dict[str, Any]] = [
        {
            "key": f"every-{number}",
            "schedule": {"every": "1s", "count": SLOTS},
            "target": target,
            "policy": {"catch_up": "all", "retry": RETRY},
        }
        for number in range(RECURRING)
    ]
    jobs += [
        {
            "key": f"once-{number}",
            "schedule": {"in": f"{2000 + number * SECONDS * 1000 // ONE_OFFS}ms"},
            "target": target,
            "policy": {"retry": RETRY},
        }
        for number in range(ONE_OFFS)
    ]
    file = folder / "deploy.json"
    file.write_text(json.dumps({"jobs": jobs}))
    return file


def _restarts(stack: Stack, name: str) -> int:
    return int(stack.docker("inspect", "--format", "{{.RestartCount}}", name))


def _done(stack: Stack) -> int:
    """Of the jobs of the file, by the table itself."""
    ours = "j.id = h.job_id AND j.key ~ '^(every|once)-'"
    script = f"SELECT count(*) FROM history h JOIN jobs j ON {ours} WHERE h.status = 'done'"
    return int(_sql(stack, script))


def _sql(stack: Stack, script: str) -> str:
    psql = ("psql", "-h", "/var/run/postgresql", "-U", "onthedot", "-Atc", script)
    return stack.compose("exec", "-T", "storage", *psql).strip()


def _silent(stack: Stack) -> str:
    """Whether the witness finds that no node is alive, by its metrics."""
    read = "import urllib.request as r; print(r.urlopen('http://witness:9090/metrics').read().decode())"
    lines = stack.compose("exec", "-T", "ui", "python3", "-c", read).splitlines()
    return next(line for line in lines if line.startswith('onthedot_witness_findings{kind="silent"}')).split()[1]


def _live(stack: Stack) -> int:
    return sum(node["state"] == "alive" for node in stack.cli("nodes"))
