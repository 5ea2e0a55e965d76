"""What the egress rule judged is what gets connected to, whatever notation a URL was written in."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import pytest

from onthedot.targets.webhook.addresses import Address
from onthedot.targets.webhook.destination import place_of, split_url
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.http1 import connector
from onthedot.targets.webhook.http1.connection import Unanswered
from onthedot.targets.webhook.http1.connector import Connector

RESOLVED = "198.51.100.7"
"""What every name is resolved to here; nothing is really looked up or connected to."""


@dataclass(frozen=True)
class Witness(EgressRule):
    """Takes down what it is asked about, and permits it."""

    asked: list[tuple[Address, int | None]] = field(default_factory=list, compare=False, hash=False)

    def refusal(self, address: Address, host: str | None = None, port: int | None = None) -> str | None:
        self.asked.append((address, port))
        return None


NOTATIONS = {
    "http://127.0.0.1:8080/": ("127.0.0.1", 8080),
    "http://2130706433/": ("127.0.0.1", 80),
    "https://0x7f.1/": ("127.0.0.1", 443),
    "http://0177.0.0.1:1/": ("127.0.0.1", 1),
    "http://①②⑦.0.0.1/": ("127.0.0.1", 80),
    "http://127.0.0.1.:81/": ("127.0.0.1", 81),
    "http://[::1]:82/": ("::1", 82),
    "http://[0:0:0:0:0:ffff:7f00:1]/": ("::ffff:7f00:1", 80),
    "http://[::FFFF:169.254.169.254]/": ("::ffff:a9fe:a9fe", 80),
    "http://a:b@0xa9fea9fe/": ("169.254.169.254", 80),
    "http://127.0.0.1@public.example/": (RESOLVED, 80),
    "http://public.example:83#@127.0.0.1/": (RESOLVED, 83),
    "http://public.example?@127.0.0.1:84/": (RESOLVED, 80),
    "http://PUBLIC.example/127.0.0.1:85": (RESOLVED, 80),
    "http://a@b@public.example./": (RESOLVED, 80),
    "http://bücher.example/": (RESOLVED, 80),
}


@pytest.mark.parametrize("url", NOTATIONS)
async def test_in_every_notation(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connected: list[tuple[str, int]] = []
    names: list[str] = []
    look_up = connector._look_up

    def resolve(host: str, flags: int = 0) -> Any:
        if flags & socket.AI_NUMERICHOST:
            return look_up(host, flags)
        names.append(host)
        return [(socket.AF_INET, (RESOLVED, 0))]

    async def connect(made: Any, host: str, port: int) -> Any:
        connected.append((host, port))
        raise ConnectionRefusedError(111, "not here")

    monkeypatch.setattr(connector, "_look_up", resolve)
    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", connect)
    rule = Witness()
    gate = Connector(rule)
    place = place_of(split_url(url)[0])
    with pytest.raises(Unanswered):
        await gate.join(asyncio.Protocol, place.origin[1], place.origin[2], is_address=place.address is not None)
    gate.close()
    ((host, port),) = connected
    wanted, wanted_port = NOTATIONS[url]
    assert (ip_address(host), port) == (ip_address(wanted), wanted_port)
    assert rule.asked[-1] == (ip_address(wanted), wanted_port), "judged right before it is connected to"
    assert {address for address, _ in rule.asked} == {ip_address(wanted)}, "and nothing else was judged"
    assert (place.address is None) == bool(names)
    assert all(name == place.origin[1] for name in names), "the name that was read is the name that is resolved"
