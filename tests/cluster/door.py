"""The way from a node to its database, with what can go wrong on it: `proof.chaos.proxy` as a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["Door"]


class Door:
    def __init__(self, upstream: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "proof.chaos.proxy", str(upstream)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.port = self.order("open", door="one")

    def order(self, what: str, **more: Any) -> int:
        """cut, refuse, delay, silence, swallow, heal: see there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": what, **more}).encode() + b"\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
