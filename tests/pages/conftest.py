"""`make test-pages` walks everything; `make test` leaves this folder out and walks once
(tests/web/test_every_page.py)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from onthedot.clock import SystemClock
from tests.api.conftest import listening, serving
from tests.pages.hostile import make_hostile
from tests.web.conftest import browser, chromium, watched

__all__ = ["browser", "chromium", "watched"]

collect_ignore_glob = [] if os.environ.get("PAGES") else ["test_*.py"]


@pytest_asyncio.fixture(loop_scope="module")
async def hostile_site(store_url: str) -> AsyncIterator[Any]:
    """The application, where it listens, and what is in it."""
    async with serving(store_url, SystemClock()) as app, listening(app) as (host, port):
        yield app, f"http://{host}:{port}", await make_hostile(app.context.service, store_url)
