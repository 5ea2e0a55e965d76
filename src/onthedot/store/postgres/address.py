"""`postgresql://user@host/database?pooler=transaction`: our own options taken out, the rest for asyncpg."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from onthedot.errors import SettingsError

__all__ = ["Address", "parse_address"]


class Address(msgspec.Struct, frozen=True, kw_only=True):
    dsn: str
    pooled: bool = False  # behind PgBouncer and the like in transaction mode
    hints: bool = True  # LISTEN and NOTIFY; without them everybody finds work by polling
    unsafe: bool = False  # fsync and synchronous_commit may be off
    pool: int = 10  # connections of one node at most
    timeout: float = 10.0  # seconds any one call may take

    def shown(self) -> str:
        """For messages: without user and password."""
        parts = urlsplit(self.dsn)
        return parts.netloc.rpartition("@")[2] + parts.path


_ACCEPTED = {
    "pooler": "transaction",
    "hints": "off",
    "unsafe": "allow",
    "pool": "a number of connections",
    "timeout": "seconds",
}


def parse_address(url: str) -> Address:
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    ours = {name: options.pop(name) for name in _ACCEPTED if name in options}
    dsn = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(options)))
    try:
        return Address(
            dsn=dsn,
            pooled=_word(ours, "pooler", "transaction"),
            hints=not _word(ours, "hints", "off"),
            unsafe=_word(ours, "unsafe", "allow"),
            pool=int(_number(ours, "pool", least=2)),
            timeout=_number(ours, "timeout", least=0.1),
        )
    except ValueError as error:
        accepted = ", ".join(f"{name}={value}" for name, value in _ACCEPTED.items())
        raise SettingsError(f"the store's address has an option that can't be: {error}. Accepted: {accepted}") from None


def _word(options: dict[str, str], name: str, word: str) -> bool:
    if options.get(name, word) != word:
        raise ValueError(f"{name}={options[name]}")
    return name in options


def _number(options: dict[str, str], name: str, *, least: float) -> float:
    number = float(options.get(name, 10))
    if not least <= number <= 1000:
        raise ValueError(f"{name}={options[name]}")
    return number
