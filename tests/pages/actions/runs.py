"""What is done with a run."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.pages.actions.company import Company
from tests.pages.actions.registry import does
from tests.pages.scene import PATIENCE, Scene


@does("/runs/{run_id}/cancel")
async def cancel_a_run(scene: Scene, company: Company) -> None:
    job = await company.job(target={"type": "command", "command": "wait"})
    run = (await company.api.post(f"/v1/jobs/{job['id']}/run")).json()
    await scene.go(f"/runs/{run['id']}")
    await scene.look()
    await scene.ask("Cancel run")
    await scene.send("Cancel run")
    badge = scene.page.locator(".run-line .badge")
    await expect(badge).to_have_text(re.compile("cancelled", re.IGNORECASE), timeout=PATIENCE)
    await scene.look()


@does("/runs/{run_id}/retry")
async def retry_and_edit_and_retry(scene: Scene, company: Company) -> None:
    job = await company.job_with_past()
    failed = (await company.get(f"/v1/runs?job_id={job['id']}&status=FAILED"))["items"][0]
    await scene.go(f"/runs/{failed['id']}")
    await scene.ask("Edit and retry…")
    await scene.type("Parameters of the new run, as a JSON object", '{"text": "<xss-probe>"}')
    await scene.send("Retry")
    await scene.sees("is tried again", ".notice.good")
    await scene.look()
    new = await company.get(f"/v1/runs/{scene.last}")
    assert new["params"] == {"text": "<xss-probe>"}
    await scene.go(f"/runs/{failed['id']}")
    await scene.send("Retry")
    await scene.sees("is tried again", ".notice.good")
    await scene.look()
