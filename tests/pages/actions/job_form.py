"""Jobs are made and changed."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.pages.actions.company import Company
from tests.pages.actions.registry import does
from tests.pages.hostile import MARKS, RIGHT_TO_LEFT
from tests.pages.scene import PATIENCE, Scene

SCHEDULES = {
    "cron": ("Cron expression", "*/5 * * * *"),
    "every": ("Interval", "90s"),
    "at": ("Date and time", "2031-03-01T09:00"),
    "in": ("Delay", "2d"),
}
TARGETS: dict[str, dict[str, str]] = {
    "webhook": {"Url": "http://127.0.0.1:9/"},
    "function": {"Function": "json:dumps"},
    "command": {"Command": "wait"},
    "queue": {"Broker": "events", "Topic": "orders"},
    "script": {"Code": "print('<xss-probe>')"},
    "container": {"Image": "busybox"},
    "kubernetes": {"Image": "busybox"},
    "lambda": {"Function": "report"},
    "workflow": {"Engine": "temporal", "Workflow": "Report"},
    "checkin": {"Grace": "10m"},
}


@does("/jobs/new act=save", "/jobs/new act=check")
async def create_every_kind_of_schedule(scene: Scene, company: Company) -> None:
    await scene.go("/jobs/new")
    kinds = await scene.page.locator("input[name=schedule-kind]").evaluate_all("(all) => all.map((one) => one.value)")
    assert kinds == [*SCHEDULES]
    for kind, (label, text) in SCHEDULES.items():
        await scene.go("/jobs/new")
        name = f"{kind} {MARKS[0]}"
        await scene.type("Name", name)
        await scene.pick("schedule-kind", kind)
        await scene.type(label, text)
        await scene.type("Url", "http://127.0.0.1:9/")
        await expect(scene.page.locator("#check table.fires tbody tr").first).to_be_visible(timeout=PATIENCE)
        await scene.look()
        await scene.send("Create job")
        await scene.sees(f"Created {name}", ".notice.good")
        await scene.look()
        made = await company.get(f"/v1/jobs/{scene.last}")
        assert made["name"] == name
        assert made["schedule"].get(kind) or kind == "in"


@does("/jobs/new act=save", "/jobs/new act=check")
async def create_every_kind_of_target(scene: Scene, company: Company) -> None:
    await scene.go("/jobs/new")
    kinds = await scene.page.locator("input[name=target-kind]").evaluate_all("(all) => all.map((one) => one.value)")
    assert {*kinds} == {*TARGETS}, "say in TARGETS what is typed for each kind of target"
    created = set()
    for kind in kinds:
        await scene.go("/jobs/new")
        await scene.type("Name", f"{kind} {RIGHT_TO_LEFT}")
        await scene.type("Cron expression", "0 3 * * *")
        await scene.pick("target-kind", kind)
        for label, text in TARGETS[kind].items():
            await scene.type(label, text)
        unoffered = scene.page.locator(f"label:has([name=target-kind][value={kind}]) .unoffered")
        is_offered = not await unoffered.count()
        await scene.look()
        await scene.send("Create job")
        if not is_offered and not await scene.page.locator(".notice.good").count():
            await expect(scene.page.locator(".wrong").filter(visible=True).first).to_be_visible()
            await scene.look(may=(422,))
            continue
        await scene.sees("Created", ".notice.good")
        await scene.look()
        assert (await company.get(f"/v1/jobs/{scene.last}"))["target"]["type"] == kind
        created.add(kind)
    assert created >= {"webhook", "function", "command", "queue", "checkin"}


@does("/jobs/new act=save", "/jobs/new act=check", "/jobs/new act=json", "/jobs/new act=form", "/jobs/new act=test")
async def create_with_mistakes_as_json_and_try_it_out(scene: Scene, company: Company) -> None:
    await scene.go("/jobs/new")
    await scene.type("Cron expression", "61 * * * *")
    await scene.send("Create job")
    await expect(scene.page.locator(".field.has-error .wrong").first).to_be_visible(timeout=PATIENCE)
    await scene.look(may=(422,))
    await scene.type("Name", MARKS[3])
    await scene.type("Cron expression", "0 4 * * *")
    await scene.type("Url", "http://127.0.0.1:9/")
    await scene.send("Edit as JSON")
    await scene.look()
    await expect(scene.page.locator("#f-json")).to_have_value(re.compile(re.escape("window.hacked=4")))
    await scene.send("Edit as form")
    await expect(scene.field("Name")).to_have_value(MARKS[3])
    async with scene.page.context.expect_page() as opened:
        await scene.press("Run once")
    tab = await opened.value
    await expect(tab.locator(".notice")).to_contain_text("Running it once", timeout=PATIENCE)
    await tab.close()
    await expect(scene.field("Name")).to_have_value(MARKS[3])
    await scene.page.bring_to_front()
    await scene.send("Create job")
    await scene.sees("Created", ".notice.good")
    await scene.look()
    assert (await company.get(f"/v1/jobs/{scene.last}"))["name"] == MARKS[3]


@does(
    "/jobs/{job_id}/edit act=save",
    "/jobs/{job_id}/edit act=check",
    "/jobs/{job_id}/edit act=json",
    "/jobs/{job_id}/edit act=form",
)
async def edit_while_somebody_else_does(scene: Scene, company: Company) -> None:
    job = await company.job()
    await scene.go(f"/jobs/{job['id']}")
    await scene.send("Edit")
    await company.change(job, name=f"theirs {MARKS[1]}", owner=MARKS[2])
    await scene.type("Name", f"mine {MARKS[0]}")
    await scene.send("Save")
    await scene.sees(f"theirs {MARKS[1]}", ".conflict")
    await scene.sees(f"mine {MARKS[0]}", ".conflict")
    await scene.look(may=(409,))
    await scene.send("Edit as JSON")
    await scene.send("Edit as form")
    await scene.look()
    await scene.send("Save")
    await scene.sees("Saved", ".notice.good")
    await scene.look()
    now = await company.get(f"/v1/jobs/{job['id']}")
    assert (now["name"], now["owner"]) == (f"mine {MARKS[0]}", MARKS[2])


@does("/jobs/{job_id}/edit act=test", "/jobs/{job_id}/edit act=check")
async def run_once_what_is_edited(scene: Scene, company: Company) -> None:
    job = await company.job()
    await scene.go(f"/jobs/{job['id']}/edit")
    async with scene.page.context.expect_page() as opened:
        await scene.press("Run once")
    tab = await opened.value
    await expect(tab.locator(".notice")).to_contain_text("Running it once", timeout=PATIENCE)
    await tab.close()
    await scene.look()
    assert (await company.get(f"/v1/jobs/{job['id']}"))["version"] == 1
