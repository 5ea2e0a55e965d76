"""The commands of docs/kubernetes-deployment.md for a machine with systemd, typed as they stand: systemd itself starts,
reloads and stops the units, with the wheel of this checkout and a real PostgreSQL. `make test-deploy`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.machine import SystemdMachine, can_boot, systemd_machine
from tests.docs.blocks import ROOT, blocks_of, shell_text
from tests.manual.reader import Reader
from tests.services.postgres import running_postgres

pytestmark = pytest.mark.timeout(400)
PAGE = "docs/kubernetes-deployment.md"
WITH_WHEELS = """
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv PIP_NO_INDEX=1 PIP_FIND_LINKS=wheels
"""
"""In place of a registry, which its network does not reach."""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[SystemdMachine]:
    if not can_boot():
        pytest.skip("systemd is started only by root, where it is installed")
    (tmp_path / "machine").mkdir()
    (tmp_path / "typed").mkdir()
    with running_postgres() as server:
        server.execute("CREATE ROLE scheduler LOGIN")
        server.execute("CREATE DATABASE onthedot OWNER scheduler")
        with systemd_machine(tmp_path / "machine", tmp_path / "typed", server) as made:
            yield made


def _wheels(directory: Path) -> None:
    """Ours, as `make dist` builds it, and all that it needs."""
    hatchling = Path(sys.executable).with_name("hatchling")
    subprocess.run([hatchling, "build", "-t", "wheel", "-d", directory], cwd=ROOT, check=True, capture_output=True)
    (ours,) = directory.glob("onthedot-*.whl")
    subprocess.run(["/usr/bin/python3", "-m", "venv", directory / "pip"], check=True)
    command: list[str | Path] = [directory / "pip/bin/pip", "download", "-q", "-d", directory / "wheels", ours]
    subprocess.run(command, check=True, capture_output=True, timeout=200)
    shutil.rmtree(directory / "pip")


def test_the_commands_for_systemd(machine: SystemdMachine, tmp_path: Path) -> None:
    directory = tmp_path / "typed"
    _wheels(directory)
    shutil.copytree(ROOT / "deploy", directory / "deploy")
    (directory / "onthedot.toml").write_text("")
    (directory / "environment").write_text("ONTHEDOT_STORE=postgresql://scheduler@db/onthedot\n")
    node, witness = (shell_text(block) for block in blocks_of(PAGE) if block.text.startswith("sudo"))
    reader = Reader(directory, machine)
    try:
        reader.type(WITH_WHEELS + node)
        reader.type("until curl -fs http://127.0.0.1:8000/readyz; do sleep 0.2; done\n")
        for number in (1, 2):
            reader.type(f"until curl -fs http://127.0.0.1:910{number}/readyz; do sleep 0.2; done\n")
        units = ("onthedot", "onthedot-executor@1", "onthedot-executor@2")
        nodes = json.loads(reader.type("/opt/onthedot/bin/onthedot nodes --json\n"))
        assert len([each for each in nodes if each["state"] == "alive"]) == len(units), nodes
        reader.type(witness.replace("curl ", "sleep 4; curl "))
        reader.type("systemctl reload onthedot\n")
        for unit in (*units, "onthedot-witness"):
            reader.type(f"systemctl is-active --quiet {unit}\nsystemctl stop {unit}\n")
            ended = reader.type(f"systemctl show {unit} -p Result -p ExecMainStatus -p NRestarts\n").split()
            assert sorted(ended) == ["ExecMainStatus=0", "NRestarts=0", "Result=success"], (unit, ended)
    finally:
        reader.close()
