"""What a sandbox is: it starts one script, and keeps it from everything that the script was not given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import msgspec

from onthedot.targets.script.limits import Hits, ScriptLimits

__all__ = ["NOBODY", "Launch", "Sandbox", "SandboxAway", "SandboxFailed", "SandboxRun"]

NOBODY = 65534
"""The user that scripts run as where the node is root."""


class SandboxFailed(Exception):
    """The sandbox could not be set up, or was lost with the script in it."""


class SandboxAway(Exception):
    """What makes the sandboxes does not answer; nothing of the script has run, and nothing would now."""


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
    name: str = ""  # `<run id>-<try>`; empty: a trial
    labels: dict[str, str] = {}  # of whose it is, for what outlives us
    timeout: float | None = None  # seconds


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

    @property
    def is_there(self) -> bool:
        """Whether scripts can be started now."""
        return True

    @abstractmethod
    async def start(self, launch: Launch, stdout: int, stderr: int) -> SandboxRun:
        """Begin it, with these descriptors for what it prints; they stay open here. SandboxFailed, SandboxAway,
        or OSError if this machine has run out of something."""

    def of_node(self) -> Sandbox:
        """The same for one node, if it keeps something: several may live in this process."""
        return self

    async def open(self) -> None:  # noqa: B027 - not every sandbox keeps something
        """On the loop that starts scripts, before the first."""

    async def close(self) -> None:  # noqa: B027
        """No more scripts are started."""

    async def left_behind(self, installation: str) -> Sequence[str]:
        """The names of what this installation has started, now or before, and may outlive a node."""
        return ()

    async def remove(self, name: str) -> None:  # noqa: B027 - most die with the node
        """Of these."""

    async def end_overdue(self) -> Sequence[str]:
        """End what runs past its deadline."""
        return ()
