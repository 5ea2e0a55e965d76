"""The witness as compose and systemd start it: their command and environment as a process of this machine, on a real
PostgreSQL. `make test-deploy`."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port
from tests.services.process import COMMAND
from tests.services.waiting import until_blocking

ROOT = Path(__file__).parents[2]
HEALTH_CHECK = ROOT / "deploy" / "docker" / "healthcheck.py"
pytestmark = pytest.mark.timeout(120)


@contextmanager
def running(arguments: Sequence[str], env: Mapping[str, str], home: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [COMMAND, *arguments], cwd=home, env={"PATH": os.environ["PATH"], **env}, stdout=log, stderr=log
        )
    orphan_reaper.runs(process.pid, signal.SIGKILL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        orphan_reaper.ended(process.pid)


def healthy(arguments: Sequence[str], env: Mapping[str, str]) -> bool:
    command = [sys.executable, "-IS", str(HEALTH_CHECK), *arguments]
    return subprocess.run(command, env=env, check=False, timeout=20).returncode == 0


def findings(port: int) -> dict[str, int]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
        found: dict[str, Any] = json.load(answer)
    return dict(found["findings"])


@pytest.fixture
def migrated(empty_postgres_url: str, tmp_path: Path) -> str:
    env = {"PATH": os.environ["PATH"], "ONTHEDOT_STORE": empty_postgres_url}
    subprocess.run([COMMAND, "migrate"], cwd=tmp_path, env=env, check=True, capture_output=True, timeout=60)
    return empty_postgres_url


def test_the_service_of_compose(migrated: str, tmp_path: Path) -> None:
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["witness"]
    database, port = urlsplit(migrated), str(free_port())
    password = tmp_path / "password"
    password.write_text((database.password or "unused") + "\n")
    given = {
        "POSTGRES_HOST": str(database.hostname),
        "POSTGRES_PORT": str(database.port),
        "POSTGRES_USER": str(database.username),
        "POSTGRES_DB": database.path[1:],
    }
    env = {name: _interpolated(value, given) for name, value in service["environment"].items()}
    assert env["ONTHEDOT_METRICS_PORT"] == service["healthcheck"]["test"][-1] == "9090"
    env |= {"ONTHEDOT_METRICS_PORT": port, "POSTGRES_PASSWORD_FILE": str(password), "ONTHEDOT_HOST": "0.0.0.0"}
    check = [port if each == "9090" else each for each in service["healthcheck"]["test"][4:]]
    with running(service["command"], env, tmp_path) as process:
        until_blocking(lambda: healthy(check, env), "the health check of the service", 60)
        until_blocking(lambda: findings(int(port))["silent"] == 1, "it reads the database, where no node is", 60)
        process.terminate()
        assert process.wait(10) == 0, (tmp_path / "log").read_text()
    assert '"silent"' in (tmp_path / "log").read_text()


def test_the_unit_of_systemd(migrated: str, tmp_path: Path) -> None:
    unit = (ROOT / "deploy" / "systemd" / "onthedot-witness.service").read_text()
    started = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert started is not None
    program, *arguments = shlex.split(started[1])
    assert program == "/opt/onthedot/bin/onthedot"
    settings = tmp_path / "onthedot.toml"
    settings.write_text(f'[channels.ops]\ncommand = ["/bin/cp", "/dev/stdin", "{tmp_path}/told"]\n')
    port = free_port()
    own = {"/etc/onthedot/onthedot.toml": str(settings), "9110": str(port)}
    assert set(own) < set(arguments)
    env = {"ONTHEDOT_STORE": migrated}  # of EnvironmentFile
    with running([own.get(each, each) for each in arguments], env, tmp_path) as process:
        until_blocking(lambda: healthy(("/healthz", str(port)), env), "healthy", 60)
        until_blocking((tmp_path / "told").exists, "the channel of the settings file is told", 60)
        assert findings(port)["silent"] == 1
        process.terminate()
        assert process.wait(15) == 0, (tmp_path / "log").read_text()


def _interpolated(value: object, given: Mapping[str, str]) -> str:
    """As compose: `${NAME:-default}`, from the inside out."""
    text = str(value)
    while "${" in text:
        text = re.sub(r"\$\{([A-Z_]+)(?::-([^${}]*))?\}", lambda found: given.get(found[1]) or found[2] or "", text)
    return text
