"""`make test-pages` walks everything; `make test` leaves this folder out and walks once
(tests/web/test_every_page.py)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import Browser

from onthedot.clock import SystemClock
from onthedot.model.key import ApiKeySpec
from tests.api.conftest import listening, serving
from tests.pages.actions import Company
from tests.pages.hostile import make_hostile
from tests.pages.scene import PATIENCE, Scene
from tests.services.ports import free_port
from tests.services.process import NodeProcess
from tests.web.conftest import browser, chromium, watched

__all__ = ["browser", "chromium", "watched"]

collect_ignore_glob = [] if os.environ.get("PAGES") else ["test_*.py"]

SETTINGS = """
egress_allow = ["127.0.0.1:9"]
functions = ["json"]

[brokers.events]
url = "nats://127.0.0.1:9"

[commands.wait]
argv = ["sleep", "600"]

[commands.no]
argv = ["false"]

[channels.ops]
command = ["true"]
"""


@pytest_asyncio.fixture(loop_scope="module")
async def hostile_site(store_url: str) -> AsyncIterator[Any]:
    """The application, where it listens, and what is in it."""
    async with serving(store_url, SystemClock()) as app, listening(app) as (host, port):
        yield app, f"http://{host}:{port}", await make_hostile(app.context.service, store_url)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def company_store(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database for all walks of a module."""
    if request.param == "sqlite":
        with tempfile.TemporaryDirectory(
            prefix="onthedot-pages-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")
        ) as folder:
            migrated: Path = request.getfixturevalue("migrated_file")
            shutil.copyfile(migrated, Path(folder) / "onthedot.db")
            yield f"sqlite:///{folder}/onthedot.db"
        return
    server = request.getfixturevalue("postgres_server")
    yield server.create_database("pages", template=request.getfixturevalue("migrated_template"))
    server.drop_database("pages")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def company(company_store: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Company]:
    """A node as a real process, with an admin key and texts that try to become markup."""
    folder = tmp_path_factory.mktemp("company")
    (folder / "onthedot.toml").write_text(SETTINGS)
    async with serving(company_store, SystemClock()) as app:
        await make_hostile(app.context.service, company_store)
        key = (await app.context.service.create_key(ApiKeySpec(name="<xss-probe>", scope="admin"))).key
    port, nodes = free_port(), list[NodeProcess]()

    async def restart() -> None:
        for node in nodes:
            node.kill()
        nodes[:] = [NodeProcess("serve", "--port", str(port), "--store", company_store, directory=folder, port=port)]
        await nodes[0].ready(PATIENCE / 1000)

    await restart()
    try:
        base, alone = nodes[0].url, httpx.Limits(max_keepalive_connections=0)
        headers = {"authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(base_url=base, headers=headers, timeout=60, limits=alone) as api:
            yield Company(base, api, company_store, key, restart)
    finally:
        for node in nodes:
            node.kill()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def logged_in(browser: Browser, company: Company) -> Any:
    """The cookie of a person who has logged in with the admin key."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(f"{company.base}/login")
    await page.get_by_label("API key").fill(company.key)
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url(f"{company.base}/")
    state = await context.storage_state()
    await context.close()
    return state


@pytest_asyncio.fixture(loop_scope="module")
async def scene(browser: Browser, company: Company, logged_in: Any, width: int, scheme: Any) -> AsyncIterator[Scene]:
    """A person who has logged in; `width` and `scheme` are the test's."""
    context = await browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, storage_state=logged_in
    )
    yield Scene(await context.new_page(), company.base, keyboard=width > 1000)
    await context.close()
