"""What an engine is told to create for a script: the image that the operator chose, read-only and locked down.

The code comes as a file in a volume of the container, which its root alone may write to, so that the engine may be on
another machine. Nothing of any machine is mounted.
"""

from __future__ import annotations

import io
import tarfile
from typing import Any

import msgspec

from onthedot.targets.container_engine.access import EngineAddress
from onthedot.targets.container_engine.deadline import deadline_check
from onthedot.targets.container_engine.engine import EngineAbout
from onthedot.targets.container_engine.labels import FOR_SCRIPT, KIND, SECONDS
from onthedot.targets.script.limits import SHARED, rlimit_names, rlimits
from onthedot.targets.script.sandbox import NOBODY, Launch
from onthedot.targets.script.seccomp import engine_profile

__all__ = ["CODE", "EngineChoice", "code_archive", "engine_creation"]

CODE = "/script"
_BY_ENGINE = frozenset(("memory", "pids", "cpu"))
_ENOUGH_FOR_A_TRIAL = 60
_MASKED = (  # what engines mask by default, and what is left of the machine besides
    *("/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats"),
    *("/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys"),
)
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


class EngineChoice(msgspec.Struct, frozen=True):
    """Where scripts run if nothing else isolates them."""

    engine: EngineAddress
    image: str
    network: str = "bridge"  # for scripts that may use one


def engine_creation(launch: Launch, choice: EngineChoice, about: EngineAbout) -> dict[str, Any]:
    limits = launch.limits
    for_itself = rlimit_names(rlimits(limits, by_cgroup=_BY_ENGINE))
    seconds = launch.timeout if launch.name else _ENOUGH_FOR_A_TRIAL
    labels = {**launch.labels, KIND: FOR_SCRIPT}
    body: dict[str, Any] = {
        "Image": choice.image,
        "Entrypoint": list(launch.argv),
        "Cmd": [f"{CODE}/{launch.file_name}", *launch.args],
        "Env": [f"{name}={value}" for name, value in launch.env.items()],
        "Labels": labels,
        "User": f"{NOBODY}:{NOBODY}",
        "WorkingDir": "/tmp",  # noqa: S108 - in the container
        "Hostname": "sandbox",
        "Volumes": {CODE: {}},
        "Tty": False,
        "OpenStdin": True,
        "StdinOnce": True,
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {
            "Memory": limits.memory,
            "MemorySwap": limits.memory,
            "NanoCpus": round(limits.cpus * 1_000_000_000),
            "PidsLimit": limits.processes,
            "Ulimits": [{"Name": name, "Soft": most, "Hard": most} for name, most in for_itself.items()],
            "ShmSize": SHARED,
            "Tmpfs": {"/tmp": f"rw,nosuid,nodev,exec,size={limits.memory},mode=1777"},  # noqa: S108 - the same
            "ReadonlyRootfs": True,
            "MaskedPaths": list(_MASKED),
            "ReadonlyPaths": list(_READ_ONLY),
            "NetworkMode": choice.network if launch.network else "none",
            "IpcMode": "private",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges", f"seccomp={engine_profile()}"],
            "Privileged": False,
            "Init": True,
            "AutoRemove": False,
            "RestartPolicy": {"Name": "no"},
            "LogConfig": {"Type": "none"},
        },
    }
    if seconds is not None:
        labels[SECONDS] = f"{seconds:g}"
        if about.has_checks:
            body["Healthcheck"] = deadline_check(seconds)
    return body


def code_archive(launch: Launch) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        file = tarfile.TarInfo(launch.file_name)
        file.size, file.mode = len(launch.code), 0o444
        tar.addfile(file, io.BytesIO(launch.code))
    return made.getvalue()
