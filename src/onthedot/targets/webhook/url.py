"""The parts of a webhook's URL as they are sent. Which place it names is read by model/webhook_url.py."""

from __future__ import annotations

import re

from yarl import URL

__all__ = ["ACCEPTED", "is_localhost", "sent_path"]

ACCEPTED = "an absolute http or https URL"
_PLAIN = re.compile(r"((?:/[\w~-][\w.~-]*)*/?)((?:\?[\w.~/=&-]+)?)", re.ASCII)


def sent_path(written: str) -> str:
    """A path with its query, quoted where it has to be. A plain one is taken as it is: 1 µs instead of 20. yarl, which
    quotes the others, is shown a host of our own: it has no say in where the request goes."""
    plain = _PLAIN.fullmatch(written)
    if plain is not None:
        return (plain[1] or "/") + plain[2]
    return URL(f"http://host{written}").raw_path_qs or "/"


def is_localhost(name: str) -> bool:
    """Names that mean this machine wherever they are asked for (RFC 6761), so that they can be judged unresolved."""
    plain = name.lower().removesuffix(".")
    return plain == "localhost" or plain.endswith(".localhost")
