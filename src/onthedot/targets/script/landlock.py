"""The sandbox where namespaces of users are forbidden, as in containers: Landlock, a strict filter, and limits.

There are no processes, files, sockets or signals to be hidden, so the kernel is told to refuse them: a script reads the
interpreter and the libraries of the system and nothing else, writes nothing, starts no processes, opens no sockets
unless it is allowed to, and signals nobody but itself. With only one process, limits of a process are those of all.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import ExitStack

import msgspec

from onthedot.targets.process.spawning import Process, signal_group, spawn
from onthedot.targets.script import landlock_stub
from onthedot.targets.script.handed_over import sealed_file
from onthedot.targets.script.limits import Hits, rlimits
from onthedot.targets.script.sandbox import NOBODY, Launch, Sandbox, SandboxFailed, SandboxRun
from onthedot.targets.script.seccomp import StrictRules, filter_program

__all__ = ["LEAST_ABI", "LandlockSandbox"]

LEAST_ABI = 4
_READABLE = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/alternatives", "/etc/ld.so.cache")
_NETWORK = (
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/run/systemd/resolve",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


class LandlockSandbox(Sandbox):
    def __init__(self, abi: int) -> None:
        self.abi = abi
        self._user = NOBODY if os.geteuid() == 0 else None

    @property
    def description(self) -> str:
        return f"Landlock (ABI {self.abi}), seccomp and rlimits (scripts can't write files or start processes)"

    async def start(self, launch: Launch, stdout: int, stderr: int) -> SandboxRun:
        with ExitStack() as opened:

            def file(name: str, content: bytes) -> int:
                descriptor = sealed_file(name, content)
                opened.callback(os.close, descriptor)
                return descriptor

            told, told_end = os.pipe()
            opened.callback(os.close, told_end)
            try:
                code, stdin = file(launch.file_name, launch.code), file("params", launch.stdin)
                plan = file("plan", msgspec.json.encode(self._plan(launch, code)))
                process = spawn(
                    *(sys.executable, "-I", "-S", landlock_stub.__file__, str(plan), str(told_end), str(os.getpid())),
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    env={},
                    cwd="/",
                    pass_fds=(plan, told_end, code),
                )
            except BaseException:
                os.close(told)
                raise
        return _LandlockRun(process, told)

    def _plan(self, launch: Launch, code: int) -> dict[str, object]:
        rules = filter_program(StrictRules(network=launch.network), memfd=False)
        return {
            "abi": self.abi,
            "user": self._user,
            "rlimits": list(rlimits(launch.limits, by_cgroup=frozenset(), processes=False).items()),
            "readable": [*_READABLE, *launch.roots, *(_NETWORK if launch.network else ())],
            "writable": list(_DEVICES),
            "network": launch.network,
            "filter": rules.hex(),
            "argv": [*launch.argv, f"/proc/self/fd/{code}", *launch.args],
            "env": launch.env,
        }


class _LandlockRun(SandboxRun):
    def __init__(self, process: Process, told: int) -> None:
        self._process, self._told = process, told

    async def wait(self) -> int:
        code = await self._process.wait()
        if code == 1 and (why := os.read(self._told, 1000)):
            raise SandboxFailed(f"the sandbox could not be set up: {why.decode('utf-8', 'replace')}")
        return code

    def terminate(self) -> None:
        if self._process.returncode is None:
            signal_group(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        if self._process.returncode is None:
            signal_group(self._process.pid, signal.SIGKILL)

    async def clean_up(self) -> Hits:
        self.kill()
        try:
            await self._process.wait()
        finally:
            os.close(self._told)
        return Hits()
