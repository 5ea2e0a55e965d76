"""The form for a job: create, change, try out, meet somebody else's change; with and without scripts."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from onthedot.api.app import App
from onthedot.api.auth import COOKIE
from onthedot.clock import FakeClock
from onthedot.model.key import ApiKeySpec
from onthedot.web.form.reading import texts_of
from tests.api.conftest import client_of, serving

JOB: dict[str, Any] = {
    "key": "nightly",
    "name": "Nightly report",
    "schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin"},
    "target": {"type": "webhook", "url": "http://127.0.0.1:9/x", "headers": {"Authorization": "Bearer secret-1"}},
    "tags": ["reports"],
}
OURS = {"origin": "http://localhost:8000"}


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


def fields_of(page: str) -> dict[str, str]:
    """What a browser would send of the form on this page."""
    form = page[page.index("data-job-form") : page.index("</form>", page.index("data-job-form"))]
    found: dict[str, str] = {}
    for tag in re.findall(r"<input\b[^>]*>", form):
        named = dict(re.findall(r'([\w:-]+)="([^"]*)"', tag))
        if named.get("type") in ("radio", "checkbox") and " checked" not in tag:
            continue
        found[html.unescape(named["name"])] = html.unescape(named.get("value", ""))
    for name, text in re.findall(r'<textarea\b[^>]* name="([^"]+)"[^>]*>\n?(.*?)</textarea>', form, re.DOTALL):
        found[html.unescape(name)] = html.unescape(text)
    for name, inner in re.findall(r'<select\b[^>]* name="([^"]+)"[^>]*>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected>', inner)
        found[html.unescape(name)] = html.unescape(chosen[1]) if chosen else ""
    return found


def words_of(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", " ", page))


async def test_a_job_is_created_by_the_form(site):
    typed = {**fields_of((await site.get("/jobs/new")).text), **texts_of(JOB), "act": "save"}
    answer = await site.post("/jobs/new", data=typed, headers=OURS)
    assert answer.status_code == 303, words_of(answer.text)
    job = (await site.get("/v1/jobs/by-key/nightly")).json()
    assert answer.headers["location"] == f"/jobs/{job['id']}"
    assert (job["schedule"], job["tags"], job["name"]) == (JOB["schedule"], ["reports"], "Nightly report")
    assert job["target"]["headers"] == {"Authorization": "••••••"}


async def test_what_is_wrong_is_said_at_its_field_and_nothing_typed_is_lost(site):
    typed = {**texts_of(JOB), "target:webhook.url": "ftp://x", "policy.timeout": "soon", "name": "Kept", "act": "save"}
    answer = await site.post("/jobs/new", data=typed, headers=OURS)
    assert answer.status_code == 422
    shown = fields_of(answer.text)
    assert (shown["name"], shown["target:webhook.url"], shown["policy.timeout"]) == ("Kept", "ftp://x", "soon")
    timeout = re.search(r'data-path="policy.timeout">.*?<p class="wrong"[^>]*>(.*?)</p>', answer.text, re.DOTALL)
    assert timeout is not None
    assert "Accepted" in timeout[1]
    assert (await site.get("/v1/jobs")).json()["items"] == []


async def test_the_meaning_is_told_as_one_types_and_nothing_is_saved(site):
    typed = {**texts_of(JOB), "act": "check"}
    answer = await site.post("/jobs/new", data=typed, headers={**OURS, "x-onthedot-live": "1"})
    assert answer.status_code == 200
    assert "<form" not in answer.text
    assert "At 03:00" in answer.text
    assert answer.text.count("03:00:00") == 10
    untouched = {**fields_of((await site.get("/jobs/new")).text), "act": "check"}
    empty = await site.post("/jobs/new", data=untouched, headers={**OURS, "x-onthedot-live": "1"})
    assert "When will it run?" in empty.text
    assert (await site.get("/v1/jobs")).json()["items"] == []


@pytest.mark.parametrize(
    ("path", "text", "wrong"),
    [
        ("schedule.cron", "99 3 * * *", "The minute field is not valid"),
        ("schedule.tz", "Europe/Nowhere", "Unknown time zone"),
        ("schedule.start", "x", "Not a valid date and time"),
    ],
)
async def test_a_wrong_schedule_is_told_though_other_fields_are_still_empty(site, path, text, wrong):
    typed = {**texts_of({"schedule": JOB["schedule"], "target": {"type": "webhook"}}), path: text, "act": "check"}
    told = (await site.post("/jobs/new", data=typed, headers={**OURS, "x-onthedot-live": "1"})).text
    problems = dict(re.findall(r'<li data-path="([^"]+)"[^>]*>(.*?)</li>', told, re.DOTALL))
    assert set(problems) == {path, "target.url"}
    assert problems[path].startswith(wrong)


async def test_what_a_change_does_is_told_before_it_is_saved(site):
    job = (await site.post("/v1/jobs", json=JOB)).json()
    at = f"/jobs/{job['id']}/edit"
    page = (await site.get(at)).text
    assert "What this change does" not in page
    sent = {**fields_of(page), "schedule.cron": "0 3,15 * * *", "act": "check"}
    told = " ".join(words_of((await site.post(at, data=sent, headers=OURS)).text).split())
    assert "In the next 30 days: 30 firings added." in told
    sent["schedule.cron"] = "0 4 * * *"
    told = " ".join(words_of((await site.post(at, data=sent, headers=OURS)).text).split())
    assert "In the next 30 days: 30 firings moved." in told


async def test_an_unchanged_form_changes_nothing_and_keeps_secrets(site, app):
    job = (await site.post("/v1/jobs", json=JOB)).json()
    page = await site.get(f"/jobs/{job['id']}/edit")
    answer = await site.post(f"/jobs/{job['id']}/edit", data={**fields_of(page.text), "act": "save"}, headers=OURS)
    assert answer.status_code == 303
    assert (await site.get(f"/v1/jobs/{job['id']}")).json()["version"] == job["version"]
    stored = await app.context.service.store.get_record(1, job["id"])
    assert stored.spec.target.headers == {"Authorization": "Bearer secret-1"}


async def test_json_and_form_are_the_same_job(site):
    typed = {**texts_of(JOB), "base": "{}", "act": "json"}
    as_json = fields_of((await site.post("/jobs/new", data=typed, headers=OURS)).text)
    assert as_json["mode"] == "json"
    changed = as_json["json"].replace("Nightly report", "Daily report")
    as_form = fields_of(
        (await site.post("/jobs/new", data={**as_json, "json": changed, "act": "form"}, headers=OURS)).text
    )
    assert (as_form["mode"], as_form["name"], as_form["schedule.cron"]) == ("form", "Daily report", "0 3 * * *")
    broken = await site.post("/jobs/new", data={**as_json, "json": '{"a":', "act": "save"}, headers=OURS)
    assert broken.status_code == 422
    assert "Not valid JSON" in words_of(broken.text)


async def test_two_people_at_once_see_both_changes(site):
    job = (await site.post("/v1/jobs", json=JOB)).json()
    path = f"/jobs/{job['id']}/edit"
    mine = {**fields_of((await site.get(path)).text), "name": "Mine", "tags": "reports, mine", "act": "save"}
    await site.patch(f"/v1/jobs/{job['id']}", json={"name": "Theirs", "policy": {"timeout": "9s"}})
    answer = await site.post(path, data=mine, headers=OURS)
    assert answer.status_code == 409
    assert "Version conflict: this job changed while you were editing it" in answer.text
    assert answer.text.count("both changed</span>") == 1  # the name
    listed = re.findall(r"<td><code>([^<]+)</code>", answer.text.split("</table>")[0])
    assert sorted(listed) == ["name", "policy.timeout", "tags"], "what nobody changed is not listed"
    merged = fields_of(answer.text)
    assert (merged["name"], merged["tags"], merged["policy.timeout"]) == ("Mine", "reports, mine", "9s")
    assert (await site.post(path, data={**merged, "act": "save"}, headers=OURS)).status_code == 303
    saved = (await site.get(f"/v1/jobs/{job['id']}")).json()
    assert (saved["name"], saved["tags"], saved["policy"]["timeout"]) == ("Mine", ["reports", "mine"], "9s")


async def test_a_key_that_is_taken_is_said(site):
    await site.post("/v1/jobs", json=JOB)
    answer = await site.post("/jobs/new", data={**texts_of(JOB), "act": "save"}, headers=OURS)
    assert answer.status_code == 422
    assert "already used by" in words_of(answer.text)


async def test_it_is_tried_out_as_a_job_of_its_own(site):
    answer = await site.post("/jobs/new", data={**texts_of(JOB), "act": "test"}, headers=OURS)
    assert answer.status_code == 303, words_of(answer.text)
    (made,) = (await site.get("/v1/jobs")).json()["items"]
    assert (made["key"], made["name"]) == (None, "Test of Nightly report")
    assert made["schedule"] == {"in": "1ms"}
    assert "test" in made["tags"]


async def test_an_empty_form_is_told_what_is_missing_at_each_input(site):
    typed = {**fields_of((await site.get("/jobs/new")).text), "schedule-kind": "every", "act": "save"}
    answer = await site.post("/jobs/new", data=typed, headers=OURS)
    assert answer.status_code == 422
    told = dict(re.findall(r'<p class="wrong" id="e-([^"]+)">([^<]+)', answer.text))
    assert told["schedule.every"] == "Has no time: fill in the schedule."
    assert "target:webhook.url" in told
    assert "data-refused" in answer.text


async def test_a_copy_has_another_name_and_no_key(site):
    job = (await site.post("/v1/jobs", json=JOB)).json()
    copied = fields_of((await site.get(f"/jobs/new?from={job['id']}")).text)
    assert (copied["name"], copied["key"], copied["schedule.cron"]) == ("Copy of Nightly report", "", "0 3 * * *")


async def test_what_jobs_are_called_is_text(site):
    name = "</textarea><script>alert(1)</script>\"'"
    job = (await site.post("/v1/jobs", json={**JOB, "name": name, "params": {"x": name}})).json()
    page = await site.get(f"/jobs/{job['id']}/edit")
    assert "<script>alert" not in page.text
    assert fields_of(page.text)["name"] == name


async def test_who_can_only_read_is_refused(app, site):
    job = (await site.post("/v1/jobs", json=JOB)).json()
    reader = await app.context.service.create_key(ApiKeySpec(name="r", scope="read"))
    session, _ = await app.context.service.log_in(reader.key)
    site.cookies.set(COOKIE, session.token)
    page = await site.get(f"/jobs/{job['id']}/edit")
    assert 'disabled title="Your key can only read"' in page.text
    answer = await site.post(f"/jobs/{job['id']}/edit", data={**fields_of(page.text), "act": "save"}, headers=OURS)
    assert answer.status_code == 403
