"""The parts of `postgresql://user:password@host,[::1]:5433/database?option=value`.

Not `urlsplit`: since its security fixes of 2024 it refuses a bracket after the first host, and which Pythons have them
depends on the distribution.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult

__all__ = ["split_store_url"]

# RFC 3986, appendix B
_PARTS = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)


def split_store_url(url: str) -> SplitResult:
    found = _PARTS.fullmatch(url)
    assert found is not None  # every text has these parts, perhaps empty
    scheme, *others = found.groups(default="")
    return SplitResult(scheme.lower(), *others)
