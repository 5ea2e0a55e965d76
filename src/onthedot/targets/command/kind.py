"""Commands: programs that the operator registered by name, with their arguments. No shell, no words from the API.

A command learns which run it is from ONTHEDOT_RUN_ID, _JOB_ID, _JOB_KEY, _SCHEDULED_FOR, _ATTEMPT and _PARAMS (JSON).
Exit code 0 is done, everything else an error that is tried again. If the last line it prints is JSON, that is its
result. Cancelled, its whole process group gets SIGTERM, two seconds to tidy up, and SIGKILL; if the node is killed, a
guard process kills it. It sees only the environment it was given and a few variables every program needs: the node's
own holds the store's password.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self

from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.targets import CommandTarget
from onthedot.settings import CommandSetting, Settings
from onthedot.targets.contract import NOT_BEGUN, Call, Ended, Profile, run_environment
from onthedot.targets.coroutine import CoroutineKind
from onthedot.targets.exhaustion import lack_of
from onthedot.targets.presence import program_problem
from onthedot.targets.process.group_guard import GroupGuard
from onthedot.targets.process.last_line import LastLine
from onthedot.targets.process.output import ProcessOutput
from onthedot.targets.process.spawning import Process, signal_group, signal_name, spawn
from onthedot.targets.registry import names
from onthedot.targets.setup import FileGrants, KindSetup
from onthedot.telemetry import emit

__all__ = ["Commands"]

GRACE = 2.0
KILLED_WITHIN = 3.0
"""Seconds in which a killed process is gone, unless the kernel itself waits for something."""
_INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")


class Commands(CoroutineKind):
    """The kind `command`."""

    spec = CommandTarget

    def __init__(
        self, commands: Mapping[str, CommandSetting], *, grace: float = GRACE, capacity: int | None = None
    ) -> None:
        self.profile = Profile(capacity=capacity, stop_within=grace + KILLED_WITHIN)
        self._commands, self._grace = dict(commands), grace
        self._own: dict[int, dict[str, CommandSetting]] = {}
        self._guard: GroupGuard | None = None

    async def __aenter__(self) -> Self:
        self._guard = GroupGuard()
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._guard is not None:
            await asyncio.shield(self._guard.close())

    @classmethod
    def of(cls, setup: KindSetup) -> Commands:
        return cls(setup.settings.commands, capacity=setup.settings.function_processes)

    def register(self, settings: Settings, granted: Mapping[int, FileGrants]) -> None:
        """These and no others, from now on. A tenant's own come besides, and instead."""
        self._commands = dict(settings.commands)
        self._own = {tenant: dict(grants.commands) for tenant, grants in granted.items()}

    def capabilities(self) -> list[str]:
        own = [name for commands in self._own.values() for name in commands]
        return [f"command:{name}" for name in dict.fromkeys((*self._commands, *own))]

    def _of(self, tenant: int) -> dict[str, CommandSetting]:
        own = self._own.get(tenant)
        return self._commands if not own else {**self._commands, **own}

    def check(self, target: CommandTarget, tenant: int = 1) -> None:
        if target.command not in (known := self._of(tenant)):
            raise Invalid.one(
                "target.command",
                "is not registered by the operator",
                given=target.command,
                accepted=names(list(known)),
            )

    def problem(self, target: CommandTarget, tenant: int = 1) -> str | None:
        command = self._of(tenant).get(target.command)
        return None if command is None else program_problem(command)

    async def send(self, call: Call) -> Outcome | Ended:
        assert isinstance(call.target, CommandTarget)
        command = self._of(call.tenant).get(call.target.command)
        if command is None:
            return Outcome(kind="refused", error=f"command {call.target.command!r} is not registered on this node")
        output: ProcessOutput | None = None
        try:
            last = LastLine(call.log)
            output = ProcessOutput(last.write)
            self._start_guard()
            process = _start(command, call, output)
        except BaseException as error:
            if output is not None:
                output.finish()
            if (lack := lack_of(error, starting=True)) is not None:
                call.lacks(lack)
                return NOT_BEGUN
            if output is None or not isinstance(error, OSError | ValueError):
                raise
            return _not_started(command, error)
        if self._guard is not None:
            self._guard.add(process.pid)
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            await self._end(process)
            raise
        finally:
            output.finish()
            if self._guard is not None:
                self._guard.remove(process.pid)
        return _ended(code, last.given_back() if code == 0 else {})

    def _start_guard(self) -> None:
        """Where no process is to be had, none is for the command either: nothing begins, and another node may take the
        run. Where a guard can never be started (the interpreter was moved away by an upgrade), no command would ever
        run again: it runs without one, which matters only if this node is killed, and the log says so."""
        if self._guard is None:
            return
        try:
            self._guard.start()
        except (OSError, ValueError) as error:
            if lack_of(error, starting=True) is not None:
                raise
            emit("commands.unguarded", error=str(error))

    async def _end(self, process: Process) -> None:
        """Ask the group to go; when the time is up, or on a second cancel, it is killed."""
        try:
            signal_group(process.pid, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._grace):
                    await process.wait()
        finally:
            signal_group(process.pid, signal.SIGKILL)  # also what the leader left behind
            await process.wait()


def _start(command: CommandSetting, call: Call, output: ProcessOutput) -> Process:
    inherited = {name: os.environ[name] for name in (*_INHERITED, *command.inherit_env) if name in os.environ}
    with _input(command) as stdin:
        process = spawn(
            *command.argv,
            stdin=stdin,
            stdout=output.write_fd,
            stderr=output.write_fd,
            env=inherited | command.env | run_environment(call),
            cwd=command.folder,
        )
    output.close_write()
    return process


@contextlib.contextmanager
def _input(command: CommandSetting) -> Iterator[int | IO[bytes]]:
    """A file, not a pipe: nobody has to wait until the program reads it, and it may be of any size."""
    if command.stdin is None:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(command.stdin.encode())
        file.seek(0)
        yield file


def _not_started(command: CommandSetting, error: OSError | ValueError) -> Outcome:
    program = command.argv[0]
    match error:
        case FileNotFoundError() if command.cwd is not None and not Path(command.folder or "").is_dir():
            why = f"working directory {command.cwd} does not exist"
        case FileNotFoundError():
            why = f"program {program} not found"
        case PermissionError():
            why = f"{program} is not executable"
        case OSError(errno=7):  # E2BIG
            return Outcome(kind="error", error="the params exceed the size limit of a process environment (128 KB)")
        case _:
            why = f"can't start {program}: {error}"
    return Outcome(kind="error", retryable=True, error=why)


_SHELL_CODES = {126: " (not executable)", 127: " (program not found)"}


def _ended(code: int, given_back: dict[str, Any]) -> Outcome:
    detail: dict[str, Any] = {"exit_code": code, **given_back}
    if code == 0:
        return Outcome(kind="ok", detail=detail)
    if code > 0:
        error = f"exit code {code}{_SHELL_CODES.get(code, '')}"
        return Outcome(kind="error", retryable=True, error=error, detail=detail)
    return Outcome(kind="error", retryable=True, error=f"killed by {signal_name(-code)}", detail=detail)
