"""Parses the table [containers]."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from onthedot.model.duration import DAY
from onthedot.model.image import ImageName, ImageRule
from onthedot.model.size import read_size
from onthedot.settings.structs import ContainerSetting, RegistrySetting
from onthedot.settings.wrong_value import WrongValue, read_duration, wrong_field

__all__ = ["parse_containers"]

_ACCEPTED = (
    'a table [containers] with images = ["registry.example/*", …], socket = "/var/run/docker.sock" or '
    '"tcp://HOST:PORT", memory = "1G", cpus = 1, network = "bridge", concurrency = 4, keep = "10m" and place = "NAME", '
    'for tcp:// also ca = "FILE", cert = "FILE" and key = "FILE", and tables [containers.registries."HOST"] with '
    "username and password_file or password_env, or the same as JSON"
)
_PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}", re.ASCII)
_TCP = re.compile(r"tcp://(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})", re.ASCII)
_DEFAULT = ContainerSetting()


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    images: list[str] = []
    socket: str = _DEFAULT.socket
    memory: str = "1G"
    cpus: float = _DEFAULT.cpus
    network: str | bool = False
    concurrency: int | None = None
    keep: str | float = str(_DEFAULT.keep)
    place: str | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    registries: dict[str, RegistrySetting] = {}


def parse_containers(value: Any) -> ContainerSetting:
    if isinstance(value, ContainerSetting):
        return value
    try:
        table = msgspec.json.decode(value, type=_Table) if isinstance(value, str) else msgspec.convert(value, _Table)
        for pattern in table.images:
            ImageRule.parse(pattern)
        keep = read_duration(table.keep, "containers.keep")
        memory = read_size(table.memory)
        socket = _socket(table.socket)
        registries = {_registry(name): setting for name, setting in table.registries.items()}
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise WrongValue(_ACCEPTED, wrong_field(error, value, _Table, "containers")) from None
    for name, setting in registries.items():
        if (setting.password_file is None) == (setting.password_env is None):
            raise WrongValue(_ACCEPTED, f"containers.registries.{name}: set either password_file or password_env")
    for name, fits in (
        ("cpus", 0.01 <= table.cpus <= 256),
        ("concurrency", table.concurrency is None or 1 <= table.concurrency <= 10_000),
        ("keep", 0 <= keep <= 30 * DAY),
        ("ca, cert or key", not (table.ca or table.cert or table.key) or socket.startswith("tcp://")),
        ("key", not table.key or table.cert),
        ("place", table.place is None or _PLACE.fullmatch(table.place)),
        ("network", isinstance(table.network, bool) or _PLACE.fullmatch(table.network)),
    ):
        if not fits:
            raise WrongValue(_ACCEPTED, f"containers.{name} is not valid")
    network = "bridge" if table.network is True else table.network or None
    if network in ("host", "none") or (network is not None and network.startswith("container:")):
        raise WrongValue(_ACCEPTED, f"containers.network: {network} is not allowed: name a network of the engine")
    return ContainerSetting(
        images=tuple(dict.fromkeys(table.images)),
        socket=socket,
        memory=memory,
        cpus=table.cpus,
        network=network,
        concurrency=table.concurrency,
        keep=keep,
        place=table.place,
        ca=table.ca,
        cert=table.cert,
        key=table.key,
        registries=registries,
    )


def _registry(name: str) -> str:
    """As names of images have it, with one password each."""
    return ImageName.parse(f"{name}/image").registry


def _socket(text: str) -> str:
    path = text.removeprefix("unix://")
    if path.startswith("/") and "\x00" not in path:
        return f"unix://{path}"
    match = _TCP.fullmatch(text)
    if match is None or not 0 < int(match[2]) < 65536:
        raise ValueError(f"{text[:200]!r} is neither an absolute path nor tcp://HOST:PORT")
    return text
