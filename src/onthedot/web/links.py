"""Addresses within the dashboard. With ROOT_PATH every one has its prefix, so none is written by hand."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request

from onthedot.api.context import root_of

__all__ = ["Links", "is_local"]

PLACE = ("cursor",)
"""Parameters that are a place in a list: another filter or order begins at its first page."""


class Links:
    """Makes the addresses of one request's page."""

    def __init__(self, request: Request) -> None:
        self.root = root_of(request)
        self.path: str = request.scope["path"]
        self.asked = dict(parse_qsl(request.scope.get("query_string", b"").decode("latin-1"), max_num_fields=50))

    def url(self, path: str, **query: Any) -> str:
        """`url("/jobs", tag="etl")`; parameters that are None are left out."""
        return self.root + _with(path, query)

    def here(self, **changes: Any) -> str:
        """This page with other parameters; None takes one out."""
        kept = {name: value for name, value in self.asked.items() if name not in PLACE}
        return self.root + _with(self.path, {**kept, **changes})

    @property
    def back(self) -> str:
        """This page, to return to: for the field `back` of a form, and for `page.done`. Without the prefix."""
        return _with(self.path, self.asked)


def _with(path: str, query: dict[str, Any]) -> str:
    given = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
    text = urlencode({name: value for name, value in given.items() if value not in (None, "")})
    return f"{path}?{text}" if text else path


def is_local(address: str) -> bool:
    """A path on this server: nobody is sent elsewhere by what a form or an address says."""
    return re.fullmatch(r"/(?![/\\])[!-~]{0,1500}", address) is not None and "\\" not in address
