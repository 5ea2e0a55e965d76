"""A real browser on the real server. Debian's chromium; never a downloaded one.

One browser serves all tests of a module, each with a context of its own, that is, without cookies or cache of another:
starting it costs 2 s of processor time. So the loop is the module's too.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from onthedot.api.app import App
from onthedot.clock import SystemClock
from tests.api.conftest import listening, serving
from tests.services.debian import ProgramMissing, debian_program
from tests.services.missing import missing

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage", "--disable-component-update"]


@pytest.fixture(scope="session")
def chromium() -> str:
    """Its path; installed if we may, skipped if it can't be had, a failure where everything must be there."""
    found = _find()
    if found is not None:
        return found
    try:
        return debian_program("chromium", "chromium")
    except ProgramMissing as why:
        missing(f"the pages are not looked at in a browser: {why}")


def _find() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path), None)


@pytest_asyncio.fixture(loop_scope="module")
async def site(sqlite_url: str) -> AsyncIterator[tuple[App, str]]:
    """The application and where it listens."""
    async with serving(sqlite_url, SystemClock()) as app, listening(app) as (host, port):
        yield app, f"http://{host}:{port}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        await browser.close()


class Watched:
    """A page that remembers what went wrong on it: script errors, refused loads, answers of 400 and above."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))


@pytest_asyncio.fixture(loop_scope="module")
async def watched(browser: Browser) -> AsyncIterator[Any]:
    """`await watched(width=390, scheme="dark")`: a fresh page."""
    contexts = []

    async def open_page(width: int = 1280, scheme: Any = "light") -> Watched:
        context = await browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        return Watched(await context.new_page())

    yield open_page
    for context in contexts:
        await context.close()
