"""What keys do that belong to no form."""

from __future__ import annotations

from playwright.async_api import expect

from tests.pages.actions.company import Company
from tests.pages.actions.registry import does
from tests.pages.scene import PATIENCE, Scene


@does()
async def quick_search_and_keys(scene: Scene, company: Company) -> None:
    job = await company.job()
    await scene.go("/nodes")
    await scene.page.keyboard.press("?")
    await scene.sees("Keyboard shortcuts", "dialog[open]")
    await scene.look()
    await scene.page.keyboard.press("Escape")
    await expect(scene.page.locator("dialog[open]")).to_have_count(0)
    for letter in await scene.page.locator("nav.tabs a").evaluate_all(
        "(all) => all.map((one) => [one.dataset.key, one.href])"
    ):
        await scene.go("/jobs" if letter[1].endswith("/nodes") else "/nodes")
        await scene.page.keyboard.press("g")
        await scene.page.keyboard.press(letter[0])
        await scene.page.wait_for_url(letter[1])
    await scene.go("/nodes")
    await scene.page.keyboard.press("/")
    await scene.page.keyboard.type(job["key"])
    async with scene.page.expect_navigation():
        await scene.page.keyboard.press("Enter")
    await expect(scene.page.locator(f"#job-{job['id']}")).to_be_visible(timeout=PATIENCE)
    await scene.page.keyboard.press("Escape")
    await scene.look()
