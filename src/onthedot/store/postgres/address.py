"""`postgresql://user@host/database?pooler=transaction`: our own options taken out, the rest for asyncpg."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qsl, urlencode, urlunsplit

import msgspec

from onthedot.errors import SettingsError
from onthedot.model.store_url import split_store_url

__all__ = ["Address", "Route", "parse_address"]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One of the hosts that an address names."""

    name: str  # for messages: host:port
    dsn: str


class Address(msgspec.Struct, frozen=True, kw_only=True):
    dsn: str
    routes: tuple[Route, ...] = ()
    schema: str | None = None  # where the tables are; None: what the role's search_path says
    pooled: bool = False  # behind PgBouncer and the like in transaction mode
    hints: bool = True  # LISTEN and NOTIFY; without them everybody finds work by polling
    unsafe: bool = False  # fsync and synchronous_commit may be off
    pool: int = 10  # connections of one node at most
    timeout: float = 10.0  # seconds any one call may take
    application_name: str = "onthedot"  # what the database's views show, with the process behind it

    def shown(self) -> str:
        """For messages: without user and password."""
        parts = split_store_url(self.dsn)
        return parts.netloc.rpartition("@")[2] + parts.path

    @property
    def search_path(self) -> str | None:
        return None if self.schema is None else '"' + self.schema.replace('"', '""') + '"'


_ACCEPTED = {
    "application_name": "text",
    "pooler": "transaction",
    "hints": "off",
    "unsafe": "allow",
    "pool": "number of connections",
    "timeout": "seconds",
    "schema": "name",
}
LONGEST_NAME = 63  # bytes; PostgreSQL would cut it


def parse_address(url: str) -> Address:
    parts = split_store_url(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    ours = {name: options.pop(name) for name in _ACCEPTED if name in options}
    parts = parts._replace(scheme="postgresql", query=urlencode(options))
    try:
        return Address(
            dsn=urlunsplit(parts),
            routes=_routes(parts, options),
            schema=_schema(ours),
            pooled=_word(ours, "pooler", "transaction"),
            hints=not _word(ours, "hints", "off"),
            unsafe=_word(ours, "unsafe", "allow"),
            pool=int(_number(ours, "pool", least=2)),
            timeout=_number(ours, "timeout", least=0.1),
            application_name=ours.get("application_name", "onthedot"),
        )
    except ValueError as error:
        accepted = ", ".join(f"{name}={value}" for name, value in _ACCEPTED.items())
        raise SettingsError(f"the store URL has an invalid option: {error}. Accepted: {accepted}") from None


def _routes(parts: SplitResult, options: dict[str, str]) -> tuple[Route, ...]:
    """`h1:5432,h2/database`, or `/database?host=h1,h2&port=5432`. Of several, a standby is no use to us."""
    user, at, hosts = parts.netloc.rpartition("@")
    if hosts:
        each = [parts._replace(netloc=f"{user}{at}{host}") for host in hosts.split(",")]
        names = [host if _has_port(host) else f"{host}:{options.get('port', '5432')}" for host in hosts.split(",")]
    elif "host" in options:
        named = options["host"].split(",")
        ports = (options.get("port") or "5432").split(",")
        ports = ports * len(named) if len(ports) == 1 else ports
        if len(ports) != len(named):
            raise ValueError(f"port={options['port']} does not match host={options['host']}")
        places = [{**options, "host": host, "port": port} for host, port in zip(named, ports, strict=True)]
        each = [parts._replace(query=urlencode(place)) for place in places]
        names = [f"{place['host']}:{place['port']}" for place in places]
    else:
        each, names = [parts], ["this machine"]
    if len(each) > 1 and "target_session_attrs" not in options:
        more = {"target_session_attrs": "read-write"}
        each = [one._replace(query=urlencode({**dict(parse_qsl(one.query)), **more})) for one in each]
    return tuple(Route(name=name, dsn=urlunsplit(one)) for name, one in zip(names, each, strict=True))


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]


def _schema(options: dict[str, str]) -> str | None:
    name = options.get("schema")
    if name is not None and (not 1 <= len(name.encode()) <= LONGEST_NAME or not name.isprintable()):
        raise ValueError(f"schema={name}")
    return name


def _word(options: dict[str, str], name: str, word: str) -> bool:
    if options.get(name, word) != word:
        raise ValueError(f"{name}={options[name]}")
    return name in options


def _number(options: dict[str, str], name: str, *, least: float) -> float:
    number = float(options.get(name, 10))
    if not least <= number <= 1000:
        raise ValueError(f"{name}={options[name]}")
    return number
