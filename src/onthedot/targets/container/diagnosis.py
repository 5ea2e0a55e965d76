"""What `onthedot doctor` says of the container engine."""

from __future__ import annotations

from onthedot.settings import ContainerSetting
from onthedot.targets.container_engine.engine import ContainerEngine, EngineRefused
from onthedot.targets.container_engine.http_client import EngineAway
from onthedot.targets.contract import TargetDiagnosis

__all__ = ["diagnosis_of"]

_SUBJECT = "containers"


async def diagnosis_of(engine: ContainerEngine, setting: ContainerSetting) -> TargetDiagnosis:
    try:
        about = await engine.about()
    except (EngineAway, EngineRefused) as error:
        return TargetDiagnosis(_SUBJECT, str(error), _advice(error.__cause__))
    found = f"{about.title} at {engine.address}"
    if about.lacks is not None:
        advice = "let the engine use cgroups with the memory and pids controllers (rootless: cgroup v2 with Delegate=)"
        return TargetDiagnosis(_SUBJECT, f"{found}: {about.lacks}", advice)
    return TargetDiagnosis(_SUBJECT, f"{found}, place {setting.place or about.place}; {', '.join(setting.images)}")


def _advice(cause: BaseException | None) -> str:
    if isinstance(cause, PermissionError):
        return "run the node as a user who may use the socket (usermod -aG docker USER, then log in again)"
    if isinstance(cause, FileNotFoundError):
        return "start the engine (systemctl start docker, or podman.socket), or correct [containers] socket"
    if isinstance(cause, ConnectionRefusedError):
        return "start the engine: nothing listens on this socket"
    return "check that [containers] socket is the socket of Docker or Podman, and that the engine answers"
