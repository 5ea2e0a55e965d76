"""What is done with one job."""

from __future__ import annotations

import re

from playwright.async_api import expect

from onthedot.model.duration import DAY, HOUR
from onthedot.model.instant import format_instant
from tests.pages.actions.company import Company, now_ms
from tests.pages.actions.registry import does
from tests.pages.hostile import MARKS
from tests.pages.scene import PATIENCE, Scene


@does("/jobs/{job_id}/pause", "/jobs/{job_id}/resume")
async def pause_with_a_reason_and_an_end_then_resume(scene: Scene, company: Company) -> None:
    job = await company.job()
    await scene.go(f"/jobs/{job['id']}")
    await scene.ask("Pause…")
    await scene.press("Cancel")
    await expect(scene.page.locator("dialog[open]")).to_have_count(0)
    await scene.ask("Pause…")
    await scene.type("Reason", MARKS[0])
    await scene.choose("Paused until", "a day has passed")
    await scene.send("Pause")
    await scene.sees(MARKS[0], "#job-notes")
    await scene.look()
    paused = await company.get(f"/v1/jobs/{job['id']}")
    assert paused["state"] == "paused"
    await scene.go(f"/jobs?q={job['key']}")
    await scene.sees(MARKS[0], f"#job-{job['id']}")
    await scene.look()
    await scene.go(f"/jobs/{job['id']}")
    await scene.send("Resume")
    await scene.sees("Resumed", ".notice.good")
    assert (await company.get(f"/v1/jobs/{job['id']}"))["state"] == "active"


@does("/jobs/{job_id}/run")
async def run_now_and_with_other_parameters(scene: Scene, company: Company) -> None:
    job = await company.job(params={"text": MARKS[1]})
    await scene.go(f"/jobs/{job['id']}")
    await scene.send("Run now")
    await scene.sees("Started run", ".notice.good")
    await scene.press("More")
    await scene.ask("Run with other parameters…")
    await scene.type("Parameters, as a JSON object", "{not json")
    await scene.send("Run now")
    await expect(scene.page.locator(".field.has-error")).to_be_visible(timeout=PATIENCE)
    await scene.look(may=(422,))
    await scene.type("Parameters, as a JSON object", '{"text": "<xss-probe>"}')
    await scene.send("Run now")
    await scene.sees("Started run", ".notice.good")
    await scene.look()
    runs = (await company.get(f"/v1/runs?job_id={job['id']}"))["items"]
    assert [run.get("params") for run in runs].count({"text": "<xss-probe>"}) == 1
    assert len(runs) >= 2


@does("/jobs/{job_id}/skip", "/jobs/{job_id}/unskip", "/upcoming/skip")
async def skip_a_firing(scene: Scene, company: Company) -> None:
    job = await company.job(schedule={"cron": "0 * * * *"})
    await scene.go(f"/jobs/{job['id']}")
    await scene.send("Skip", "#job-next")
    await scene.sees("Skipped the firing", ".notice.good")
    await scene.sees("skipped", "#job-next tr.skipped")
    await scene.look()
    await scene.send("Fire after all")
    await scene.sees("after all", ".notice.good")
    await expect(scene.page.locator("#job-next tr.skipped")).to_have_count(0)
    await scene.go("/upcoming")
    row = scene.page.locator(f"#up-{job['id']}")
    while not await row.count():
        await scene.send("More firings")
    await scene.send(row.get_by_role("button", name="Skip this one"))
    await scene.sees("does not fire at", ".notice.good")
    await scene.look()
    assert (await company.get(f"/v1/jobs/{job['id']}"))["next_run"] > job["next_run"]


@does(
    "/jobs/{job_id}/backfill act=count",
    "/jobs/{job_id}/backfill act=start",
    "/jobs/{job_id}/backfill act=one",
    "/operations/{operation_id}/pause",
    "/operations/{operation_id}/resume",
    "/operations/{operation_id}/abort",
)
async def backfill_after_a_count_pause_and_abort(scene: Scene, company: Company) -> None:
    now = now_ms()
    start = format_instant(now - 3 * DAY)
    job = await company.job(schedule={"cron": "* * * * *", "start": start}, target={"type": "command", "command": "no"})
    await scene.go(f"/jobs/{job['id']}")
    await scene.press("More")
    await scene.ask("Backfill…")
    await scene.send("Count")
    await scene.sees("firings to run")
    await scene.look()
    many = re.search(r"Type ([0-9,]+) to confirm", await scene.page.locator("form.confirm").inner_text())
    assert many is not None, "more than a hundred have to be typed"
    await scene.type("Maximum per second", "1")
    await scene.type(f"Type {many[1]} to confirm", "7")
    await scene.send(scene.page.locator("form.confirm .actions button"))
    await expect(scene.page.locator(".field.has-error")).to_be_visible(timeout=PATIENCE)
    await scene.look(may=(422,))
    many = re.search(r"Type ([0-9,]+) to confirm", await scene.page.locator("form.confirm").inner_text())
    assert many is not None
    await scene.type(f"Type {many[1]} to confirm", many[1].replace(",", ""))
    await scene.send(scene.page.locator("form.confirm .actions button"))
    await scene.sees("Backfilling", ".notice.good")
    await scene.look()
    await scene.send("Pause")
    await scene.sees("paused", ".verdict")
    await scene.look()
    await scene.send("Resume")
    await scene.sees("running", ".verdict")
    await scene.send("Abort")
    await scene.sees("aborted", ".verdict")
    await scene.look()
    await scene.go("/operations")
    await scene.look()
    at = format_instant(now - now % HOUR - 5 * HOUR)
    await scene.go(f"/jobs/{job['id']}?at={at}")
    await scene.send("Run it for this instant")
    await scene.sees("Started run", ".notice.good")


@does("/jobs/{job_id}/versions/{version}/restore")
async def restore_a_version(scene: Scene, company: Company) -> None:
    job = await company.job()
    await company.change(job, name=f"second {MARKS[4]}")
    await scene.go(f"/jobs/{job['id']}/versions")
    await scene.look()
    await scene.ask("Restore…")
    await scene.send("Restore")
    await scene.sees("version", ".notice.good")
    await scene.look()
    assert (await company.get(f"/v1/jobs/{job['id']}"))["name"] == job["name"]


@does("/jobs/{job_id}/delete", "/jobs/{job_id}/undelete")
async def delete_and_undo(scene: Scene, company: Company) -> None:
    job = await company.job()
    await scene.go(f"/jobs/{job['id']}")
    await scene.press("More")
    await scene.ask("Delete…")
    await scene.send("Delete")
    await scene.sees("Deleted", ".notice.good")
    await scene.look()
    assert (await company.api.get(f"/v1/jobs/{job['id']}")).status_code == 404
    await scene.send("Undo")
    await scene.sees("is back", ".notice.good")
    await scene.look()
    assert (await company.get(f"/v1/jobs/{job['id']}"))["name"] == job["name"]
