"""The settings as one frozen object."""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec

from onthedot.errors import SettingsError
from onthedot.model.alerts import Alerting
from onthedot.model.duration import DAY, MINUTE, SECOND, Duration
from onthedot.settings.alerts import AlertSetting, ChannelSetting
from onthedot.settings.aws import AwsSetting
from onthedot.settings.brokers import BrokerSetting
from onthedot.settings.intakes import IntakeSetting
from onthedot.settings.workflows import WorkflowSetting

__all__ = [
    "EXTENSIONS",
    "ROLES",
    "CertificateSetting",
    "CommandSetting",
    "ContainerSetting",
    "KubernetesSetting",
    "KubernetesTemplate",
    "RegistrySetting",
    "ScriptSetting",
    "Settings",
    "address",
]

ROLES = ("api", "executor")
EXTENSIONS = ("json", "yaml", "yml", "toml")


def address(host: str, port: int | str) -> str:
    """The address at which this machine reaches a server bound to host and port."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host.strip("[]"), host.strip("[]"))  # noqa: S104
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


class CommandSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that jobs can run by name. Only the operator defines its program and arguments."""

    argv: tuple[str, ...]
    env: dict[str, str] = msgspec.field(default_factory=dict)
    cwd: str | None = None  # "~" and "~/…": below the home directory of the node's user
    inherit_env: tuple[str, ...] = ()  # further variables to copy from the node's environment
    stdin: str | None = None  # what it reads from its standard input; None: nothing

    @property
    def folder(self) -> str | None:
        """The working directory. A home directory that nobody knows is left as it is written, and will not be found."""
        try:
            return None if self.cwd is None else str(Path(self.cwd).expanduser())
        except RuntimeError:
            return self.cwd


class CertificateSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What webhooks show to receivers that ask for a certificate, and whom they trust; jobs name it. PEM files."""

    cert: str | None = None
    key: str | None = None  # None: it is in the file of the certificate
    ca: str | None = None  # None: the authorities that the system trusts
    hosts: tuple[str, ...] = ()
    """Receivers that may be shown it, by jobs of any tenant; "*" for all of them. Without any: those that jobs of the
    default tenant name."""


class ScriptSetting(msgspec.Struct, frozen=True, kw_only=True):
    """What scripts of users may use. `interpreters`: program and arguments by name; empty: `python` alone."""

    interpreters: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    memory: int = 1 << 30  # bytes: the most that a job may ask for
    network: bool = False  # whether a job may ask for it
    image: str | None = None  # for containers, if nothing else isolates scripts


class RegistrySetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an engine logs in to a registry of images. The password is in one of the two, and read with each pull."""

    username: str
    password_file: str | None = None
    password_env: str | None = None

    def password(self, registry: str) -> str:
        """SettingsError if it is not there."""
        where = f'[containers.registries."{registry}"]'
        if self.password_file is not None:
            try:
                return Path(self.password_file).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise SettingsError(f"{where} password_file can't be read: {error}") from None
        password = os.environ.get(self.password_env or "")
        if not password:
            raise SettingsError(f"{where} password_env {self.password_env} is not set")
        return password


class ContainerSetting(msgspec.Struct, frozen=True, kw_only=True):
    """Which images jobs may run, and what containers may use. Without an image there are no containers."""

    images: tuple[str, ...] = ()  # patterns: see `model.image`
    socket: str = "unix:///var/run/docker.sock"  # of the engine; or tcp://HOST:PORT
    memory: int = 1 << 30  # bytes: the most that a job may ask for, and what one gets that does not
    cpus: float = 1.0  # the same
    network: str | None = None  # the engine's network for containers whose job asks for one; None: it may not
    concurrency: int | None = None  # None: as many as FUNCTION_PROCESSES
    keep: Duration = Duration(10 * MINUTE)  # how long a container stays after its end
    place: str | None = None  # the name of the engine, where it can't say who it is
    ca: str | None = None  # files in PEM, for tcp://: who signed the engine's certificate, our own certificate and key
    cert: str | None = None
    key: str | None = None
    registries: dict[str, RegistrySetting] = msgspec.field(default_factory=dict)  # by host and port


class KubernetesTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A pod template that jobs may name. `pod`: metadata and spec, as Kubernetes has them."""

    pod: dict[str, Any]
    namespace: str | None = None


class KubernetesSetting(msgspec.Struct, frozen=True, kw_only=True):
    """Which cluster, and what jobs may run there. Without an image and a template there is no kind `kubernetes`."""

    images: tuple[str, ...] = ()  # patterns: see `model.image`
    templates: dict[str, KubernetesTemplate] = msgspec.field(default_factory=dict)
    kubeconfig: str | None = None  # a file; None: in the cluster that the node runs in, or the user's own file
    context: str | None = None  # None: the current one
    namespace: str | None = None  # None: that of the context or the service account
    namespaces: tuple[str, ...] = ()  # further ones that jobs may name
    service_accounts: tuple[str, ...] = ()  # that jobs may name
    memory: int = 1 << 30  # bytes: the most that a job may ask for, and what one gets that does not
    cpus: float = 1.0  # the same
    concurrency: int | None = None  # None: as many as FUNCTION_PROCESSES
    start_within: Duration = Duration(15 * MINUTE)  # how long an image may be pulled or a node looked for
    keep: Duration = Duration(10 * MINUTE)  # how long a Job stays after its end
    place: str | None = None  # the name of the cluster, where its uid can't be read

    @property
    def is_used(self) -> bool:
        return bool(self.images or self.templates)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of a node. Durations are `Duration` (ms); `given` has the names that were set explicitly, `origins`
    says where: "flag", "$ONTHEDOT_PORT", the path of the file."""

    store: str = "sqlite:///onthedot.db"
    host: str = "127.0.0.1"
    port: int = 8000
    roles: tuple[str, ...] = ROLES
    workers: int = 1
    labels: tuple[str, ...] = ()  # what jobs may require of this node
    node_name: str | None = None  # None: the host's; several nodes may have the same
    metrics_port: int | None = None  # of /healthz, /readyz and /metrics without a key; None: no such port
    jobs_file_path: Path = Path("jobs.json")
    jobs_source: str | None = None
    supported_extensions: tuple[str, ...] = EXTENSIONS
    granularity: Duration = Duration(SECOND)
    log_level: str = "INFO"
    log_format: str | None = None  # console or json; None: console on a terminal, json otherwise
    logs_base_directory: Path = Path("logs")
    next_job_count: int = 1000
    lookahead: Duration = Duration(2 * SECOND)
    poll_interval: Duration = Duration(SECOND)
    lease: Duration = Duration(5 * SECOND)
    grace: Duration = Duration(10 * SECOND)
    concurrency: int = 1000
    destination_concurrency: int | None = None  # a quarter of `concurrency`
    function_processes: int = msgspec.field(default_factory=lambda: 2 * (os.cpu_count() or 1))
    timeout_seconds: float = 3.0
    default_tz: str = "UTC"  # of schedules that name no time zone, when they are written
    retention: Duration = Duration(30 * DAY)
    auth: tuple[str, ...] = ("auto",)
    admin_key: str | None = None  # stored hashed at the start; ADMIN_KEY_FILE names a file with it
    tls_cert: Path | None = None  # the API is served with TLS
    tls_key: Path | None = None  # None: it is in the file of the certificate
    egress_allow: tuple[str, ...] = ()
    public_url: str | None = None
    witness_ping_url: str | None = None  # called each minute while the witness finds all well
    root_path: str = ""  # the prefix under which a proxy serves the API and the pages
    trusted_proxies: tuple[str, ...] = ()  # networks whose forwarding headers are believed
    functions: tuple[str, ...] = ()
    commands: dict[str, CommandSetting] = msgspec.field(default_factory=dict)
    brokers: dict[str, BrokerSetting] = msgspec.field(default_factory=dict)
    intake: dict[str, IntakeSetting] = msgspec.field(default_factory=dict)
    certificates: dict[str, CertificateSetting] = msgspec.field(default_factory=dict)
    object_store: str = "objects"
    scripts: ScriptSetting = ScriptSetting()
    containers: ContainerSetting = ContainerSetting()
    kubernetes: KubernetesSetting = KubernetesSetting()
    aws: AwsSetting = AwsSetting()
    workflows: dict[str, WorkflowSetting] = msgspec.field(default_factory=dict)
    targets: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)  # of plug-ins, by name; each reads its own
    channels: dict[str, ChannelSetting] = msgspec.field(default_factory=dict)
    alerts: dict[str, AlertSetting] = msgspec.field(default_factory=dict)
    given: frozenset[str] = frozenset()
    origins: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def alerting(self) -> Alerting:
        """Which rules there are for all jobs, and which channels."""
        rules = tuple(setting.rule(name) for name, setting in self.alerts.items())
        return Alerting(rules=rules, channels=frozenset(self.channels))

    @property
    def loopback(self) -> bool:
        """Whether HOST is a loopback address; such a server is open until the first key is created."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def binding(self) -> str | None:
        """The address the API listens on; None without the api role."""
        if "api" not in self.roles:
            return None
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def metrics_binding(self) -> str | None:
        """The address that METRICS_PORT listens on."""
        if self.metrics_port is None:
            return None
        return f"[{self.host}]:{self.metrics_port}" if ":" in self.host else f"{self.host}:{self.metrics_port}"

    @property
    def url(self) -> str:
        """The URL of the API on this machine."""
        return f"{self.scheme}://{address(self.host, self.port)}"

    @property
    def scheme(self) -> str:
        return "http" if self.tls_cert is None else "https"

    @property
    def callback_base(self) -> str | None:
        """Where receivers of webhooks reach the API: PUBLIC_URL, or this node's own API if it listens on loopback."""
        if self.public_url is not None:
            return self.public_url
        return self.url if "api" in self.roles and self.loopback else None

    @property
    def key_command(self) -> str:
        """The command that creates the first key; works with any store and in any directory while the server runs."""
        return f"onthedot keys create --name me --scope admin --url {self.url}"

    @property
    def first_key_command(self) -> str:
        """The same without a server, in this directory and environment. A password that came from there is not shown:
        the command finds the store as we did."""
        quoted = shlex.quote(self.store)
        given = " --store " + (f"'{quoted}'" if quoted == self.store else quoted)
        if self.origins.get("store", "flag") != "flag" and re.search(r"://[^/@]*:[^/@]*@|[?&]password=", self.store):
            given = ""
        return f"onthedot keys create --name admin --scope admin{given}"

    @property
    def exposed(self) -> bool:
        """Whether the API can be reached from other machines, or always requires a key."""
        return "api" in self.roles and (not self.loopback or "keys" in self.auth)

    @property
    def is_sqlite(self) -> bool:
        return self.store.startswith("sqlite:")
