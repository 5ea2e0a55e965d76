"""A machine that has nothing of ours: a copy of the checkout without what git ignores, an empty home, and an
environment that says only where package registries are. Its ports are its own, where namespaces can be made."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

from tests.services.orphan_reaper import orphan_reaper
from tests.services.waiting import until_blocking

__all__ = ["FreshMachine", "blocks_of_readme"]

ROOT = Path(__file__).parents[2]
REGISTRIES = re.compile(
    r"(PIP|UV)_\w+|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE|(https?|all|no)_proxy", re.IGNORECASE
)


def blocks_of_readme(count: int) -> list[list[str]]:
    """The commands of its first blocks, without comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    return [
        [line.partition("  #")[0].rstrip() for line in block.splitlines() if line.strip()] for block in blocks[:count]
    ]


class FreshMachine:
    def __init__(self, folder: Path) -> None:
        self.home, self.checkout = folder / "home", folder / "checkout"
        self.home.mkdir()
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in listed.split("\0"):
            if name and (ROOT / name).exists():
                (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.checkout / name)
        given = {name: value for name, value in os.environ.items() if REGISTRIES.fullmatch(name)}
        path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        self._env = {"PATH": path, "HOME": str(self.home), "PYTHONUNBUFFERED": "1", **given}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._own_ports: list[str] = []

    def run(self, *lines: str) -> str:
        """In one terminal, line by line."""
        done = subprocess.run(
            ["bash", "-euc", "\n".join(lines)], cwd=self.checkout, env=self._env, capture_output=True, text=True,
            timeout=600, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{lines}: {done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def separate(self) -> None:
        """From here on its loopback is its own, and nothing else is reached: another server may have the ports."""
        if os.geteuid() == 0 and shutil.which("unshare") and shutil.which("nsenter"):
            ready = self.home / "separate"
            holder = self._popen(
                ["unshare", "--net", "sh", "-c", f"ip link set lo up && touch {ready} && exec sleep infinity"],
                self.home / "log",
            )
            until_blocking(ready.exists, "its loopback is there", 10)
            self._own_ports = ["nsenter", "-t", str(holder.pid), "-n"]

    def terminal(self, *lines: str) -> Path:
        """One more terminal, in which the last line goes on; what it prints is written here."""
        log = self.home / f"terminal-{len(self._processes)}"
        *before, last = lines
        self._popen([*self._own_ports, "bash", "-euc", "\n".join([*before, f"exec {last}"])], log)
        return log

    def close(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(30)
            orphan_reaper.ended(-process.pid)

    def _popen(self, command: list[str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=self.checkout, env=self._env, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip
        orphan_reaper.runs(-process.pid, signal.SIGKILL)
        self._processes.append(process)
        return process
