"""The company whose dashboard is walked."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import httpx

from examples.demo.tables import open_tables
from onthedot.clock import SystemClock
from tests.pages.hostile import MARKS, WEBHOOK, add_past

__all__ = ["Company", "now_ms"]

_numbers = itertools.count(1)


class Company(NamedTuple):
    """A running node, a way to its API as an admin, and its database."""

    base: str
    api: httpx.AsyncClient
    store: str
    key: str
    restart: Callable[[], Awaitable[None]]

    async def job(self, **fields: Any) -> dict[str, Any]:
        """A new one, with a name that tries to become markup."""
        number = self.number()
        spec = {
            "key": f"walked-{number}",
            "name": f"{number} {MARKS[number % len(MARKS)]}",
            "schedule": {"cron": "0 3 * * *"},
            "target": WEBHOOK,
            **fields,
        }
        answer = await self.api.post("/v1/jobs", json=spec)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return {**made, "spec": spec}

    async def change(self, job: dict[str, Any], **fields: Any) -> None:
        """As somebody else does it."""
        answer = await self.api.put(f"/v1/jobs/{job['id']}", json={**job["spec"], **fields})
        assert answer.status_code == 200, answer.text

    async def job_with_past(self) -> dict[str, Any]:
        """One with a day of runs, two of which are dead letters."""
        made = await self.job(schedule={"cron": "0 * * * *"})
        tables = await open_tables(self.store)
        try:
            await add_past(tables, made["id"], now_ms())
        finally:
            await tables.close()
        return made

    async def get(self, path: str) -> Any:
        answer = await self.api.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def number(self) -> int:
        """For names: another one each time."""
        return next(_numbers)


def now_ms() -> int:
    return SystemClock().now_ms()
