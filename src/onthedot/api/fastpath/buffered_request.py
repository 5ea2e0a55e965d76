"""A request that came in one piece, in the shape that guard and handlers know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onthedot.api.http.bodies import BODY
from onthedot.api.http.client_connection import TRANSPORT
from onthedot.api.operations import OPERATION, Operation

__all__ = ["BufferedRequest"]


class BufferedRequest:
    """The part of Starlette's Request that creating needs; everything is at hand, nothing is awaited."""

    __slots__ = ("app", "cookies", "headers", "scope")

    def __init__(
        self,
        app: Any,
        declared: Operation,
        headers: Sequence[tuple[bytes, bytes]],
        body: bytes,
        transport: Any = None,
    ) -> None:
        self.app = app
        self.headers: Mapping[str, str] = {  # of two with one name the first counts, as in Starlette
            name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)
        }
        self.cookies: Mapping[str, str] = {}
        self.scope: dict[str, Any] = {"method": "POST", OPERATION: declared, TRANSPORT: transport, BODY: body}
