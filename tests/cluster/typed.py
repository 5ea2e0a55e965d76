"""A page of the manual, typed as it stands by a user who has a directory, a settings file and a node in it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.cluster.walking import ask
from tests.docs.blocks import ROOT, blocks_of
from tests.services.process import COMMAND, NodeProcess
from tests.services.waiting import until

__all__ = ["SHOWN", "TypedPage", "doctor", "html_of", "log_of", "run_of", "run_with"]

SHOWN = "1-1767225600000-m1"
"""The id of a run on pages."""


class TypedPage:
    def __init__(self, name: str, directory: Path) -> None:
        self.directory = directory
        self.text = (ROOT / "docs" / name).read_text()
        self._blocks = blocks_of(f"docs/{name}")

    def block(self, words: str, language: str = "sh") -> str:
        """The one with these words."""
        (found,) = [block.text for block in self._blocks if block.language == language and words in block.text]
        return found

    def settings(self, text: str) -> None:
        (self.directory / "onthedot.toml").write_text(text)

    async def type(
        self, script: str, node: NodeProcess | None = None, *, code: int = 0, shell: str = "sh", **env: str
    ) -> str:
        """What is printed. With a node, it is the server of the commands."""
        env |= {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "COLUMNS": "200", "HOME": str(self.directory)}
        if node is not None:
            env["ONTHEDOT_URL"] = node.url
            script = script.replace("http://127.0.0.1:8000", node.url)
        typed = [shell, "-ec", script]

        def run() -> subprocess.CompletedProcess[str]:
            return subprocess.run(typed, capture_output=True, text=True, cwd=self.directory, env=env)

        done = await asyncio.to_thread(run)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    async def add_run_and_look(self, script: str, node: NodeProcess, *wanted: str) -> dict[str, Any]:
        """A block that adds a job, runs it, and shows the run with the id that the page has. The run is waited for in
        between, as a reader does."""
        before, run, after = re.split(r"^(onthedot jobs run \S+).*\n", script, flags=re.MULTILINE)
        (run_id,) = re.findall(r'"id": ?"([^"]+)"', await self.type(f"{before}{run} --json", node))
        found = await run_of(node, run_id, *wanted)
        assert SHOWN in after
        return found | {"shown": await self.type(after.replace(SHOWN, run_id), node)}


async def doctor(page: TypedPage, node: NodeProcess | None = None, *, code: int = 0) -> str:
    """Its lines, with one blank between words."""
    return re.sub(" +", " ", await page.type("onthedot doctor", node, code=code))


async def run_of(node: NodeProcess, run_id: str, *wanted: str) -> dict[str, Any]:
    """The run, when it has one of these statuses."""

    async def look() -> Any:
        _, run = await ask(node, "GET", f"/v1/runs/{run_id}")
        return run if run["status"] in wanted else None

    found: dict[str, Any] = await until(look, f"{run_id} is {wanted}", 60)
    return found


async def run_with(node: NodeProcess, job: str | int, *wanted: str) -> dict[str, Any]:
    """The newest run of a job, by its key or its id, with one of these statuses."""

    async def look() -> Any:
        job_id = job
        if isinstance(job, str):
            _, found = await ask(node, "GET", f"/v1/jobs/by-key/{job}")
            job_id = found["id"]
        _, page = await ask(node, "GET", f"/v1/jobs/{job_id}/runs")
        return [run for run in page["items"] if run["status"] in wanted]

    newest = (await until(look, f"a run of {job} is {wanted}", 60))[0]
    _, run = await ask(node, "GET", f"/v1/runs/{newest['id']}")
    return dict(run)


async def log_of(node: NodeProcess, run_id: str) -> str:
    status, log = await ask(node, "GET", f"/v1/runs/{run_id}/logs")
    assert status == 200, log
    return str(log["log"] if isinstance(log, dict) else log)


async def html_of(node: NodeProcess, run_id: str) -> str:
    """The page of a run."""
    status, page = await ask(node, "GET", f"/runs/{run_id}", headers={"accept": "text/html"})
    assert status == 200, page
    return str(page)
