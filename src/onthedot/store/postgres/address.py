"""`postgresql://user@host/database?pooler=transaction`: our own options taken out of the address, the rest for asyncpg."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from onthedot.errors import SettingsError

__all__ = ["Address", "parse_address"]


class Address(msgspec.Struct, frozen=True, kw_only=True):
    dsn: str
    pooled: bool = False  # behind PgBouncer and the like in transaction mode
    unsafe: bool = False  # fsync and synchronous_commit may be off
    pool: int = 10  # connections of one node at most
    timeout: float = 10.0  # seconds any one call may take

    def shown(self) -> str:
        """For messages: without user and password."""
        parts = urlsplit(self.dsn)
        return f"{parts.hostname or parts.path}{f':{parts.port}' if parts.port else ''}{parts.path if parts.hostname else ''}"


_ACCEPTED = {"pooler": "transaction", "unsafe": "allow", "pool": "a number of connections", "timeout": "seconds"}


def parse_address(url: str) -> Address:
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    ours = {name: options.pop(name) for name in _ACCEPTED if name in options}
    dsn = urlunsplit(parts._replace(scheme="postgresql", query=urlencode(options)))
    try:
        _check_word(ours, "pooler", "transaction")
        _check_word(ours, "unsafe", "allow")
        address = Address(
            dsn=dsn,
            pooled="pooler" in ours,
            unsafe="unsafe" in ours,
            pool=int(ours.get("pool", 10)),
            timeout=float(ours.get("timeout", 10)),
        )
        if address.pool < 2 or not 0 < address.timeout < 3600:
            raise ValueError("pool must be at least 2, timeout more than 0")
        return address
    except ValueError as error:
        accepted = ", ".join(f"{name}={value}" for name, value in _ACCEPTED.items())
        raise SettingsError(f"the store's address has an option that can't be: {error}. Accepted: {accepted}") from None


def _check_word(options: dict[str, str], name: str, word: str) -> None:
    if options.get(name, word) != word:
        raise ValueError(f"{name}={options[name]}")
