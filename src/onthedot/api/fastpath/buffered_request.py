"""A request that came whole, in one piece, in the shape that guard and handlers know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onthedot.api.http.client_connection import TRANSPORT

__all__ = ["Whole"]


class Whole:
    """The part of Litestar's Request that creating needs; everything is at hand, nothing is awaited."""

    __slots__ = ("app", "body", "cookies", "headers", "route_handler", "scope")

    def __init__(
        self, app: Any, route_handler: Any, headers: Sequence[tuple[bytes, bytes]], body: bytes, transport: Any = None
    ) -> None:
        self.app = app
        self.route_handler = route_handler
        self.headers: Mapping[str, str] = {  # of two with one name the first counts, as in the framework
            name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(headers)
        }
        self.cookies: Mapping[str, str] = {}
        self.scope: dict[str, Any] = {"method": "POST", TRANSPORT: transport}
        self.body = body
