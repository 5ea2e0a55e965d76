"""What a person sees when something is not as it was: in words, with the next step, and with what was typed."""

from __future__ import annotations

from itertools import product

import httpx
import pytest
from playwright.async_api import expect

from tests.pages.hostile import MARKS
from tests.pages.scene import PATIENCE, Scene
from tests.pages.walk import faults
from tests.services.postgres import running_postgres

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]

LOOKS = [*product((390, 1440), ("light", "dark"))]
every_look = pytest.mark.parametrize(("width", "scheme"), LOOKS)


@every_look
async def test_what_is_not_there(scene, width, scheme):
    for path in ("/nowhere", "/jobs/999999999", "/runs/1-1", "/operations/999999999", "/jobs/abc", "/jobs?colour=red"):
        await scene.go(path)
        await expect(scene.page.locator(".problem h1")).to_be_visible()
        await scene.look(may=(404, 422))
    assert not scene.wrong, "\n".join(scene.wrong)


@every_look
async def test_a_job_that_was_deleted_meanwhile(scene, company, width, scheme):
    job = await company.job()
    await scene.go(f"/jobs/{job['id']}")
    other = await scene.page.context.new_page()
    await other.goto(f"{company.base}/jobs/{job['id']}/edit")
    assert (await company.api.delete(f"/v1/jobs/{job['id']}")).status_code == 204
    await scene.sees("deleted meanwhile", "#live")
    await scene.look(may=(404,))
    await scene.send("Run now")
    await scene.sees("Not found", ".problem h1")
    await scene.look(may=(404,))
    await other.get_by_label("Name").first.fill("too late")
    async with other.expect_navigation():
        await other.get_by_role("button", name="Save").last.click()
    await expect(other.locator(".problem h1")).to_have_text("Not found")
    assert await faults(other) == []
    assert not scene.wrong, "\n".join(scene.wrong)


@every_look
async def test_a_session_that_ends_while_a_form_is_open(company, browser, width, scheme):
    made = (await company.api.post("/v1/keys", json={"name": MARKS[0], "scope": "write"})).json()
    again = (await company.api.post("/v1/keys", json={"name": MARKS[0], "scope": "write"})).json()
    job = await company.job()
    context = await browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    scene = Scene(await context.new_page(), company.base, keyboard=width > 1000)
    edit = f"/jobs/{job['id']}/edit"
    await scene.go(edit)
    await _log_in(scene, made["key"])
    await scene.type("Name", "Typed for an hour")
    assert (await company.api.delete(f"/v1/keys/{made['info']['id']}")).status_code in (200, 204)
    await scene.send("Save")
    await scene.sees("Your session has ended", ".problem h1")
    await scene.look(may=(401,))
    async with context.expect_page() as opened:
        await scene.press("Log in in a new tab")
    tab = await opened.value
    await tab.get_by_label("API key").fill(again["key"])
    await tab.get_by_role("button", name="Log in").click()
    await tab.wait_for_url(f"{company.base}/")
    await scene.go(edit)
    await expect(scene.field("Name")).to_have_value("Typed for an hour")
    await context.close()
    assert not scene.wrong, "\n".join(scene.wrong)


async def _log_in(scene: Scene, key: str) -> None:
    await scene.type("API key", key)
    await scene.send("Log in")


async def test_a_database_that_is_away(launch, browser):
    """Every look at one outage: the page says so, reloads itself, and is there again when the database is."""
    with running_postgres() as server:
        node = await launch("--store", server.create_database("away"))
        assert httpx.post(f"{node.url}/v1/jobs", json={"seconds": 1}).status_code == 422
        page = await browser.new_page()
        await page.goto(f"{node.url}/jobs")
        await expect(page.locator("#live")).to_be_visible()
        server.stop(immediate=True)
        await expect(page.locator("#live")).to_have_text("database away", timeout=2 * PATIENCE)
        wrong = []
        await page.goto(f"{node.url}/jobs?q=later")
        await expect(page.locator(".problem h1")).to_be_visible(timeout=PATIENCE)
        for width, scheme in LOOKS:
            await page.set_viewport_size({"width": width, "height": 900})
            await page.emulate_media(color_scheme=scheme)
            wrong += [f"{width} {scheme}: {each}" for each in await faults(page)]
        server.start()
        await expect(page.get_by_role("heading", name="Jobs", exact=True)).to_be_visible(timeout=2 * PATIENCE)
        await page.close()
        node.kill()
    assert not wrong, "\n".join(wrong)
