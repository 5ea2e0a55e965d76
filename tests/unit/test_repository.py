"""The repository as a whole: layers, lock files, make targets, and nothing in it that belongs to one machine."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import onthedot

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def script(name: str):
    """scripts/ is run by path, not installed."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pins(name: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE))


def git(*args: str, at: Path) -> None:
    subprocess.run(["git", *args], cwd=at, check=True, capture_output=True)


def test_an_installation_brings_nothing_that_only_a_framework_wanted() -> None:
    assert pins("run.txt").keys() & {"faker", "httpx", "litestar", "polyfactory", "pydantic"} == set()


def test_nothing_tracked_belongs_to_one_machine() -> None:
    assert list(script("check_tracked").findings(ROOT)) == []


@pytest.mark.parametrize(
    "line",
    [
        "--index-url" + " https://mirror.example/" + "simple",
        "extra-index-url" + " = file:///srv/pypi",
        "url = https://mirror.example/root/pypi/+" + "simple/x",
        '"resolved"' + ': "https://mirror.example/x.tgz"',
        "cd " + "/root" + "/project",
        "/home" + "/ann/project",
        "lib/python3.11/site-" + "packages/aiohttp",
    ],
)
def test_a_line_of_one_machine_is_found(tmp_path: Path, line: str) -> None:
    git("init", "-q", at=tmp_path)
    (tmp_path / "notes.md").write_text(f"fine\n{line}\n")
    git("add", "notes.md", at=tmp_path)
    found = list(script("check_tracked").findings(tmp_path))
    assert len(found) == 1
    assert found[0].startswith("notes.md:2: ")


def test_a_lock_file_with_addresses_is_found(tmp_path: Path) -> None:
    git("init", "-q", at=tmp_path)
    (tmp_path / "uv.lock").write_text("version = 1\n")
    git("add", "uv.lock", at=tmp_path)
    assert list(script("check_tracked").findings(tmp_path)) == [
        "uv.lock: a lock file that names the address of a package index"
    ]


def test_imports_go_downwards_only() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_the_layers_name_every_module_of_the_package() -> None:
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    named = set(re.findall(r"\w+", " ".join(layers)))
    there = {path.stem for path in (ROOT / "src" / "onthedot").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert there - named <= {"__init__", "__main__", "__pycache__"}


def test_the_installed_version_is_the_one_in_the_source_and_in_the_changelog() -> None:
    assert importlib.metadata.version("onthedot") == onthedot.__version__
    assert f"## {onthedot.__version__} " in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("name", ["run.txt", "build.txt", "dev.txt", "uv.txt"])
def test_every_requirement_is_pinned_with_hashes(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text()
    blocks = [block for block in re.split(r"^(?=\S)", text, flags=re.MULTILINE) if block.strip()]
    assert blocks
    assert [block for block in blocks if "==" not in block or "--hash=sha256:" not in block] == []


def test_the_locks_agree_and_hold_everything_that_is_asked_for() -> None:
    run, build, dev = pins("run.txt"), pins("build.txt"), pins("dev.txt")
    assert {name: pin for name, pin in {**run, **build}.items() if dev.get(name) != pin} == {}
    groups = PROJECT["dependency-groups"]
    asked = {"run": PROJECT["project"]["dependencies"], "build": groups["build"], "dev": groups["dev"]}
    for lock, wanted in zip((run, build, dev), asked.values(), strict=True):
        assert {re.split(r"[>=<;\[ ]", one)[0].lower() for one in wanted} - set(lock) == set()


def test_help_lists_every_target() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    makefile = (ROOT / "Makefile").read_text()
    phony = next(line for line in makefile.splitlines() if line.startswith(".PHONY:")).split()[1:]
    assert re.findall(r"^  make (\S+)", shown, re.MULTILINE) == phony
    assert {"run", "test", "venv", "check", "help"} <= set(phony)


def test_ci_runs_what_a_developer_runs() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if not line.startswith("#")]
    assert commands[-1] == "exec make test"
    assert "export CI=true" in commands


def test_an_old_python_is_refused_with_what_to_do(tmp_path: Path) -> None:
    for name in ("dirname", "echo"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    for name in ("python3", "python3.11", "python"):
        old = tmp_path / name
        old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2 && exit 0\nexit 1\n')
        old.chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", ROOT / "scripts" / "venv.sh", "run"],
        env={"PATH": str(tmp_path), "VENV": str(tmp_path / "none"), "SYSTEM_PYTHON": str(tmp_path / "python3")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "needs Python 3.11 or newer; found: Python 3.9.2" in done.stderr
    assert "make run PYTHON=" in done.stderr


def test_a_directory_that_is_no_environment_is_never_emptied(tmp_path: Path) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("mine")
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "make_venv.py", "run"],
        env={"PATH": "", "HOME": str(tmp_path), "VENV": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "is no environment" in done.stderr
    assert precious.read_text() == "mine"
