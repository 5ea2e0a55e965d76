"""The sandbox by bubblewrap: namespaces, a filter of system calls, and a cgroup.

bubblewrap sets everything up, tells the number of the process that will be the script, and waits. That process is put
into its cgroup before it is let go, so that there is no moment without limits. Those of single processes it puts on
itself, by the program `prlimit`, and then becomes the interpreter: in there, processes are counted for this script
alone, and nobody needs the right to limit others. Without that program they are set from here.

It is run as an ordinary user where the node is root, and without any environment: a script can read that of its first
process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import signal
from contextlib import ExitStack

from onthedot.targets.process.spawning import Process, signal_group, spawn
from onthedot.targets.script.bubblewrap_args import CODE, encoded, sandbox_args
from onthedot.targets.script.cgroup import Cgroup, Cgroups
from onthedot.targets.script.handed_over import sealed_file
from onthedot.targets.script.limits import Hits, rlimit_words, rlimits
from onthedot.targets.script.sandbox import NOBODY, Launch, Sandbox, SandboxFailed, SandboxRun
from onthedot.targets.script.seccomp import filter_program
from onthedot.targets.script.status import Status

__all__ = ["Bubblewrap"]

NOT_SET_UP = "bubblewrap could not set up the sandbox; see the log of the run"
PRLIMIT = "/usr/bin/prlimit"
GONE_WITHIN = 2.0
"""Seconds in which the processes of a script that has ended are gone, too."""
LOOK_AGAIN = 0.005


class Bubblewrap(Sandbox):
    def __init__(self, program: str, cgroups: Cgroups | None, *, has_proc: bool = True) -> None:
        self.program, self.cgroups, self.has_proc = program, cgroups, has_proc
        self.controllers = frozenset[str]() if cgroups is None else cgroups.controllers
        self._limits_itself = os.access(PRLIMIT, os.X_OK)
        self._filter = filter_program(memfd="memory" in self.controllers)
        self._user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}

    @property
    def description(self) -> str:
        if self.cgroups is None:
            return "bubblewrap, seccomp and rlimits (memory is limited for each process, CPUs by affinity)"
        names = ", ".join(sorted(self.controllers))
        return f"bubblewrap, seccomp and cgroup v{self.cgroups.version} ({names})"

    async def start(self, launch: Launch, stdout: int, stderr: int) -> SandboxRun:
        group = None if self.cgroups is None else self.cgroups.make(launch.limits)
        try:
            with ExitStack() as opened:
                run = self._spawn(opened, launch, group, stdout, stderr)
        except BaseException:
            if group is not None:
                group.remove()
            raise
        try:
            await run.let_go(launch, self.controllers, limit=not self._limits_itself)
        except BaseException:
            run.kill()
            await run.clean_up()
            raise
        return run

    def _spawn(
        self, opened: ExitStack, launch: Launch, group: Cgroup | None, stdout: int, stderr: int
    ) -> _BubblewrapRun:
        def file(name: str, content: bytes) -> int:
            descriptor = sealed_file(name, content)
            opened.callback(os.close, descriptor)
            return descriptor

        status, status_end = os.pipe()
        opened.callback(os.close, status_end)
        with ExitStack() as ours:
            ours.callback(os.close, status)
            go_end, go = os.pipe()
            opened.callback(os.close, go_end)
            ours.callback(os.close, go)
            code, rules, stdin = file("code", launch.code), file("rules", self._filter), file("params", launch.stdin)
            own = [
                *sandbox_args(launch, code_fd=code, has_proc=self.has_proc),
                *("--json-status-fd", str(status_end), "--block-fd", str(go_end), "--seccomp", str(rules)),
            ]
            args = file("args", encoded(own))
            limiting = rlimit_words(rlimits(launch.limits, by_cgroup=self.controllers))
            wrapper = (PRLIMIT, *limiting, "--") if self._limits_itself else ()
            command = (*wrapper, *launch.argv, f"{CODE}/{launch.file_name}", *launch.args)
            process = spawn(
                *(self.program, "--args", str(args), "--", *command),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env={},
                cwd="/",
                pass_fds=(status_end, go_end, code, rules, args),
                **self._user,
            )
            ours.pop_all()
        return _BubblewrapRun(process, group, Status(status), go)


class _BubblewrapRun(SandboxRun):
    def __init__(self, process: Process, group: Cgroup | None, status: Status, go: int) -> None:
        self._process, self._group, self._status, self._go = process, group, status, go
        self._first = -1  # the first process of the sandbox, by a descriptor: its number may be another's soon
        self._pid = 0

    async def let_go(self, launch: Launch, by_cgroup: frozenset[str], *, limit: bool) -> None:
        """Wait for the process that will be the script, limit it, and let it go. `limit`: it does not so itself."""
        pid = await self._status.child()
        if pid is None:
            raise SandboxFailed(NOT_SET_UP)
        try:
            self._first = os.pidfd_open(pid)
            self._pid = pid
            if self._group is not None:
                self._group.add(pid)
            if "cpu" not in by_cgroup:
                with contextlib.suppress(PermissionError):  # root of a container may lack the right
                    os.sched_setaffinity(pid, _some_cpus(launch.limits.cpus))
            for number, most in rlimits(launch.limits, by_cgroup=by_cgroup).items() if limit else ():
                resource.prlimit(pid, number, (most, most))
        except ProcessLookupError:
            raise SandboxFailed(NOT_SET_UP) from None
        except PermissionError as error:
            raise SandboxFailed(f"the limits could not be set: {error}") from error
        try:
            os.write(self._go, b"x")
        except BrokenPipeError:  # it has failed and gone meanwhile
            raise SandboxFailed(NOT_SET_UP) from None
        self._close_go()

    async def wait(self) -> int:
        code = await self._process.wait()
        told = await self._status.exit_code()
        if told is None and code == 1:
            raise SandboxFailed("bubblewrap could not start the interpreter; see the log of the run")
        if code > 128:  # what a shell makes of a signal, and bubblewrap, too
            return 128 - code
        return code

    def terminate(self) -> None:
        """All of its session; the first process, an init, does not hear it."""
        if self._pid and self._process.returncode is None:
            signal_group(self._pid, signal.SIGTERM)

    def kill(self) -> None:
        """Its first process takes all others with it."""
        if self._first >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        if self._process.returncode is None:
            signal_group(self._process.pid, signal.SIGKILL)

    async def clean_up(self) -> Hits:
        self._close_go()
        self.kill()
        try:
            await self._process.wait()
            if self._first >= 0:
                await _gone(self._first)
        finally:
            self._status.close()
            if self._first >= 0:
                os.close(self._first)
                self._first = -1
        if self._group is None:
            return Hits()
        hits = self._group.hits()
        for _ in range(round(GONE_WITHIN / LOOK_AGAIN)):  # a process is out of its group a moment after its end
            if self._group.remove():
                break
            await asyncio.sleep(LOOK_AGAIN)
        return hits

    def _close_go(self) -> None:
        if self._go >= 0:
            os.close(self._go)
            self._go = -1


async def _gone(first: int) -> None:
    """The end of the first process is told when all others of the sandbox have ended."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(first, ended.set)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GONE_WITHIN):
                await ended.wait()
    finally:
        loop.remove_reader(first)


def _some_cpus(cpus: float) -> set[int]:
    """As many as it may use, others for each script."""
    usable = sorted(os.sched_getaffinity(0))
    return set(random.sample(usable, min(len(usable), max(1, round(cpus)))))
