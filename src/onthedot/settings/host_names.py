"""Host names and addresses in settings, optionally with a port."""

from __future__ import annotations

import ipaddress
import re

__all__ = ["is_address", "is_host", "is_host_port"]

_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?", re.ASCII)


def is_host_port(word: str) -> bool:
    """ "127.0.0.1:8000", "[::1]:8000", "hooks.internal:8000"."""
    host, _, port = word.rpartition(":")
    if not port.isdecimal() or not 0 < int(port) < 65536:
        return False
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return is_host(host)
    return True


def is_host(word: str) -> bool:
    return _HOST.fullmatch(word) is not None and not word.rstrip(".").rpartition(".")[2].isdecimal()


def is_address(word: str) -> bool:
    try:
        ipaddress.ip_address(word.strip("[]"))
    except ValueError:
        return False
    return True
