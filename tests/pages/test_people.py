"""What people do: a job without a mouse, two of them at the same form, and a server that dies under what was typed."""

from __future__ import annotations

import httpx
import pytest
from playwright.async_api import Error, expect

from tests.api.conftest import JOB

NOBODY = "chrome-error://chromewebdata/"
"""What Chromium shows when nobody answers."""

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]


async def test_a_job_is_made_without_a_mouse(hostile_site, watched):
    app, base, _ = hostile_site
    seen = await watched()
    await seen.page.goto(f"{base}/jobs")
    await _tab_to(seen.page, "New job")
    await seen.page.keyboard.press("Enter")
    await seen.page.wait_for_url(f"{base}/jobs/new")
    for label, text in (("Key", "by-keyboard"), ("Cron expression", "0 3 * * *"), ("URL", "http://127.0.0.1:9/")):
        await _tab_to(seen.page, label)
        await seen.page.keyboard.press("Control+A")
        await seen.page.keyboard.type(text)
    async with seen.page.expect_navigation():
        await seen.page.keyboard.press("Enter")
    found = await app.context.service.get_job_by_key(1, "by-keyboard")
    assert found.schedule.cron == "0 3 * * *"


async def test_two_people_at_the_same_form(hostile_site, watched):
    _, base, hostile = hostile_site
    first, second = await watched(), await watched(390, "dark")
    for seen in (first, second):
        await seen.page.goto(f"{base}/jobs/{hostile.jobs[-1]}/edit")
    await first.page.get_by_label("Name", exact=False).first.fill("Name of the first")
    await _save(first.page)
    await second.page.get_by_label("Name", exact=False).first.fill("Name of the second")
    await _save(second.page)
    await expect(second.page.locator(".conflict")).to_contain_text("Name of the first")
    await expect(second.page.locator(".conflict")).to_contain_text("Name of the second")


async def test_what_was_typed_survives_the_server(store_url, launch, watched, free_port):
    """Killed while the form is open, and Save pressed meanwhile: nothing is lost when the server is back."""
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    node = await launch("--store", store_url, port=port)
    job = httpx.post(f"{base}/v1/jobs", json=JOB).json()
    seen = await watched()
    form, name = f"{base}/jobs/{job['id']}/edit", seen.page.get_by_label("Name", exact=False).first
    await seen.page.goto(form)
    await name.fill("Typed for an hour")
    node.kill()
    with pytest.raises(Error):
        await seen.page.reload()
    await seen.page.wait_for_url(NOBODY)
    node = await launch("--store", store_url, port=port)
    await seen.page.goto(form)
    await expect(name).to_have_value("Typed for an hour")
    await name.fill("Typed for two hours")
    node.kill()
    await seen.page.get_by_role("button", name="Save").last.click()
    await seen.page.wait_for_url(NOBODY)
    await launch("--store", store_url, port=port)
    await seen.page.goto(form)
    await expect(name).to_have_value("Typed for two hours")
    await _save(seen.page)
    assert httpx.get(f"{base}/v1/jobs/{job['id']}").json()["name"] == "Typed for two hours"
    await seen.page.goto(form)
    await name.fill("")
    await seen.page.goto(form)
    await expect(name).to_have_value("")


async def test_what_was_answered_to_a_question_survives_the_server(store_url, launch, watched, free_port):
    """The same for questions, which open as dialogs or as pages."""
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    node = await launch("--store", store_url, port=port)
    job = httpx.post(f"{base}/v1/jobs", json=JOB).json()
    seen = await watched(390)
    page, reason = seen.page, seen.page.get_by_label("Reason")
    await page.goto(f"{base}/jobs/{job['id']}")
    await page.get_by_text("Pause…").click()
    await reason.fill("Typed for an hour")
    await page.get_by_label("Paused until").select_option("1d")
    node.kill()
    await page.get_by_role("button", name="Pause", exact=True).click()
    await page.wait_for_url(NOBODY)
    node = await launch("--store", store_url, port=port)
    await page.goto(f"{base}/jobs/{job['id']}")
    await page.get_by_text("Pause…").click()
    await expect(reason).to_have_value("Typed for an hour")
    await expect(page.get_by_label("Paused until")).to_have_value("1d")
    async with page.expect_navigation():
        await page.get_by_role("button", name="Pause", exact=True).click()
    await expect(page.locator("#job-notes")).to_contain_text("Typed for an hour")
    async with page.expect_navigation():
        await page.get_by_role("button", name="Resume").click()
    await page.get_by_text("Pause…").click()
    await expect(reason).to_have_value("")  # what has arrived is not asked again
    await reason.fill("Never mind")
    await page.get_by_role("link", name="Cancel").click()
    await page.get_by_text("Pause…").click()
    await expect(reason).to_have_value("")
    await page.goto(f"{base}/jobs/{job['id']}/run")
    await page.get_by_label("Parameters").fill('{"long": "text"}')
    node.kill()
    await page.get_by_role("button", name="Run now").click()
    await page.wait_for_url(NOBODY)
    await launch("--store", store_url, port=port)
    await page.goto(f"{base}/jobs/{job['id']}/run")
    await expect(page.get_by_label("Parameters")).to_have_value('{"long": "text"}')


async def _save(page) -> None:
    async with page.expect_navigation():
        await page.get_by_role("button", name="Save").last.click()


async def _tab_to(page, label: str) -> None:
    """Until the focused element is called so."""
    name = "(document.activeElement.labels?.[0]?.textContent ?? document.activeElement.textContent).trim()"
    for _ in range(80):
        await page.keyboard.press("Tab")
        if (await page.evaluate(name)).startswith(label):
            return
    raise AssertionError(f"the Tab key does not lead to {label!r}")
