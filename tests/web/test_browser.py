"""The pages in a real browser: they load, they live, they look right on a phone, and nothing is refused by the CSP."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from onthedot.model.job import JobSpec
from onthedot.model.key import ApiKeySpec
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from tests.services.leaks import tasks_left

# One browser for all of them, on one loop.
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def nothing_left_on_the_loop(browser):
    """As everywhere, on the loop that is shared here: a browser has tasks of its own."""
    before = asyncio.all_tasks()
    yield
    left = await tasks_left(before)
    assert not left, f"tasks left on the loop: {left}"


LONG = "https://example.com/" + "a-very-long-path/" * 20


def job(key: str, **fields: Any) -> JobSpec:
    given = {"schedule": Schedule(cron="0 3 * * *"), "target": WebhookTarget(url="http://127.0.0.1:5003/"), **fields}
    return JobSpec(key=key, **given)


async def overflow(page: Page) -> int:
    """How far the page can be scrolled sideways: nobody should have to."""
    wide: int = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wide


async def test_on_a_phone_the_meaning_of_the_schedule_is_seen_while_it_is_typed(site, watched):
    _, base = site
    seen = await watched(390, "light")
    await seen.page.goto(f"{base}/jobs/new")
    glance = seen.page.locator(".glance")
    await seen.page.get_by_label("Cron expression").fill("0 3 * * *")
    await expect(glance).to_contain_text("At 03:00")
    await expect(glance).to_contain_text("next 20")
    for field in ("Cron expression", "URL"):
        await seen.page.get_by_label(field).first.scroll_into_view_if_needed()
        await expect(glance).to_be_in_viewport()
    await glance.click()
    await expect(seen.page.locator("#check .fires")).to_be_in_viewport()
    await seen.page.set_viewport_size({"width": 1440, "height": 900})
    await expect(glance).to_be_hidden()
    assert seen.complaints == []


@pytest.mark.parametrize("size", [(1920, 1080), (3840, 2160)])
async def test_a_wall_shows_all_in_one_screen(site, watched, size):
    app, base = site
    await app.context.service.create_job(1, job("nightly", name="Nightly report"))
    seen = await watched(1440, "dark")
    await seen.page.set_viewport_size({"width": size[0], "height": size[1]})
    await seen.page.goto(f"{base}/?wall=true")
    await expect(seen.page.get_by_role("heading", name="Next firings")).to_be_in_viewport()
    high = await seen.page.evaluate("document.documentElement.scrollHeight")
    assert high <= size[1], "nothing has to be scrolled"
    letters = await seen.page.evaluate(
        "parseFloat(getComputedStyle(document.querySelector('.entries .title')).fontSize)"
    )
    assert letters >= size[1] / 45
    assert seen.complaints == []


async def test_a_wall_display_opened_on_a_phone_is_as_wide_as_the_phone(site, watched):
    app, base = site
    await app.context.service.create_job(1, job("nightly", name="Nightly report"))
    seen = await watched(390, "light")
    await seen.page.goto(f"{base}/?wall=true")
    await expect(seen.page.get_by_text("due and waiting")).to_be_in_viewport()
    ends = "Math.max(...[...document.querySelectorAll('main *')].map(each => each.getBoundingClientRect().right))"
    assert await seen.page.evaluate(ends) <= 390
    assert seen.complaints == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_first_page_loads_clean_at_every_width_and_colour(site, watched, width, scheme):
    app, base = site
    await app.context.service.create_job(1, job("nightly", name="Nightly report", tags=["reports"]))
    await app.context.service.create_job(1, job("long-" + "x" * 190, target=WebhookTarget(url=LONG)))
    seen = await watched(width, scheme)
    await seen.page.goto(f"{base}/jobs")
    await expect(seen.page.get_by_text("Nightly report", exact=True)).to_be_visible()
    await expect(seen.page.locator("#live")).to_be_visible()
    assert await overflow(seen.page) == 0
    assert seen.complaints == []
    assert {address.split("/")[2] for address in seen.asked} == {base.removeprefix("http://")}
    background = await seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(248, 246, 242)" if scheme == "light" else "rgb(18, 19, 21)")


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_docs_load_clean(site, watched, width):
    _, base = site
    seen = await watched(width)
    await seen.page.goto(f"{base}/docs")
    await expect(seen.page.get_by_role("heading", name="API", exact=True)).to_be_visible()
    assert await overflow(seen.page) == 0
    assert seen.complaints == []


async def test_what_happens_is_seen_without_reloading(site, watched):
    app, base = site
    seen = await watched()
    await seen.page.goto(f"{base}/jobs")
    await expect(seen.page.get_by_text("No jobs yet")).to_be_visible()
    await expect(seen.page.locator("#live")).to_be_visible()
    made = await app.context.service.create_job(1, job("fresh"))
    app.context.streams._telemetry.emit("job.created", tenant=1, job_id=made.id)
    await expect(seen.page.locator(f"#job-{made.id}")).to_be_visible()
    assert seen.complaints == []


async def test_what_happened_while_the_stream_was_away_is_seen_as_soon_as_it_is_back(site, watched):
    app, base = site
    seen = await watched()
    await seen.page.clock.set_fixed_time(datetime.now(UTC))  # so that no refresh comes by the clock
    await seen.page.route("**/v1/events*", lambda route: route.abort())
    await seen.page.goto(f"{base}/jobs")
    await expect(seen.page.get_by_text("No jobs yet")).to_be_visible()
    made = await app.context.service.create_job(1, job("meanwhile"))
    await seen.page.unroute("**/v1/events*")
    await expect(seen.page.locator(f"#job-{made.id}")).to_be_visible(timeout=30_000)


async def test_the_keys_are_listed_with_the_search_and_a_way_to_close_them(site, watched):
    _, base = site
    seen = await watched()
    await seen.page.goto(f"{base}/jobs")
    await seen.page.keyboard.press("?")
    keys = seen.page.locator("#keys")
    await expect(keys.get_by_role("row", name="/ Search jobs")).to_be_visible()
    await keys.get_by_role("button", name="Close").click()
    await expect(keys).to_be_hidden()


async def test_the_navigation_stands_at_the_same_place_with_and_without_the_quick_search(site, watched):
    _, base = site
    for width in (1280, 390):
        seen = await watched(width)
        places = []
        for path in ("/jobs", "/runs"):
            await seen.page.goto(base + path)
            await expect(seen.page.locator("#live")).to_be_visible()
            places.append((await seen.page.locator("nav.tabs").bounding_box() or {}).get("y"))
        assert places[0] == places[1], width


async def test_times_tick(site, watched):
    app, base = site
    await app.context.service.create_job(1, job("soon", schedule=Schedule(in_=3_600_000)))  # type: ignore[arg-type]
    seen = await watched()
    await seen.page.goto(f"{base}/jobs")
    time = seen.page.locator("td[data-label='Next run'] time")
    await expect(time).to_have_text(re.compile(r"^in 59 min|^in 1 h"))
    first = await time.text_content()
    assert await time.get_attribute("title")
    assert first is not None


async def test_typing_searches(site, watched):
    app, base = site
    for key in ("alpha", "beta"):
        await app.context.service.create_job(1, job(key))
    seen = await watched()
    await seen.page.goto(f"{base}/jobs")
    await seen.page.get_by_role("searchbox").fill("AL")
    await expect(seen.page.get_by_text("beta")).to_have_count(0)
    await expect(seen.page.get_by_text("alpha")).to_be_visible()
    assert seen.page.url.endswith("/jobs?q=AL")
    await seen.page.get_by_role("searchbox").fill("nothing-like-it")
    await expect(seen.page.get_by_text("No jobs found")).to_be_visible()
    await seen.page.get_by_role("link", name="Show all").click()
    await expect(seen.page.get_by_text("beta")).to_be_visible()
    await seen.page.get_by_label("State").select_option("paused")
    await expect(seen.page.get_by_text("No jobs found")).to_be_visible()
    assert seen.complaints == []


async def test_logging_in_and_out(site, watched):
    app, base = site
    key = (await app.context.service.create_key(ApiKeySpec(name="me", scope="read"))).key
    seen = await watched()
    await seen.page.goto(base)
    assert seen.page.url == f"{base}/login"
    await seen.page.get_by_label("API key").fill("otd_wrong")
    await seen.page.get_by_role("button", name="Log in").click()
    await expect(seen.page.get_by_role("alert")).to_contain_text("unknown")
    await seen.page.get_by_label("API key").fill(key)
    await seen.page.get_by_role("button", name="Log in").click()
    await expect(seen.page.get_by_text("No jobs yet")).to_be_visible()
    await expect(seen.page.locator("#live")).to_be_visible()  # the stream comes in with the cookie too
    assert await seen.page.evaluate("document.cookie") == ""
    await seen.page.get_by_role("button", name="Log out").click()
    await expect(seen.page.get_by_label("API key")).to_be_visible()
    await seen.page.goto(base)
    assert seen.page.url == f"{base}/login"


async def test_another_sites_page_can_not_act_here(site, watched):
    """The browser itself is the judge: a page of another origin posts to an open server."""
    app, base = site
    seen = await watched()
    evil = base.replace("127.0.0.1", "localhost")  # another origin, the same server
    await seen.page.goto(f"{evil}/docs/style.css")
    body = '{"seconds": 1, "url": "http://127.0.0.1:1/"}'
    await seen.page.evaluate(
        "([to, body]) => fetch(to, {method: 'POST', body, mode: 'no-cors'}).catch(() => 0)", [f"{base}/timers", body]
    )
    async with asyncio.timeout(10):
        assert (await app.context.service.stats(1)).jobs.get("active", 0) == 0
    assert (await app.context.service.stats(1)).pending == 0


async def test_works_without_scripts_too(site, browser):
    app, base = site
    await app.context.service.create_job(1, job("alpha"))
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(base)  # the quick search of any page
    await page.get_by_role("searchbox").fill("al")
    await page.get_by_role("searchbox").press("Enter")
    await expect(page.get_by_text("alpha")).to_be_visible()
    assert page.url == f"{base}/jobs?q=al"
    await page.get_by_role("searchbox").fill("zz")
    await page.get_by_role("button", name="Search").click()
    await expect(page.get_by_text("No jobs found")).to_be_visible()
    await context.close()


async def test_on_a_phone_the_names_of_both_compared_runs_stay_beside_their_values(site, watched):
    app, base = site
    made = await app.context.service.create_job(1, job("nightly"))
    seen = await watched(390)
    first, second = [await app.context.service.run_job(1, made.id) for _ in range(2)]
    await seen.page.goto(f"{base}/runs/{first.id}/compare?with={second.id}")
    head = seen.page.locator(".compare thead")
    for line in await seen.page.locator(".compare tbody tr").all():
        await line.evaluate("line => line.scrollIntoView({block: 'center'})")
        for run in (first, second):
            await expect(head.get_by_text(run.id)).to_be_in_viewport()
    values = seen.page.locator(".compare tbody tr").first.locator("td[data-label]")
    places = [await each.bounding_box() for each in await values.all()]
    assert len({place["y"] for place in places if place}) == 1, "one beside the other"
    assert await overflow(seen.page) == 0
    assert seen.complaints == []


async def test_what_an_empty_form_is_refused_for_stays_until_it_is_mended(site, watched):
    _, base = site
    seen = await watched()
    await seen.page.goto(f"{base}/jobs/new")
    await seen.page.get_by_text("Delay", exact=True).first.click()
    async with seen.page.expect_navigation(wait_until="networkidle"):
        await seen.page.get_by_role("button", name="Create job").click()
    delay, url = [seen.page.locator(f'.field[data-path="{path}"]:visible') for path in ("schedule.in", "target.url")]
    await expect(delay).to_contain_text("Has no time")
    await expect(seen.page.get_by_label("Delay", exact=True).last).to_be_focused()
    await seen.page.get_by_role("textbox", name="Delay").fill("10s")
    await expect(delay).not_to_contain_text("Has no time")
    await expect(url.locator(".wrong")).to_be_visible()
    assert [each for each in seen.complaints if "422" not in each] == []


async def test_the_slash_searches_jobs_from_every_page(site, watched):
    app, base = site
    await app.context.service.create_job(1, job("nightly", name="Nightly report"))
    seen = await watched()
    for path in ("/runs", "/"):
        await seen.page.goto(f"{base}{path}")
        await seen.page.keyboard.press("/")
        await expect(seen.page.get_by_role("searchbox", name="Search all jobs")).to_be_focused()
    await seen.page.keyboard.type("night")
    await seen.page.keyboard.press("Enter")
    await seen.page.wait_for_url(f"{base}/jobs?q=night")
    await expect(seen.page.get_by_role("link", name="Nightly report")).to_be_visible()
    await seen.page.locator("h1").click()
    await seen.page.keyboard.press("/")
    await expect(seen.page.locator("form[data-filters] input[type=search]")).to_be_focused()
    assert seen.complaints == []


async def test_a_form_says_why_it_checks_nothing_for_who_can_only_read(site, watched):
    app, base = site
    key = (await app.context.service.create_key(ApiKeySpec(name="reader", scope="read"))).key
    seen = await watched()
    await seen.page.goto(f"{base}/login")
    await seen.page.get_by_label("API key").fill(key)
    await seen.page.get_by_role("button", name="Log in").click()
    await seen.page.wait_for_url(f"{base}/")
    await seen.page.goto(f"{base}/jobs/new")
    await expect(seen.page.locator("#check")).to_contain_text("Your key can only read")
    await seen.page.goto(f"{base}/jobs?colour=red")  # where there is neither a quick search nor anything live
    log_out = await seen.page.get_by_role("button", name="Log out").bounding_box()
    assert log_out is not None
    assert log_out["x"] > 1000, "at the right end"


async def test_without_scripts_each_kind_of_target_stands_under_its_name(site, browser):
    _, base = site
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{base}/jobs/new")
    for kind in ("Webhook", "Function", "Kubernetes"):
        legend = await page.locator("legend", has_text=kind).bounding_box()
        assert legend is not None
        assert legend["height"] > 10
    await context.close()
