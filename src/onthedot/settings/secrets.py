"""Settings that may be given as a file: `NAME_FILE` names a file that holds the value of NAME, as container platforms
mount secrets. And the parts of a PostgreSQL address, POSTGRES_USER and so on, which make STORE where it is not set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

__all__ = ["FILE_NAMES", "POSTGRES_NAMES", "SECRET_NAMES", "add_store", "read_files"]

Found = dict[str, tuple[str, Any]]  # name → (origin, value)

POSTGRES_NAMES = ("POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB", "POSTGRES_HOST", "POSTGRES_PORT")
SECRET_NAMES = (*POSTGRES_NAMES, "ADMIN_KEY")
FILE_NAMES = tuple(f"{name}_FILE" for name in SECRET_NAMES)
_MAKING = ("POSTGRES_HOST", "POSTGRES_DB", "POSTGRES_USER")
"""A password or a port alone says nothing about us: other programs read them too."""
_MOST = 4096


def read_files(found: Found, problems: list[str]) -> None:
    """Put the content of each file in the place of its name. Parts of an address that nobody needs are dropped."""
    if "STORE" in found:
        for name in (*POSTGRES_NAMES, *(f"{name}_FILE" for name in POSTGRES_NAMES)):
            found.pop(name, None)
    for name in SECRET_NAMES:
        file = found.pop(f"{name}_FILE", None)
        if file is None:
            continue
        origin, path = file
        if name in found:
            problems.append(f"{name}_FILE ({origin}): {name} ({found[name][0]}) is set too; set only one of them")
            continue
        try:
            text = Path(str(path)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            problems.append(f"{name}_FILE ({origin}): the file can't be read: {error}")
            continue
        value = text.strip("\r\n")
        if value and len(value) <= _MOST:
            found[name] = (origin, value)
        else:
            problems.append(f"{name}_FILE ({origin}): {path} must have 1 to {_MOST} characters")


def add_store(found: Found, problems: list[str]) -> None:
    """STORE, made of its parts. Whoever sets one of host, database and user means a PostgreSQL."""
    parts = {name: found.pop(name) for name in POSTGRES_NAMES if name in found}
    named = next((parts[name][0] for name in _MAKING if name in parts), None)
    if named is None or "STORE" in found:
        return
    text = {name.removeprefix("POSTGRES_").lower(): str(value) for name, (_, value) in parts.items()}
    wrong = _wrong(text)
    problems.extend(f"POSTGRES_{name.upper()} ({parts[f'POSTGRES_{name.upper()}'][0]}): {why}" for name, why in wrong)
    if not wrong:
        found["STORE"] = (named, _url(**text))


def _wrong(parts: dict[str, str]) -> list[tuple[str, str]]:
    wrong = []
    host, port = parts.get("host", "localhost"), parts.get("port", "5432")
    if not re.fullmatch(r"/[^\x00-\x1f]{1,100}|[A-Za-z0-9._:,-]{1,500}", host):
        wrong.append(("host", f"{host[:80]!r} is not valid. Accepted: a host name, an address, or a socket directory"))
    if not re.fullmatch(r"[0-9]{1,5}", port, re.ASCII) or not 1 <= int(port) <= 65535:
        wrong.append(("port", f"{port[:80]!r} is not valid. Accepted: a whole number from 1 to 65535"))
    return wrong


def _url(
    *, user: str = "postgres", password: str = "", db: str = "", host: str = "localhost", port: str = "5432"
) -> str:
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    database = quote(db or user, safe="")
    if host.startswith("/"):
        return f"postgresql://{login}@/{database}?{urlencode({'host': host, 'port': port})}"
    places = (f"[{each}]:{port}" if ":" in each else f"{each}:{port}" for each in host.split(","))
    return f"postgresql://{login}@{','.join(places)}/{database}"
