"""What an operator decides, as one frozen object."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path

import msgspec

from onthedot.model.duration import DAY, SECOND, Duration

__all__ = ["EXTENSIONS", "ROLES", "CommandSetting", "Settings", "address"]

ROLES = ("api", "executor")
EXTENSIONS = ("json", "yaml", "yml", "toml")


def address(host: str, port: int | str) -> str:
    """Host and port as one reaches from this machine what is bound to them."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host.strip("[]"), host.strip("[]"))  # noqa: S104
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


class CommandSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A command that jobs may name: the operator decides what it is, a job only that it runs."""

    argv: tuple[str, ...]
    env: dict[str, str] = msgspec.field(default_factory=dict)
    cwd: str | None = None
    inherit_env: tuple[str, ...] = ()  # names of further variables it gets from the node's own environment


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an operator decides. Durations are `Duration` (ms); `given` are the names somebody set on purpose."""

    store: str = "sqlite:///onthedot.db"
    host: str = "127.0.0.1"
    port: int = 8000
    roles: tuple[str, ...] = ROLES
    workers: int = 1
    jobs_file_path: Path = Path("jobs.json")
    jobs_source: str | None = None
    supported_extensions: tuple[str, ...] = EXTENSIONS
    granularity: Duration = Duration(SECOND)
    log_level: str = "INFO"
    logs_base_directory: Path = Path("logs")
    next_job_count: int = 1000
    lookahead: Duration = Duration(2 * SECOND)
    poll_interval: Duration = Duration(SECOND)
    lease: Duration = Duration(5 * SECOND)
    grace: Duration = Duration(10 * SECOND)
    concurrency: int = 1000
    function_processes: int = msgspec.field(default_factory=lambda: 2 * (os.cpu_count() or 1))
    timeout_seconds: float = 3.0
    retention: Duration = Duration(30 * DAY)
    auth: tuple[str, ...] = ("auto",)
    egress_allow: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    commands: dict[str, CommandSetting] = msgspec.field(default_factory=dict)
    given: frozenset[str] = frozenset()

    @property
    def loopback(self) -> bool:
        """Bound to this machine alone: open until the first key is made."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def binding(self) -> str | None:
        """Where the API listens; None: this node serves none."""
        if "api" not in self.roles:
            return None
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Where the API is reached from this machine."""
        return f"http://{address(self.host, self.port)}"

    @property
    def key_command(self) -> str:
        """Makes the first key while the server runs, in any directory of its machine, whatever its store."""
        return f"onthedot keys create --name me --scope admin --url {self.url}"

    @property
    def exposed(self) -> bool:
        """An API that is not this machine's alone, or that asks for keys in any case."""
        return "api" in self.roles and (not self.loopback or "keys" in self.auth)

    @property
    def is_sqlite(self) -> bool:
        return self.store.startswith("sqlite:")
