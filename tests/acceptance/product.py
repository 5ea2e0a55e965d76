"""The product as its users have it: a process, an address, a command."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import httpx

from tests.services.ports import free_port
from tests.services.process import COMMAND, NodeProcess
from tests.services.waiting import until_blocking

__all__ = ["HOOK", "Product"]

HOOK = {"type": "webhook", "url": "http://127.0.0.1:9/never"}


class Product:
    """`onthedot serve` in a folder of its own. `kill` and `start` again keep the store."""

    def __init__(self, directory: Path, store: str, *more: str, env: dict[str, str] | None = None) -> None:
        self.directory, self.store, self.more = directory, store, more
        self.env = {"PYTHONPATH": str(directory), **(env or {})}
        self.port = free_port()
        self.start()
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=20)

    def start(self) -> None:
        arguments = ("--store", self.store, *self.more)
        self.node = asyncio.run(NodeProcess.serve(*arguments, directory=self.directory, port=self.port, env=self.env))

    def close(self) -> None:
        self.http.close()
        self.node.kill()

    def command(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return run(self.directory, *arguments, ONTHEDOT_URL=str(self.http.base_url), **env)

    def job(self, **fields: Any) -> dict[str, Any]:
        answer = self.http.post("/v1/jobs", json={"schedule": {"cron": "0 3 * * *"}, "target": HOOK, **fields})
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def runs(self, job: dict[str, Any], status: str = "") -> list[dict[str, Any]]:
        answer = self.http.get(f"/v1/jobs/{job['id']}/runs", params={"status": status} if status else {})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["items"])

    def ended(self, job: dict[str, Any]) -> dict[str, Any]:
        """The one run of a job, once it has ended."""
        final = {"DONE", "FAILED", "CANCELLED", "SKIPPED"}
        what = f"a run of {job['target']} ends"
        (run,) = until_blocking(lambda: [run for run in self.runs(job) if run["status"] in final], what)
        return run


def run(directory: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(directory), "COLUMNS": "200", **env}
    return subprocess.run(
        [COMMAND, *arguments], cwd=directory, env=environ, capture_output=True, text=True, timeout=50, check=False
    )


def printed(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
