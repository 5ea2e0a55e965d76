"""What an engine is told to create: an image, limits, and nothing of the machine that it runs on."""

from __future__ import annotations

from typing import Any

from onthedot.model.targets import ContainerTarget
from onthedot.settings import ContainerSetting
from onthedot.targets.container_engine.deadline import deadline_check
from onthedot.targets.container_engine.engine import EngineAbout, FoundContainer
from onthedot.targets.container_engine.labels import INSTALLATION, SECONDS, run_labels
from onthedot.targets.contract import Call, run_environment

__all__ = ["container_name", "creation", "is_ours"]

GRACE = 10
"""Seconds between SIGTERM and SIGKILL."""
PIDS = 512
_LOG = {"Type": "json-file", "Config": {"max-size": "16m", "max-file": "2"}}


def container_name(call: Call) -> str:
    """The fence: whoever has this try asks for the same container, and only one can create it."""
    return f"{call.run_id}-{call.try_number}"


def is_ours(found: FoundContainer, call: Call, installation: str) -> bool:
    return (found.label(INSTALLATION), found.label("onthedot.run"), found.label("onthedot.try")) == (
        installation,
        call.run_id,
        str(call.try_number),
    )


def creation(
    call: Call, target: ContainerTarget, setting: ContainerSetting, installation: str, about: EngineAbout | None
) -> dict[str, Any]:
    """No capabilities, no new privileges, no mounts, no network unless it was allowed. The memory limit covers swap."""
    memory = target.memory_bytes or setting.memory
    network = setting.network if target.network else None
    environment = {**target.env, **run_environment(call)}
    body: dict[str, Any] = {
        "Image": str(target.image_name),
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "Labels": run_labels(installation, call.run_id, call.try_number, call.key or str(call.job_id), call.tenant),
        "Tty": False,
        "OpenStdin": False,
        "StopTimeout": GRACE,
        "HostConfig": {
            "Memory": memory,
            "MemorySwap": memory,
            "NanoCpus": round((target.cpus or setting.cpus) * 1_000_000_000),
            "PidsLimit": PIDS,
            "NetworkMode": network or "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "Privileged": False,
            "AutoRemove": False,
            "RestartPolicy": {"Name": "no"},
            "LogConfig": _LOG,
        },
    }
    if about is not None and about.has_init:  # it passes signals on to what would ignore them as the first process
        body["HostConfig"]["Init"] = True
    if target.command:
        body["Cmd"] = target.command
    if call.timeout is not None:
        body["Labels"][SECONDS] = f"{call.timeout + GRACE:g}"
        if about is not None and about.has_checks:
            body["Healthcheck"] = deadline_check(call.timeout + GRACE)
    return body
