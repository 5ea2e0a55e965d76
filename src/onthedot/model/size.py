"""Sizes of memory as people write them: `256M`."""

from __future__ import annotations

import re

__all__ = ["ACCEPTED_SIZES", "format_size", "read_size"]

ACCEPTED_SIZES = "a size such as 256M or 2G (K, M and G are powers of 1024)"
_SIZE = re.compile(r"([1-9][0-9]{0,8})([KMG])", re.ASCII)
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def read_size(text: str) -> int:
    """Bytes. ValueError if it is no size."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not {ACCEPTED_SIZES}")
    return int(match[1]) * _UNITS[match[2]]


def format_size(size: int) -> str:
    """256 MB, 1.5 GB."""
    for unit in ("G", "M", "K"):
        if size >= _UNITS[unit]:
            return f"{size / _UNITS[unit]:.4g} {unit}B"
    return f"{size} bytes"
