"""Message brokers that jobs can publish to: `[brokers.NAME] url = "nats://user@host"`.

Only the operator says where a broker is and how to log in. A password may be in the URL, in a file or in a variable of
the environment; it is shown nowhere, not even in the error about a wrong URL.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from onthedot.errors import SettingsError
from onthedot.settings.wrong_value import wrong_field

__all__ = ["BROKER_ACCEPTED", "BrokerAddress", "BrokerSetting", "WrongBroker", "read_brokers"]

BROKER_ACCEPTED = (
    'tables [brokers.NAME] with url = "nats://…", "redis://…", "amqp://…", "kafka://…" or "sqs://REGION", and'
    ' optionally password_file or password_env, ca, cert and key; or the same as JSON: {"NAME": {"url": …}}'
)
HIDDEN = "•••"


class _Scheme(msgspec.Struct, frozen=True):
    client: str
    port: int
    tls: bool = False
    options: tuple[str, ...] = ()
    several: bool = False  # hosts, separated by commas


_SCHEMES = {
    "nats": _Scheme("nats", 4222, several=True),
    "nats+tls": _Scheme("nats", 4222, tls=True, several=True),
    "redis": _Scheme("redis", 6379, options=("maxlen",)),
    "rediss": _Scheme("redis", 6379, tls=True, options=("maxlen",)),
    "amqp": _Scheme("rabbitmq", 5672, options=("exchange",)),
    "amqps": _Scheme("rabbitmq", 5671, tls=True, options=("exchange",)),
    "kafka": _Scheme("kafka", 9092, options=("mechanism",), several=True),
    "kafka+tls": _Scheme("kafka", 9093, tls=True, options=("mechanism",), several=True),
    "sqs": _Scheme("sqs", 443, tls=True, options=("endpoint",)),
}


_OPTIONS = {
    "maxlen": r"[1-9]\d{0,11}",
    "exchange": r"[^\x00-\x1f]{1,255}",
    "mechanism": r"PLAIN|SCRAM-SHA-(256|512)",
    "endpoint": r"https?://[^\s/]+/?",
}


class WrongBroker(ValueError):
    """What is wrong with the settings of a broker, without its URL."""


class BrokerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a broker is, read from its URL. `client`: the name of the client, and of the extra that installs it."""

    client: str
    tls: bool
    hosts: tuple[tuple[str, int], ...]
    user: str | None = None
    password: str | None = None
    path: str = ""  # without the first slash: a virtual host, a database
    options: dict[str, str] = msgspec.field(default_factory=dict)

    @property
    def shown(self) -> str:
        """Without user and password."""
        return ",".join(f"{host}:{port}" for host, port in self.hosts)

    def __repr__(self) -> str:
        return f"BrokerAddress({self.client} {self.shown})"


class BrokerSetting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table `[brokers.NAME]`."""

    url: str
    password_file: str | None = None  # read with each connection: a password that was changed is found
    password_env: str | None = None
    ca: str | None = None  # files in PEM: who signed the broker's certificate, and our own certificate and key
    cert: str | None = None
    key: str | None = None

    @property
    def client(self) -> str:
        return self.address(None).client

    def login(self) -> BrokerAddress:
        """With the password, wherever it is. Raises WrongBroker if it is not there."""
        if self.password_file is not None:
            try:
                return self.address(Path(self.password_file).read_text(encoding="utf-8").strip())
            except (OSError, UnicodeDecodeError) as error:
                raise WrongBroker(f"its password_file can't be read: {error}") from None
        if self.password_env is not None:
            password = os.environ.get(self.password_env)
            if not password:
                raise WrongBroker(f"its password_env {self.password_env} is not set")
            return self.address(password)
        return self.address(None)

    def address(self, password: str | None) -> BrokerAddress:
        found = _read_url(self.url)
        return found if password is None else msgspec.structs.replace(found, password=password)

    def __repr__(self) -> str:
        return f"BrokerSetting({_shown(self.url)})"


def _read_url(url: str) -> BrokerAddress:
    scheme = _SCHEMES.get(url.partition("://")[0])
    if scheme is None:
        raise WrongBroker(f"its url must begin with one of {', '.join(f'{name}://' for name in _SCHEMES)}")
    try:
        parts = urlsplit(url)
        login, at, places = parts.netloc.rpartition("@")
        user, colon, password = login.partition(":")
        hosts = tuple(_place(place, scheme.port) for place in places.split(","))
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except WrongBroker:
        raise
    except ValueError:
        raise WrongBroker("its url can't be read; special characters of a password must be percent-encoded") from None
    if len(hosts) > 1 and not scheme.several:
        raise WrongBroker("its url must have exactly one host")
    if scheme.client == "redis" and re.fullmatch(r"/?\d{0,4}", parts.path) is None:
        raise WrongBroker("its url must end with a database number or nothing")
    for name, value in pairs:
        if name in _OPTIONS and re.fullmatch(_OPTIONS[name], value) is None:
            raise WrongBroker(f"the option {name} of its url is not valid")
        if name not in scheme.options:
            known = ", ".join(scheme.options) or "none"
            raise WrongBroker(f"its url has an unknown option {name[:50]!r}. Known for {parts.scheme}: {known}")
    return BrokerAddress(
        client=scheme.client,
        tls=scheme.tls,
        hosts=hosts,
        user=unquote(user) if at else None,
        password=unquote(password) if colon else None,
        path=unquote(parts.path.removeprefix("/")),
        options=dict(pairs),
    )


def _place(text: str, port: int) -> tuple[str, int]:
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?", text)
    if found is None:
        raise WrongBroker("its url has no valid host")
    return found[1].strip("[]"), int(found[2] or port)


def _shown(url: str) -> str:
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2].partition('?')[0]}" if mark else HIDDEN


def read_brokers(value: Any) -> dict[str, BrokerSetting]:
    """Read the tables, or the same as JSON. Raises WrongBroker."""
    try:
        text = value if isinstance(value, str) else msgspec.json.encode(value)
        tables = msgspec.json.decode(text, type=dict[str, dict[str, Any]])
    except (msgspec.MsgspecError, TypeError, ValueError):
        raise WrongBroker("not a table of tables") from None
    return {name: _read_broker(name, table) for name, table in tables.items()}


def _read_broker(name: str, table: Mapping[str, Any]) -> BrokerSetting:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
        raise WrongBroker(f"{name[:100]!r} is not a valid name")
    try:
        setting = msgspec.convert(table, BrokerSetting)
        address = setting.address(None)
    except msgspec.ValidationError as error:
        raise WrongBroker(wrong_field(error, table, BrokerSetting, f"brokers.{name}")) from None
    except (SettingsError, WrongBroker) as error:
        raise WrongBroker(f"brokers.{name}: {error}") from None
    if setting.password_file is not None and setting.password_env is not None:
        raise WrongBroker(f"brokers.{name}: set either password_file or password_env, not both")
    if (setting.cert is None) != (setting.key is None):
        raise WrongBroker(f"brokers.{name}: cert and key must be set together")
    if not address.tls and (setting.ca or setting.cert):
        raise WrongBroker(f"brokers.{name}: ca and cert require a url that uses TLS")
    return setting
