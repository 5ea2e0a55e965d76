"""What a sandbox is: it starts one script, and keeps it from everything that the script was not given."""

from __future__ import annotations

from abc import ABC, abstractmethod

import msgspec

from onthedot.targets.script.limits import Hits, ScriptLimits

__all__ = ["NOBODY", "Launch", "Sandbox", "SandboxFailed", "SandboxRun"]

NOBODY = 65534
"""The user that scripts run as where the node is root."""


class SandboxFailed(Exception):
    """The sandbox could not be set up; nothing of the script has run."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One script to be started."""

    argv: tuple[str, ...]  # the interpreter and its own arguments
    roots: tuple[str, ...] = ()  # directories and files besides those of the system that the interpreter needs
    code: bytes
    file_name: str = "script"
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    stdin: bytes = b""
    limits: ScriptLimits
    network: bool = False


class SandboxRun(ABC):
    """A started script with all its processes."""

    @abstractmethod
    async def wait(self) -> int:
        """Its exit code; negative: the signal that killed it. SandboxFailed if it was never begun."""

    @abstractmethod
    def terminate(self) -> None:
        """Ask it to end."""

    @abstractmethod
    def kill(self) -> None:
        """End all its processes."""

    @abstractmethod
    async def clean_up(self) -> Hits:
        """After the end: when this returns, nothing of it is left. Once."""


class Sandbox(ABC):
    """A way to run scripts that works on this machine."""

    @property
    @abstractmethod
    def description(self) -> str:
        """For `doctor`, the banner and the log: what it is made of."""

    @abstractmethod
    async def start(self, launch: Launch, stdout: int, stderr: int) -> SandboxRun:
        """Begin it, with these descriptors for what it prints; they stay open here. SandboxFailed, or OSError if this
        machine has run out of something."""

    def close(self) -> None:  # noqa: B027 - not every sandbox keeps something
        """No more scripts are started."""
