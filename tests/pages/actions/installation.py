"""What is done with the whole installation: nodes, keys, channels, sessions."""

from __future__ import annotations

import httpx
from playwright.async_api import expect

from tests.pages.actions.company import Company
from tests.pages.actions.registry import does
from tests.pages.hostile import MARKS
from tests.pages.scene import PATIENCE, Scene


@does("/nodes/{node_id}/drain")
async def drain_a_node(scene: Scene, company: Company) -> None:
    """The only one, which is started again: as its question says, that undoes it."""
    await scene.go("/nodes")
    row = scene.page.locator("tr.alive")
    await expect(row).to_have_count(1, timeout=PATIENCE)  # one that the others left behind is lost after its lease
    # By its id: one that an earlier walk drained and killed may not have been declared lost yet.
    drained = f"#{await row.get_attribute('id')}.draining"
    await scene.press(row.get_by_text("Drain…"))
    await expect(scene.page.locator("dialog[open] h1")).to_be_visible(timeout=PATIENCE)
    await scene.sees("nothing fires until one starts", "dialog[open]")
    await scene.look()
    try:
        await scene.send(scene.page.locator("dialog[open] .actions button"))
        await expect(scene.page.locator(drained)).to_be_visible(timeout=PATIENCE)
        await scene.look()
    finally:
        await company.restart()
    await scene.go("/nodes")
    scene.complaints.clear()  # the page lost its stream with the node
    await expect(row).to_have_count(1, timeout=PATIENCE)
    await scene.look()


@does("/settings/keys", "/settings/keys/{key_id}/revoke")
async def make_and_revoke_a_key(scene: Scene, company: Company) -> None:
    name = f"{company.number()} {MARKS[1]}"
    await scene.go("/settings")
    await scene.type("Name of a new key", name)
    await scene.choose("Scope", await _option(scene, "#f-scope", "write"))
    await scene.type("Expires after", "soon")
    await scene.send("Create key")
    await expect(scene.page.locator(".wrong").first).to_be_visible(timeout=PATIENCE)
    await scene.look(may=(422,))
    await scene.type("Expires after", "90d")
    await scene.send("Create key")
    secret = await scene.page.locator(".new-key .secret code").inner_text()
    await scene.look()
    async with httpx.AsyncClient(base_url=company.base, headers={"authorization": f"Bearer {secret}"}) as client:
        assert (await client.get("/v1/jobs?limit=1")).status_code == 200
    await scene.go("/settings")
    row = scene.page.locator("tr[id^=key-]:not(.revoked)", has_text=name)
    await scene.press(row.get_by_text("Revoke…"))
    await expect(scene.page.locator("dialog[open] h1")).to_be_visible(timeout=PATIENCE)
    await scene.look()
    await scene.send("Revoke")
    await scene.sees("Revoked the key", ".notice.good")
    await scene.look()


@does("/pause-all", "/resume-all")
async def pause_and_resume_everything(scene: Scene, company: Company) -> None:
    await scene.go("/nodes")
    await scene.ask("Pause everything…")
    await scene.type("Reason", MARKS[0])
    await scene.send(scene.page.locator("dialog[open] .actions button"))
    await scene.sees(MARKS[0], "#freeze")
    await scene.look()
    await scene.go("/jobs")
    await scene.ask("Resume all…")
    await scene.send(scene.page.locator("dialog[open] .actions button"))
    await expect(scene.page.locator("#freeze aside")).to_have_count(0)
    await scene.look()


@does("/alerts/test")
async def send_a_test_message(scene: Scene, company: Company) -> None:
    await scene.go("/alerts")
    await scene.look()
    await scene.send("Send a test")
    await expect(scene.page.locator(".notice")).to_be_visible(timeout=PATIENCE)
    await scene.look()


@does("/login", "/logout")
async def log_in_and_out(scene: Scene, company: Company) -> None:
    made = await company.api.post("/v1/keys", json={"name": "<xss-probe>", "scope": "read"})
    assert made.status_code == 201, made.text
    await scene.page.context.clear_cookies()
    await scene.go("/jobs?q=walked")
    assert "/login" in scene.page.url
    await scene.look()
    await scene.type("API key", "otd_wrong")
    await scene.send("Log in")
    await expect(scene.page.locator(".wrong")).to_be_visible()
    await scene.look(may=(401,))
    await scene.type("API key", made.json()["key"])
    await scene.send("Log in")
    assert scene.page.url == f"{scene.base}/jobs?q=walked"
    await scene.sees("Read-only")
    await scene.look()
    await scene.send("Log out")
    await scene.look()
    await scene.go("/jobs")
    assert "/login" in scene.page.url


async def _option(scene: Scene, select: str, value: str) -> str:
    return (await scene.page.locator(f"{select} option[value='{value}']").inner_text()).strip()
