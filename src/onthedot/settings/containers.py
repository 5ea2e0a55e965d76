"""Parses the table [containers]."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from onthedot.model.duration import DAY, Duration
from onthedot.model.image import ImageRule
from onthedot.model.size import read_size
from onthedot.settings.structs import ContainerSetting
from onthedot.settings.wrong_value import WrongValue

__all__ = ["parse_containers"]

_ACCEPTED = (
    'a table [containers] with images = ["registry.example/*", …], socket = "/var/run/docker.sock" or '
    '"tcp://HOST:PORT", memory = "1G", cpus = 1, network = "bridge", concurrency = 4, keep = "10m" and place = "NAME", '
    "or the same as JSON"
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


def parse_containers(value: Any) -> ContainerSetting:
    if isinstance(value, ContainerSetting):
        return value
    try:
        table = msgspec.json.decode(value, type=_Table) if isinstance(value, str) else msgspec.convert(value, _Table)
        for pattern in table.images:
            ImageRule.parse(pattern)
        keep = Duration.parse(table.keep)
        memory = read_size(table.memory)
        socket = _socket(table.socket)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        raise WrongValue(f"{_ACCEPTED}; {error}") from None
    for name, fits in (
        ("cpus", 0.01 <= table.cpus <= 256),
        ("concurrency", table.concurrency is None or 1 <= table.concurrency <= 10_000),
        ("keep", 0 <= keep <= 30 * DAY),
        ("place", table.place is None or _PLACE.fullmatch(table.place)),
        ("network", isinstance(table.network, bool) or _PLACE.fullmatch(table.network)),
    ):
        if not fits:
            raise WrongValue(f"{_ACCEPTED}; {name} is not valid")
    network = "bridge" if table.network is True else table.network or None
    if network in ("host", "none") or (network is not None and network.startswith("container:")):
        raise WrongValue(f"{_ACCEPTED}; network {network} is not allowed: name a network of the engine")
    return ContainerSetting(
        images=tuple(dict.fromkeys(table.images)),
        socket=socket,
        memory=memory,
        cpus=table.cpus,
        network=network,
        concurrency=table.concurrency,
        keep=keep,
        place=table.place,
    )


def _socket(text: str) -> str:
    path = text.removeprefix("unix://")
    if path.startswith("/") and "\x00" not in path:
        return f"unix://{path}"
    match = _TCP.fullmatch(text)
    if match is None or not 0 < int(match[2]) < 65536:
        raise ValueError(f"{text[:200]!r} is neither an absolute path nor tcp://HOST:PORT")
    return text
