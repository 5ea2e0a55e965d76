"""Scripts on real nodes: what users see of them, and what becomes of them when their node goes."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil

from tests.cluster.nodes import post
from tests.cluster.typed import html_of
from tests.cluster.walking import ask
from tests.services.process import COMMAND, NodeProcess
from tests.services.waiting import until


def endless(mark: str) -> str:
    """One that never ends, and can be recognised among all processes."""
    shell = f": {mark}; while :; do sleep 1; done"
    return f"import os\nprint('began')\nos.execv('/bin/sh', ['sh', '-c', {shell!r}])"


def marked(mark: str) -> list[int]:
    return [found.pid for found in psutil.process_iter(["cmdline"]) if mark in " ".join(found.info["cmdline"] or [])]


def only(mark: str) -> list[int]:
    """The one process there is; none while a fork of it has not begun its own program yet."""
    return found if len(found := marked(mark)) == 1 else []


def job(code: str, **fields: Any) -> dict[str, Any]:
    return {"schedule": {"in": "1ms"}, "target": {"type": "script", "code": code}, **fields}


async def run_of(node: NodeProcess, job_id: int) -> dict[str, Any]:
    _, page = await ask(node, "GET", f"/v1/runs?job_id={job_id}")
    return dict(page["items"][0]) if page["items"] else {}


async def ended(node: NodeProcess, job_id: int) -> dict[str, Any]:
    async def look() -> dict[str, Any]:
        found = await run_of(node, job_id)
        return found if found.get("status") in ("DONE", "FAILED", "CANCELLED") else {}

    found: dict[str, Any] = await until(look, "the run has ended")
    return found


def cli(node: NodeProcess, *args: str, directory: Path) -> str:
    done = subprocess.run(
        [COMMAND, *args],
        capture_output=True,
        text=True,
        cwd=directory,
        env={"ONTHEDOT_URL": node.url, "COLUMNS": "200"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_from_upload_to_result(cluster, tmp_path):
    node = cluster.start("--store", f"sqlite:///{tmp_path}/jobs.db")
    await node.ready()
    report = tmp_path / "report.py"
    report.write_text("import json, sys\nparams = json.load(sys.stdin)\nprint('counting')\nprint(json.dumps(params))\n")

    def command(*args: str) -> str:
        return cli(node, *args, directory=tmp_path)

    script = (await asyncio.to_thread(command, "scripts", "put", "report.py")).strip()
    assert script.startswith("sha256:")
    assert "report.py" in await asyncio.to_thread(command, "scripts", "list")
    params = ("--param", "day=1")
    run: dict[str, Any] = {}
    for chosen in (("--script-id", script), ("--script", "report.py"), ("--script", "report.py", "--memory", "64M")):
        made = json.loads(await asyncio.to_thread(command, "jobs", "add", "--in", "1ms", *chosen, *params, "--json"))
        run = await ended(node, made["id"])
        _, whole = await ask(node, "GET", f"/v1/runs/{run['id']}")
        assert (whole["status"], whole["result"]) == ("DONE", {"day": 1}), whole
    assert await asyncio.to_thread(command, "runs", "logs", run["id"]) == 'counting\n{"day":1}\n'.replace(":1", ": 1")
    assert '{"day":1}' in (await asyncio.to_thread(command, "runs", "show", run["id"])).replace(" ", "")
    shown = await html_of(node, run["id"])
    assert "counting" in shown
    assert "day" in shown
    await asyncio.to_thread(command, "scripts", "delete", script)
    found = await asyncio.to_thread(command, "doctor")
    assert "scripts   python in bubblewrap" in found


async def test_failed_timed_out_and_cancelled(cluster, tmp_path):
    node = cluster.start("--store", f"sqlite:///{tmp_path}/jobs.db")
    await node.ready()
    mark = f"onthedot-test-{time.monotonic_ns()}"
    once = {"retry": {"attempts": 1}}
    failing = await post(node, "/v1/jobs", job("raise SystemExit(3)", policy=once))
    assert (await ended(node, failing["id"]))["error"] == "exit code 3"
    hungry = await post(node, "/v1/jobs", job("x = bytearray(1 << 30)", policy=once))
    assert (await ended(node, hungry["id"]))["error"] == "out of memory (limit 256 MB)"
    slow = await post(node, "/v1/jobs", job(endless(mark), policy={**once, "timeout": "300ms"}))
    timed_out = await ended(node, slow["id"])
    assert (timed_out["status"], timed_out["outcome"]["kind"]) == ("FAILED", "timeout")
    assert marked(mark) == []
    stopped = await post(node, "/v1/jobs", job(endless(mark)))
    await until(lambda: marked(mark), "it runs")
    run = await run_of(node, stopped["id"])

    async def began() -> bool:
        _, log = await ask(node, "GET", f"/v1/runs/{run['id']}/logs")
        return "began" in str(log)

    await until(began, "its log is there while it runs")
    await post(node, f"/v1/runs/{run['id']}/cancel", expect=202)
    assert (await ended(node, stopped["id"]))["status"] == "CANCELLED"
    assert marked(mark) == []


async def test_a_script_dies_with_its_node_and_is_repeated(cluster, tmp_path):
    store = f"sqlite:///{tmp_path}/jobs.db"
    node = cluster.start("--store", store)
    await node.ready()
    mark = f"onthedot-test-{time.monotonic_ns()}"
    made = await post(node, "/v1/jobs", job(endless(mark)))
    (before,) = await until(lambda: only(mark), "it runs")
    node.signal(signal.SIGKILL)
    await until(lambda: not marked(mark), "the kernel ended it")
    again = cluster.start("--store", store)
    await again.ready()
    (after,) = await until(lambda: only(mark), "it runs again")
    assert after != before
    run = await run_of(again, made["id"])
    assert (run["status"], run["losses"]) == ("EXECUTING", 1)
    again.signal(signal.SIGTERM)
    assert await again.exited() == 0
    assert marked(mark) == [], "a node that stops leaves nothing behind"


async def test_without_a_sandbox_a_job_is_refused(cluster, tmp_path):
    """An interpreter that is not there, as any machine has one."""
    (tmp_path / "onthedot.toml").write_text('[scripts]\ninterpreters = {lua = "/no/such/lua"}\n')
    node = cluster.start("--store", f"sqlite:///{tmp_path}/jobs.db")
    await node.ready()
    body = job("print(1)")
    body["target"]["interpreter"] = "lua"
    refused = await post(node, "/v1/jobs", body, expect=422)
    assert refused["type"].endswith("not-available")
    assert refused["errors"][0]["message"] == "not available: /no/such/lua is not installed"
