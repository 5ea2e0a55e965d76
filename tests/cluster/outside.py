"""Work outside of all nodes, as steps a test can take: where it lies, what it did, and that none outlives the test."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

from tests.cluster.nodes import post
from tests.cluster.walking import ask
from tests.services.detached import DetachedWork, install
from tests.services.orphan_reaper import orphan_reaper
from tests.services.process import NodeProcess
from tests.services.waiting import until, until_blocking

__all__ = ["Outside", "runs_of"]

SCRIPT = """
echo began >> "$1/effects"
echo hello
while [ ! -e "$1/go" ]; do sleep 0.05; done
echo goodbye
echo ended >> "$1/effects"
"""


class Outside:
    """Two places, and one piece of work that goes on until the test says `go`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = install(directory / "site")
        self.dies = directory / "dies"
        self._seen: set[int] = set()

    def env(self, *places: str, **settings: str) -> dict[str, str]:
        """Of a node that has the plug-in, and reaches these places."""
        reached = {place: str(self._directory / place) for place in places}
        targets = {"detached": {"places": reached, "dies": str(self.dies)}}
        own = {"ONTHEDOT_LEASE": "3s", "ONTHEDOT_GRACE": "60s"}
        return own | {"PYTHONPATH": self._path, "ONTHEDOT_TARGETS": json.dumps(targets)} | settings

    def job(
        self, place: str = "here", schedule: Any = None, argv: list[str] | None = None, **policy: Any
    ) -> dict[str, Any]:
        work = argv or ["sh", "-c", SCRIPT, "sh", str(self._directory)]
        target = {"type": "detached", "place": place, "argv": work}
        return {"schedule": schedule or {"in": "1ms"}, "target": target, "policy": policy}

    def works(self, place: str = "here") -> list[DetachedWork]:
        folder = self._directory / place
        return [DetachedWork(path) for path in sorted(folder.iterdir())] if folder.is_dir() else []

    @property
    def effects(self) -> list[str]:
        """What was done, in this order."""
        written = self._directory / "effects"
        return written.read_text().split() if written.exists() else []

    async def begun(self, place: str = "here") -> DetachedWork:
        """The one that runs."""

        def running() -> list[DetachedWork]:
            return [work for work in self.works(place) if work.pid is not None] if self.effects else []

        (work,) = await until(running, "the work has begun")
        assert work.pid is not None
        orphan_reaper.runs(-work.pid, signal.SIGKILL)
        self._seen.add(work.pid)
        return work

    async def create(self, node: NodeProcess, place: str = "here", **policy: Any) -> tuple[str, DetachedWork]:
        """A job whose one run has begun its work; the id of the run."""
        made = await post(node, "/v1/jobs", self.job(place, **policy))
        work = await self.begun(place)
        (run,) = await runs_of(node, made["id"])
        return run["id"], work

    def go(self) -> None:
        (self._directory / "go").touch()

    def end(self) -> None:
        """None is left when the test is over."""
        left = [*self.works("here"), *self.works("there")]
        for work in left:
            work.kill()
        until_blocking(lambda: all(work.pid is None for work in left), "they are dead")
        for pid in self._seen:
            orphan_reaper.ended(-pid)


async def runs_of(node: NodeProcess, job_id: int) -> list[dict[str, Any]]:
    _, page = await ask(node, "GET", f"/v1/runs?job_id={job_id}")
    return list(page["items"])
