"""What `onthedot doctor` says of the container engine."""

from __future__ import annotations

import ssl

from onthedot.errors import SettingsError
from onthedot.settings import ContainerSetting
from onthedot.targets.container_engine.access import EngineAddress
from onthedot.targets.container_engine.engine import ContainerEngine, EngineRefused
from onthedot.targets.container_engine.http_client import EngineAway
from onthedot.targets.contract import TargetDiagnosis

__all__ = ["diagnosis_of"]

_SUBJECT = "containers"


async def diagnosis_of(setting: ContainerSetting) -> TargetDiagnosis:
    engine = ContainerEngine(EngineAddress.of(setting))
    try:
        about = await engine.about()
    except (EngineAway, EngineRefused) as error:
        return TargetDiagnosis(_SUBJECT, str(error), _advice(error.__cause__))
    found = f"{about.title} at {engine.address}"
    if about.lacks is not None:
        advice = "let the engine use cgroups with the memory and pids controllers (rootless: cgroup v2 with Delegate=)"
        return TargetDiagnosis(_SUBJECT, f"{found}: {about.lacks}", advice)
    for registry, login in setting.registries.items():
        try:
            login.password(registry)
        except SettingsError as error:
            return TargetDiagnosis(_SUBJECT, f"{found}: {error}", "put the password of the registry there")
    return TargetDiagnosis(_SUBJECT, f"{found}, place {setting.place or about.place}; {', '.join(setting.images)}")


def _advice(cause: BaseException | None) -> str:
    if isinstance(cause, PermissionError):
        return "run the node as a user who may use the socket (usermod -aG docker USER, then log in again)"
    if isinstance(cause, ssl.SSLError):
        return "check ca, cert and key in [containers], and that the engine's certificate is for the host in socket"
    if isinstance(cause, FileNotFoundError):
        return "start the engine (systemctl start docker, or podman.socket), or correct [containers] socket"
    if isinstance(cause, ConnectionRefusedError):
        return "start the engine: nothing listens on this socket"
    return "check that [containers] socket is the socket of Docker or Podman, and that the engine answers"
