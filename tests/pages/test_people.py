"""What people do: a job without a mouse, two of them at the same form, and a server that dies under what was typed."""

from __future__ import annotations

import pytest
from playwright.async_api import Error, expect

from onthedot.clock import SystemClock
from onthedot.model.job import JobSpec
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from tests.api.conftest import listening, serving

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


async def test_what_was_typed_survives_the_server(store_url, watched):
    """Killed while the form is open, and Save pressed meanwhile: nothing is lost when the server is back."""
    async with serving(store_url, SystemClock()) as app:
        spec = JobSpec(key="k", schedule=Schedule(cron="0 3 * * *"), target=WebhookTarget(url="http://127.0.0.1:9/"))
        job = await app.context.service.create_job(1, spec)
        seen = await watched()
        async with listening(app) as (_, port):
            form = f"http://127.0.0.1:{port}/jobs/{job.id}/edit"
            await seen.page.goto(form)
            await seen.page.get_by_label("Name", exact=False).first.fill("Typed for an hour")
        with pytest.raises(Error):
            await seen.page.reload()
        await seen.page.wait_for_url(NOBODY)
        async with listening(app, port):
            await seen.page.goto(form)
            await expect(seen.page.get_by_label("Name", exact=False).first).to_have_value("Typed for an hour")
            await seen.page.get_by_label("Name", exact=False).first.fill("Typed for two hours")
        await seen.page.get_by_role("button", name="Save").last.click()
        await seen.page.wait_for_url(NOBODY)
        async with listening(app, port):
            await seen.page.goto(form)
            name = seen.page.get_by_label("Name", exact=False).first
            await expect(name).to_have_value("Typed for two hours")
            await _save(seen.page)
        assert (await app.context.service.get_job(1, job.id)).name == "Typed for two hours"


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
