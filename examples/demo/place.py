"""Where the demo keeps what it makes: the database, logs, settings, and which ports its receivers have."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec

from examples.demo.company import COMMANDS
from examples.demo.receivers import SYSTEMS, free_ports

__all__ = ["Place", "open_place"]

HERE = Path(__file__).resolve().parent


class Place(msgspec.Struct, frozen=True):
    settings: Path
    store: str
    ports: dict[str, int]


def open_place(folder: Path, store: str | None, *, fresh: bool) -> Place:
    """The ports are chosen once: the addresses of the jobs have them."""
    if fresh and folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    known = folder / "receivers.json"
    ports = json.loads(known.read_text()) if known.exists() else {}
    if set(ports) != set(SYSTEMS):
        ports = free_ports()
        known.write_text(json.dumps(ports))
    address = store or f"sqlite:///{folder.resolve() / 'demo.db'}"
    settings = folder / "onthedot.toml"
    settings.write_text(_settings(folder.resolve(), address, ports))
    return Place(settings, address, ports)


def _settings(folder: Path, store: str, ports: dict[str, int]) -> str:
    """JSON strings and lists are TOML, too."""
    lines = [
        f"store = {json.dumps(store)}",
        f"logs_base_directory = {json.dumps(str(folder / 'logs'))}",
        f"object_store = {json.dumps(str(folder / 'objects'))}",
        'functions = ["shop.billing", "shop.reports", "shop.stock"]',
        'egress_allow = ["127.0.0.1"]',
        'log_level = "CRITICAL"',  # much fails here, and that is what it is for
    ]
    for name, command in COMMANDS.items():
        lines += [f"[commands.{name}]", f"argv = {json.dumps(command['argv'])}"]
    lines += [
        *("[channels.on-call]", f'url = "http://127.0.0.1:{ports["shop"]}/alerts"'),
        *("[channels.loyalty-team]", f'url = "http://127.0.0.1:{ports["loyalty"]}/alerts"'),  # as dead as their system
        *("[alerts.everything]", 'on = ["late", "in_a_row", "node_lost", "recovered"]', 'channels = ["on-call"]'),
        *("[alerts.loyalty]", 'match = {tag = "loyalty"}', 'on = ["dead"]', 'channels = ["loyalty-team"]'),
    ]
    return "\n".join(lines) + "\n"
