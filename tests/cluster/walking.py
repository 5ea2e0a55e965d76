"""What a new user does, as steps a test can take: start things, ask over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.services.process import COMMAND, NodeProcess
from tests.services.waiting import until

__all__ = ["Echo", "ask", "shell"]


async def ask(
    node: NodeProcess, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Any]:
    """The status and the decoded answer."""

    def send() -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(node.url + path, data=data, method=method)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                status, raw = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, raw = error.code, error.read()
            error.close()
        try:
            return status, json.loads(raw)
        except ValueError:
            return status, raw.decode(errors="replace")

    return await asyncio.to_thread(send)


async def shell(node: NodeProcess, script: str, directory: Path) -> tuple[str, int]:
    """What a user types, with the commands of this environment: the output, and the exit code."""
    env = {"ONTHEDOT_URL": node.url, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "COLUMNS": "200"}
    done = await asyncio.to_thread(
        subprocess.run, ["/bin/sh", "-c", script], capture_output=True, text=True, cwd=directory, env=env
    )
    return done.stdout + done.stderr, done.returncode


class Echo:
    """`onthedot echo --json` as a real process."""

    def __init__(self, directory: Path, port: int) -> None:
        self.process = NodeProcess("echo", "--port", str(port), "--json", directory=directory, port=port)
        self.url = f"http://127.0.0.1:{port}/"

    async def ready(self) -> None:
        await until(lambda: "listening on" in self.process.output(), "echo listens")

    def arrivals(self, job_id: int | None = None) -> list[dict[str, Any]]:
        lines = [line for line in self.process.output().splitlines() if line.startswith("{")]
        heard = [json.loads(line) for line in lines]
        return [item for item in heard if job_id is None or item["run_id"].startswith(f"{job_id}-")]
