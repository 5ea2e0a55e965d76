"""A kind of target that somebody else wrote: examples/plugin, installed as its users install it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from onthedot.model.secret_text import MASK
from tests.cluster.conftest import EXAMPLES
from tests.cluster.nodes import Cluster, alive, post
from tests.cluster.typed import html_of
from tests.cluster.walking import Echo, ask
from tests.services.process import NodeProcess
from tests.services.waiting import until

TARGET = {"type": "notes", "file": "diary", "line": "good morning"}


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that has the plug-in: its wheel, unpacked on the path."""
    source = shutil.copytree(EXAMPLES / "plugin", tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "wheels")]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    (wheel,) = (tmp_path / "wheels").iterdir()
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    return {"PYTHONPATH": str(tmp_path / "site")}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """What the operator configures."""
    directory = tmp_path / "notes"
    directory.mkdir()
    (tmp_path / "onthedot.toml").write_text(f'[targets.notes]\ndirectory = "{directory}"\n')
    return directory / "diary.txt"


async def ended(node: NodeProcess, job: Any) -> dict[str, Any]:
    async def look() -> Any:
        _, page = await ask(node, "GET", f"/v1/runs?job_id={job['id']}&status=DONE")
        return page["items"]

    return (await until(look, "a run of it is done", 30))[-1]  # type: ignore[no-any-return]


def log_lines(node: NodeProcess, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in node.output().splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == event]


def test_the_example_is_as_short_as_promised():
    assert len((EXAMPLES / "plugin" / "onthedot_notes.py").read_text().splitlines()) <= 60


async def test_jobs_of_it_fire(sqlite_url, cluster: Cluster, installed: dict[str, str], notes: Path):
    node = cluster.start("--store", sqlite_url, env=installed)
    await node.ready()
    assert "\nplugins notes\n" in node.output()
    (seen,) = (await alive(node)).values()
    assert {"webhook", "notes"} <= set(seen["offers"])
    for wrong, path in (
        ({"file": 3}, "target.file"),
        ({"file": "../etc"}, "target.file"),
        ({"colour": "red"}, "target.colour"),
    ):
        spec = {"schedule": {"in": "1s"}, "target": {**TARGET, **wrong}}
        status, problem = await ask(node, "POST", "/v1/jobs", spec)
        assert (status, [error["path"] for error in problem["errors"]]) == (422, [path])
    job = await post(node, "/v1/jobs", {"key": "diary", "schedule": {"in": "1ms"}, "target": TARGET})
    run = await ended(node, job)
    assert run["outcome"] == {"kind": "ok", "bytes": len("good morning\n")}
    assert notes.read_text() == "good morning\n"
    _, log = await ask(node, "GET", f"/v1/runs/{run['id']}/logs")
    assert f"{notes} has 13 bytes now" in log
    add = ("jobs", "add", "--in", "1ms", "--file", "diary", "--line", "good night", "--server", node.url)
    added = NodeProcess(*add, directory=node.directory, port=0, env=installed)
    assert await added.exited() == 0, added.output()
    await until(lambda: notes.read_text() == "good morning\ngood night\n", "what the command line added fires", 30)
    await shown_everywhere(node, installed)
    shown = await html_of(node, run["id"])
    assert f"{notes} has 13 bytes now" in shown
    for path in (f"/jobs/{job['id']}", f"/jobs/{job['id']}/edit"):
        status, page = await ask(node, "GET", path)
        assert (status, "good morning" in page) == (200, True), path
    doctor = NodeProcess("doctor", "--server", node.url, directory=node.directory, port=2, env=installed)
    assert await doctor.exited() == 0, doctor.output()
    assert "✓ plug-ins  notes\n" in doctor.output()
    assert log_lines(node, "plugin.broken") == []
    assert await node.stop() == 0


async def shown_everywhere(node: NodeProcess, installed: dict[str, str]) -> None:
    """Wherever a kind is shown: the OpenAPI document, the filter of lists, the page and the command line."""
    _, document = await ask(node, "GET", "/openapi.json")
    assert document["components"]["schemas"]["NotesTarget"]["required"] == ["type", "file", "line"]
    _, found = await ask(node, "GET", "/v1/jobs?target=notes")
    assert {job["target"]["type"] for job in found["items"]} == {"notes"}
    _, page = await ask(node, "GET", "/jobs?q=diary&status=all")
    assert 'title="notes ' in page
    show = NodeProcess("jobs", "show", "diary", "--server", node.url, directory=node.directory, port=0, env=installed)
    assert await show.exited() == 0, show.output()
    assert "notes diary" in show.output()


async def test_a_node_without_it_shows_its_jobs_and_does_not_run_them(
    sqlite_url, cluster: Cluster, installed: dict[str, str], notes: Path, echo: Echo
):
    node = cluster.start("--store", sqlite_url, env=installed)
    await node.ready()
    job = await post(node, "/v1/jobs", {"key": "diary", "schedule": {"every": "1s"}, "target": TARGET})
    await ended(node, job)
    assert await node.stop() == 0
    before = notes.read_text()
    without = cluster.start("--store", sqlite_url)
    await without.ready()
    (line,) = log_lines(without, "plugin.broken")
    assert (line["plugin"], "Installed: none" in line["error"]) == ("notes", True)
    assert "plugins notes can't be used: is not installed, but has settings in [targets.notes]" in without.output()
    _, shown = await ask(without, "GET", "/v1/jobs/by-key/diary")
    assert shown["target"] == {"type": "notes", "file": MASK, "line": MASK}
    status, problem = await ask(without, "POST", "/v1/jobs", {"schedule": {"in": "1s"}, "target": TARGET})
    (error,) = problem["errors"]
    assert (status, error["path"], error["given"]) == (422, "target.type", "notes")
    assert error["accepted"].startswith("webhook, function, command, ")
    assert "install its plug-in on this node with pip" in error["accepted"]
    run = await post(without, f"/v1/jobs/{job['id']}/run")
    webhook = {"schedule": {"in": "1ms"}, "target": {"type": "webhook", "url": echo.url}}
    await ended(without, await post(without, "/v1/jobs", webhook))
    _, seen = await ask(without, "GET", f"/v1/runs/{run['id']}")
    assert (seen["status"], seen["node"]) == ("PENDING", None)
    assert notes.read_text() == before
    assert (await post(without, f"/v1/jobs/{job['id']}/pause", expect=200))["state"] == "paused"
    status, _ = await ask(without, "DELETE", f"/v1/jobs/{job['id']}")
    assert status == 204
    assert (await ask(without, "GET", f"/v1/jobs/{job['id']}"))[0] == 404
    assert await without.stop() == 0


async def test_those_that_fail_do_not_stop_the_server(
    sqlite_url, cluster: Cluster, installed: dict[str, str], echo: Echo
):
    """One has wrong settings, the other can't even be imported."""
    add_broken(Path(installed["PYTHONPATH"]))
    env = {**installed, "ONTHEDOT_TARGETS": '{"notes": {"dir": "/"}}'}
    node = cluster.start("--store", sqlite_url, env=env)
    await node.ready()
    why = {"notes": "ValidationError: Object contains unknown field `dir`", "telex": "ImportError: no line"}
    for name, reason in why.items():
        assert f"{name} can't be used: {reason}" in node.output()
    assert {line["plugin"]: line["error"] for line in log_lines(node, "plugin.broken")} == why
    for target in (TARGET, {"type": "telex"}):
        status, problem = await ask(node, "POST", "/v1/jobs", {"schedule": {"in": "1s"}, "target": target})
        (error,) = problem["errors"]
        assert (status, error["path"], error["given"]) == (422, "target.type", target["type"])
        assert "`onthedot doctor` shows the reason" in error["message"]
        assert {"webhook", "function", "command"} <= set(error["accepted"].split(", "))
    webhook = {"schedule": {"in": "1ms"}, "target": {"type": "webhook", "url": echo.url}}
    await ended(node, await post(node, "/v1/jobs", webhook))
    doctor = NodeProcess("doctor", directory=node.directory, port=1, env=env)
    assert await doctor.exited() == 1
    for name, reason in why.items():
        assert f"✗ plug-in   {name}: {reason}\n" in doctor.output()
    assert await node.stop() == 0


def add_broken(site: Path) -> None:
    """A distribution whose module can't be imported."""
    (site / "telexes.py").write_text("raise ImportError('no line')")
    about = site / "telexes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: telexes\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[onthedot.targets]\ntelex = telexes\n")


async def test_the_doctor_names_it(tmp_path: Path, installed: dict[str, str], notes: Path):
    doctor = NodeProcess("doctor", directory=tmp_path, port=1, env=installed)
    assert await doctor.exited() == 0, doctor.output()
    assert "✓ plug-ins  notes\n" in doctor.output()
    (tmp_path / "onthedot.toml").write_text("[targets.notes]\ndirectory = 3\n")
    doctor = NodeProcess("doctor", directory=tmp_path, port=2, env=installed)
    assert await doctor.exited() == 1
    assert "✗ plug-in   notes: ValidationError: Expected `str`, got `int` - at `$.directory`\n" in doctor.output()
    assert "→ correct [targets.notes] in the settings, or update or uninstall it\n" in doctor.output()
