"""The files of the image and of compose, read: `make test-deploy` runs them for real."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from onthedot.settings import load_settings
from onthedot.settings.sources import BARE_NAMES, BARE_PARTS, PARTS
from onthedot.settings.values import PARSERS
from onthedot.telemetry.otlp.config import read_config

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
NODES = ("crud-api", "executor", "ui")
OURS = (*NODES, "witness")


def _plain(value: Any) -> str:
    """`${NAME:-default}` → the default, from the inside out."""
    text = str(value)
    while "${" in text:
        text = re.sub(r"\$\{[A-Z_]+(?::-([^${}]*))?\}", lambda found: found[1] or "", text)
    return text


def _instructions() -> list[tuple[str, str]]:
    joined = re.sub(r"\\\n(\s*#.*\n)*", " ", DOCKERFILE)
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2]) for line in lines]


def test_the_services_of_the_contract() -> None:
    assert {"storage", "crud-api", "executor", "ui", "waitecho"} <= set(SERVICES)
    assert [SERVICES[name].get("deploy", {}).get("replicas", 1) for name in NODES] == [2, 3, 1]
    assert "5003" in SERVICES["waitecho"]["command"]


@pytest.mark.parametrize("name", [*OURS, "migrate", "secrets", "waitecho"])
def test_ours_are_hardened(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["init"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


@pytest.mark.parametrize("name", OURS)
def test_their_environment_is_one_that_a_node_takes(name: str, tmp_path: Path) -> None:
    environ = {key: _plain(value) for key, value in SERVICES[name]["environment"].items()}
    known = {*BARE_NAMES, *BARE_PARTS, *(f"ONTHEDOT_{each}" for each in (*PARSERS, *PARTS))}
    assert {each for each in environ if not each.startswith("OTEL_")} <= known
    for each in [each for each in environ if each.endswith("_FILE")]:
        environ[each] = str(tmp_path / "secret")
    (tmp_path / "secret").write_text("otd_0123456789abcdef0123456789\n")
    (tmp_path / "onthedot.toml").touch()
    settings = load_settings({}, environ, tmp_path / "onthedot.toml")
    assert settings.store == "postgresql://onthedot:otd_0123456789abcdef0123456789@storage:5432/onthedot"
    assert settings.egress_allow == (_plain(COMPOSE["networks"]["default"]["ipam"]["config"][0]["subnet"]),)
    assert (settings.admin_key is not None) == (name in ("crud-api", "ui"))
    assert settings.given <= {"store", "log_level", "egress_allow", "public_url", "roles", "admin_key", "metrics_port"}
    assert read_config(environ) is None, "nothing is sent unless somebody says where to"


def test_what_can_be_set_is_in_the_manual() -> None:
    names = set(re.findall(r"\$\{([A-Z_]+)", (ROOT / "compose.yaml").read_text()))
    page = (ROOT / "docs" / "deployment.md").read_text()
    assert {name for name in names if f"`{name}`" not in page and not name.startswith("OTEL_")} == set()
    rows = re.findall(r"^\| (`OTEL_.*?) \|", (ROOT / "docs" / "observability.md").read_text(), re.MULTILINE)
    told = {each for row in rows for each in re.findall(r"OTEL_[A-Z_]+", row)}
    told |= {f"OTEL_EXPORTER_OTLP{each}" for row in rows for each in re.findall(r"`(_[A-Z]+)`", row)}
    more = {f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT" for signal in ("TRACES", "LOGS")}
    assert {name for name in names if name.startswith("OTEL_")} == told | more


def test_the_witness_depends_on_no_node_and_is_asked_on_its_own_port() -> None:
    witness = SERVICES["witness"]
    assert set(witness["depends_on"]) == {"storage", "migrate"}, "it is there for the time when no node starts"
    assert witness.get("deploy", {}).get("replicas", 1) == 1
    assert witness["command"][0] == "witness"
    assert witness["volumes"] == ["secrets:/run/onthedot:ro"], "it writes nothing"
    path, port = witness["healthcheck"]["test"][-2:]
    assert (path, port) == ("/healthz", str(witness["environment"]["ONTHEDOT_METRICS_PORT"]))
    assert "ports" not in witness


def test_nothing_is_published_beyond_this_machine_by_default() -> None:
    published = [_plain(port) for service in SERVICES.values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_dockerfile() -> None:
    steps = _instructions()
    words = {"ARG", "FROM", "WORKDIR", "ENV", "COPY", "RUN", "LABEL", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK"}
    assert {step for step, _ in steps} <= words | {"ENTRYPOINT", "CMD"}
    assert len([step for step, _ in steps if step == "FROM"]) == 2, "what builds stays behind"
    last = dict(steps)
    assert last["USER"] == "10001:10001"
    assert last["STOPSIGNAL"] == "SIGTERM"
    assert "--require-hashes -r requirements/${REQUIREMENTS}.txt" in DOCKERFILE
    assert "ARG REQUIREMENTS=run" in DOCKERFILE
    sources = [rest.split()[:-1] for step, rest in steps if step == "COPY" and "--from" not in rest]
    for source in (path for paths in sources for path in paths):
        assert (ROOT / source).exists(), source
        ignored = (ROOT / ".dockerignore").read_text().splitlines()
        assert any(line.startswith("!") and source.startswith(line[1:].rstrip("/")) for line in ignored), source


@pytest.mark.parametrize("script", ["run.sh", "deploy/docker/make-secrets.sh", "tests/deploy/postgres/entrypoint.sh"])
def test_scripts_parse(script: str) -> None:
    subprocess.run(["sh", "-n", ROOT / script], check=True)
    assert (ROOT / script).read_text().startswith("#!/bin/sh\n")
