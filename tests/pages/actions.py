"""Every action of the dashboard, as a person does it. `@does` says which forms and buttons a walk sends; a walk that
sends others, or not all of these, is wrong, and so is a form that no walk sends (tests/web/test_every_action.py)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import httpx
from playwright.async_api import expect

from examples.demo.tables import open_tables
from onthedot.model.duration import DAY, HOUR
from onthedot.model.instant import format_instant
from tests.pages.hostile import MARKS, RIGHT_TO_LEFT, WEBHOOK, add_past
from tests.pages.scene import PATIENCE, Scene
from tests.services.process import NodeProcess

__all__ = ["ACTIONS", "Company", "Walk"]

_numbers = itertools.count(1)


class Company(NamedTuple):
    """A running node, a way to its API as an admin, and its database."""

    base: str
    api: httpx.AsyncClient
    store: str
    key: str
    start_node: Callable[[], Awaitable[NodeProcess]]

    async def job(self, **fields: Any) -> dict[str, Any]:
        """A new one, with a name that tries to become markup."""
        number = next(_numbers)
        spec = {
            "key": f"walked-{number}",
            "name": f"{number} {MARKS[number % len(MARKS)]}",
            "schedule": {"cron": "0 3 * * *"},
            "target": WEBHOOK,
            **fields,
        }
        answer = await self.api.post("/v1/jobs", json=spec)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    async def job_with_past(self) -> dict[str, Any]:
        """One with a day of runs, two of which are dead letters."""
        made = await self.job(schedule={"cron": "0 * * * *"})
        now = await self.now()
        tables = await open_tables(self.store)
        try:
            await add_past(tables, made["id"], now)
        finally:
            await tables.close()
        return made

    async def get(self, path: str) -> Any:
        answer = await self.api.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def now(self) -> int:
        import time

        return int(time.time() * 1000)


Walk = Callable[[Scene, Company], Awaitable[None]]


class Action(NamedTuple):
    walk: Walk
    sends: frozenset[str]


ACTIONS: dict[str, Action] = {}


def does(*sends: str) -> Callable[[Walk], Walk]:
    def add(walk: Walk) -> Walk:
        ACTIONS[walk.__name__] = Action(walk, frozenset(sends))
        return walk

    return add


# Jobs: the form

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
        made = await company.get(f"/v1/jobs/{_last(scene)}")
        assert made["name"] == name
        assert made["schedule"].get(kind) or kind == "in"


@does("/jobs/new act=save", "/jobs/new act=check")
async def create_every_kind_of_target(scene: Scene, company: Company) -> None:
    await scene.go("/jobs/new")
    kinds = await scene.page.locator("input[name=target-kind]").evaluate_all("(all) => all.map((one) => one.value)")
    assert {*kinds} == {*TARGETS}, "say in TARGETS what is typed for each kind of target"
    for kind in kinds:
        await scene.go("/jobs/new")
        await scene.type("Name", f"{kind} {RIGHT_TO_LEFT}")
        await scene.type("Cron expression", "0 3 * * *")
        await scene.pick("target-kind", kind)
        for label, text in TARGETS[kind].items():
            await scene.type(label, text)
        await scene.look()
        await scene.send("Create job")
        await scene.sees("Created", ".notice.good")
        await scene.look()
        assert (await company.get(f"/v1/jobs/{_last(scene)}"))["target"]["type"] == kind


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
    assert (await company.get(f"/v1/jobs/{_last(scene)}"))["name"] == MARKS[3]


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
    changed = await company.api.patch(f"/v1/jobs/{job['id']}", json={"name": f"theirs {MARKS[1]}", "owner": MARKS[2]})
    assert changed.status_code == 200, changed.text
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


# Jobs: one of them


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
    assert len(runs) == 2


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
    await scene.go("/upcoming?within=2h")
    row = scene.page.locator(f"#up-{job['id']}")
    while not await row.count():
        await scene.send("More firings")
    await scene.send(row.get_by_role("button", name="Skip this one"))
    await scene.sees("Skipped", ".notice.good")
    await scene.look()
    assert (await company.get(f"/v1/jobs/{job['id']}"))["skipped"]


@does(
    "/jobs/{job_id}/backfill act=count",
    "/jobs/{job_id}/backfill act=start",
    "/jobs/{job_id}/backfill act=one",
    "/operations/{operation_id}/abort",
)
async def backfill_after_a_count_and_abort(scene: Scene, company: Company) -> None:
    now = await company.now()
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
    await scene.type("At most so many per second", "1")
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
    await company.api.patch(f"/v1/jobs/{job['id']}", json={"name": f"second {MARKS[4]}"})
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


# Jobs: several


@does(*(f"/jobs/selected verb={verb}" for verb in ("pause", "resume", "run", "tag", "delete")))
async def several_jobs(scene: Scene, company: Company) -> None:
    jobs = [await company.job() for _ in range(4)]
    tag = f"several-{jobs[0]['id']}"

    async def select(query: str, places: tuple[int, ...]) -> None:
        await scene.go(f"/jobs?{query}")
        if not places:
            await scene.tick(scene.page.locator("#selection input[name=all]"))
        for place in places:
            await scene.tick(scene.page.locator(f"#job-{jobs[place]['id']} input[name=id]"))

    async def confirm(*, said: str) -> None:
        await scene.look()
        await scene.send(scene.page.locator("form.confirm .actions button"))
        await scene.sees(said, ".notice.good")
        await scene.sees("It is done", ".verdict")  # it is live: nothing is reloaded
        await scene.look()

    await select(f"q={jobs[0]['key']}", (0,))
    await scene.send("Tag…")
    await scene.type("Add tags", f"{tag}, {MARKS[5]}")
    await confirm(said="Tagging 1 job")
    for job in jobs[1:]:
        await company.api.patch(f"/v1/jobs/{job['id']}", json={"tags": [tag]})
    await select(f"tag={tag}", (0, 1))
    await scene.send("Pause…")
    await scene.type("Reason", MARKS[0])
    await scene.choose("Paused until", "an hour has passed")
    await confirm(said="Pausing 2 jobs")
    states = [(await company.get(f"/v1/jobs/{job['id']}"))["state"] for job in jobs]
    assert states == ["paused", "paused", "active", "active"]
    await select(f"tag={tag}", ())
    await scene.send("Resume…")
    await scene.sees(tag, "form.confirm")
    await confirm(said="Resuming 4 jobs")
    await select(f"tag={tag}", ())
    await scene.send("Run now…")
    await confirm(said="Running 4 jobs")
    await select(f"tag={tag}", (2, 3))
    await scene.send("Delete…")
    await confirm(said="Deleting 2 jobs")
    left = (await company.get(f"/v1/jobs?tag={tag}"))["items"]
    assert {job["id"] for job in left} == {jobs[0]["id"], jobs[1]["id"]}


# Runs


@does("/runs/{run_id}/cancel")
async def cancel_a_run(scene: Scene, company: Company) -> None:
    job = await company.job(target={"type": "command", "command": "wait"})
    run = (await company.api.post(f"/v1/jobs/{job['id']}/run")).json()
    await scene.go(f"/runs/{run['id']}")
    await scene.look()
    await scene.ask("Cancel run")
    await scene.send("Cancel run")
    await expect(scene.page.locator(".run-line .badge")).to_have_text(re.compile("cancelled", re.I), timeout=PATIENCE)
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
    new = await company.get(f"/v1/runs/{_last(scene)}")
    assert new["params"] == {"text": "<xss-probe>"}
    await scene.go(f"/runs/{failed['id']}")
    await scene.send("Retry")
    await scene.sees("is tried again", ".notice.good")
    await scene.look()


# Dead letters


@does("/dead/redrive-one", "/dead/redrive")
async def redrive_one_a_selection_and_a_group(scene: Scene, company: Company) -> None:
    job = await company.job_with_past()
    mine = f"/dead?job_id={job['id']}"
    await scene.go(mine)
    await scene.look()
    await scene.send(scene.page.locator("tr[id^=letter-] button").first)
    await scene.sees("this is the new run", ".notice.good")
    await scene.look()
    await scene.go(mine)
    await scene.tick(scene.page.locator("input[name=id]").first)
    await scene.send("Redrive…", "#selection")
    await scene.look()
    await scene.send(scene.page.locator("form.confirm .actions button"))
    await scene.sees("Redriving 1 dead letter", ".notice.good")
    await scene.look()
    job = await company.job_with_past()
    await scene.go(f"/dead?job_id={job['id']}")
    await scene.send("Redrive…", "table.groups")
    await scene.type("At most so many per second", "5")
    await scene.look()
    await scene.send(scene.page.locator("form.confirm .actions button"))
    await scene.sees("Redriving 1 dead letter", ".notice.good")
    await scene.go(f"/dead?job_id={job['id']}")
    await scene.send("Redrive all…")
    await scene.look()
    await scene.send(scene.page.locator("form.confirm .actions button"))
    await scene.sees("Redriving", ".notice.good")


@does("/dead/discard")
async def discard_with_a_note(scene: Scene, company: Company) -> None:
    job = await company.job_with_past()
    mine = f"/dead?job_id={job['id']}"
    await scene.go(mine)
    await scene.tick(scene.page.locator("input[name=id]").first)
    await scene.send("Discard…", "#selection")
    await scene.type("Note", MARKS[0])
    await scene.look()
    await scene.send(scene.page.locator("form.confirm .actions button"))
    await scene.sees("Discarded 1 dead letter", ".notice.good")
    await scene.send("Discard…", "table.groups")
    await scene.type("Note", MARKS[3])
    await scene.send(scene.page.locator("form.confirm .actions button"))
    await scene.sees("Discarding 1 dead letter", ".notice.good")
    await scene.sees("It is done", ".verdict")
    await scene.go(f"{mine}&discarded=true")
    await scene.sees(MARKS[0], "#live-part")
    await scene.sees(MARKS[3], "#live-part")
    await scene.look()
    await scene.go(mine)
    await scene.sees("No dead letters")
    await scene.look()


# The installation


@does("/nodes/{node_id}/drain")
async def drain_a_node(scene: Scene, company: Company) -> None:
    node = await company.start_node()
    try:
        await scene.go("/nodes")
        row = scene.page.locator("tr.alive", has_text=f"process {node.pid}")
        await expect(row).to_be_visible(timeout=PATIENCE)
        await scene.press(row.get_by_text("Drain…"))
        await expect(scene.page.locator("dialog[open] h1")).to_be_visible(timeout=PATIENCE)
        await scene.look()
        await scene.send(scene.page.locator("dialog[open] .actions button"))
        await expect(scene.page.locator("tr", has_text=f"process {node.pid}")).to_contain_text(
            re.compile("draining|stopped|lost"), timeout=PATIENCE
        )
        await scene.look()
    finally:
        node.kill()


@does("/settings/keys", "/settings/keys/{key_id}/revoke")
async def make_and_revoke_a_key(scene: Scene, company: Company) -> None:
    name = f"{next(_numbers)} {MARKS[1]}"
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
async def log_out_and_in(scene: Scene, company: Company) -> None:
    made = await company.api.post("/v1/keys", json={"name": "<xss-probe>", "scope": "read"})
    assert made.status_code == 201, made.text
    await scene.go("/jobs")
    await scene.send("Log out")
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


# Without a form


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
        await scene.go("/nodes")
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


def _last(scene: Scene) -> str:
    return scene.page.url.partition("?")[0].rpartition("/")[2]


async def _option(scene: Scene, select: str, value: str) -> str:
    return (await scene.page.locator(f"{select} option[value='{value}']").inner_text()).strip()
