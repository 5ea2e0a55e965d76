"""What the areas of AsyncClient share: the way to the server, and pages of lists."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from onthedot.client.answers import ResultPage
from onthedot.client.transport import Transport

__all__ = ["NOTHING", "AsyncArea", "given"]

T = TypeVar("T")
PAGE = 500
NOTHING = type(None)  # what is answered where there is nothing to say


class AsyncArea:
    _http: Transport

    async def _pages(self, path: str, kind: type[ResultPage[T]], filters: dict[str, Any]) -> AsyncIterator[T]:
        following: str | None = path
        query: dict[str, Any] | None = {"limit": PAGE, **filters}
        while following is not None:
            page = await self._http.call("GET", following, kind, query=query)
            for item in page.items:
                yield item
            following, query = self._http.local(page.next), None  # the URL of the next page includes the filters


def given(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}
