"""What pages are built of: navigation, addresses under a prefix, forms, messages, live parts, problem pages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from onthedot.api.app import App, create_app
from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import Endpoint
from onthedot.clock import FakeClock
from onthedot.errors import Conflict, Invalid
from onthedot.model.key import ApiKeySpec
from onthedot.telemetry import Telemetry
from onthedot.web import charts, words
from onthedot.web import routes as pages
from onthedot.web.forms import Form, read_form
from onthedot.web.links import is_local
from onthedot.web.navigation import NAVIGATION
from onthedot.web.page import action, asked_of, done, page, show
from onthedot.web.parts import load, load_all
from tests.api.conftest import JOB, client_of, serving

LIVE = {"x-onthedot-live": "1"}
HERE = "localhost:8000"
OURS = ("127.0.0.1",)


@action("/probe")
async def probe(request: Any) -> HttpResponse:
    """An action as pages have them."""
    form = await read_form(request, "note", "pick")
    if form.text("note") == "gone":
        raise Conflict("the job has ended")
    if form.text("note") == "wrong":
        raise Invalid.one("note", "must not be wrong", given="wrong", accepted="anything else")
    return done(request, f"Noted {form.text('note')} and {len(form.many('pick'))} more", form.back("/jobs"))


made = 0


@page("/counted")
async def counted(request: Any) -> HttpResponse:
    """A page that counts how often it was made."""
    global made
    made += 1
    asked_of(request, ())
    await service_of(request).stats(tenant_of(request))
    return await show(request, "destinations.html", destinations=[])


async def site_with(sqlite_url: str, clock: FakeClock, routes: list[Endpoint], **settings: Any) -> AsyncIterator[App]:
    async with serving(sqlite_url, clock, **settings) as app:
        yield create_app(app.context.service, clock=clock, events=Telemetry(), extra_routes=[*pages, *routes])


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async for app in site_with(sqlite_url, fake_clock, [probe, counted]):
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


@pytest.fixture
async def mounted(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[httpx.AsyncClient]:
    """Under a prefix, behind a proxy that is trusted (httpx calls from 127.0.0.1)."""
    given = {"root_path": "/otd", "trusted_proxies": ("127.0.0.0/8",)}
    async for app in site_with(sqlite_url, fake_clock, [probe], **given):
        async with client_of(app) as client:
            yield client


async def test_the_navigation_links_what_there_is_and_marks_where_one_is(site, app):
    text = (await site.get("/jobs")).text
    linked = re.findall(r'<a href="([^"]+)" data-key="(\w)"', text)
    served = {each.path for each in app.operations if each.method == "GET"}
    assert linked == [(entry.path, entry.key) for entry in NAVIGATION if entry.path in served]
    assert re.findall(r'href="([^"]+)"[^>]* aria-current="page"', text) == ["/jobs"]
    assert len({entry.key for entry in NAVIGATION}) == len(NAVIGATION)


async def test_every_address_has_the_prefix_whether_the_proxy_passes_it_on_or_not(mounted):
    created = await mounted.post("/otd/v1/jobs", json=JOB)
    assert created.headers["location"] == f"/otd/v1/jobs/{created.json()['id']}"
    await mounted.post("/v1/jobs", json={**JOB, "key": "b"})
    listed = (await mounted.get("/otd/v1/jobs?limit=1")).json()
    assert listed["next"].startswith("/otd/v1/jobs?")
    assert len((await mounted.get(listed["next"])).json()["items"]) == 1
    for path in ("/otd", "/otd/", "/", "/otd/jobs", "/jobs", "/otd/destinations", "/otd/docs", "/otd/nothing"):
        text = (await mounted.get(path, headers={"accept": "text/html"})).text
        addresses = re.findall(r'(?:href|src|action)="(/[^"]*)"', text)
        assert addresses
        assert {address for address in addresses if not address.startswith("/otd/")} <= {"/otd"}, path
    assert 'data-root="/otd"' in (await mounted.get("/jobs")).text
    assert (await mounted.get("/otdx/jobs")).status_code == 404


async def test_under_a_prefix_one_logs_in_and_comes_back(sqlite_url, fake_clock):
    async with serving(sqlite_url, fake_clock, root_path="/otd") as app, client_of(app) as site:
        key = (await app.context.service.create_key(ApiKeySpec(name="k", scope="write"))).key
        away = await site.get("/otd/jobs?q=a")
        assert away.headers["location"] == "/otd/login?next=%2Fjobs%3Fq%3Da"
        form = (await site.get(away.headers["location"])).text
        assert 'name="next" value="/jobs?q=a"' in form
        good = await site.post("/otd/login", data={"key": key, "next": "/jobs?q=a"})
        assert good.headers["location"] == "/otd/jobs?q=a"
        assert "; Path=/otd; " in good.headers["set-cookie"]
        assert (await site.get("/otd/jobs")).status_code == 200
        elsewhere = await site.post("/otd/login", data={"key": key, "next": "//evil.com/"})
        assert elsewhere.headers["location"] == "/otd/"


@pytest.mark.parametrize(
    ("trusted", "headers", "client", "scheme", "host"),
    [
        ((), {"x-forwarded-for": "9.9.9.9", "x-forwarded-proto": "https"}, "127.0.0.1", "http", HERE),
        (("10.0.0.0/8",), {"x-forwarded-proto": "https", "x-forwarded-host": "a"}, "127.0.0.1", "http", HERE),
        (OURS, {"x-forwarded-proto": "https", "x-forwarded-host": "jobs.test"}, "127.0.0.1", "https", "jobs.test"),
        (OURS, {"x-forwarded-for": "1.1.1.1, 9.9.9.9"}, "9.9.9.9", "http", HERE),
        (("127.0.0.1", "10.0.0.0/8"), {"x-forwarded-for": "1.1.1.1, 9.9.9.9, 10.0.0.7"}, "9.9.9.9", "http", HERE),
        (OURS, {"x-forwarded-for": "junk", "x-forwarded-proto": "ftp"}, "127.0.0.1", "http", HERE),
        (OURS, {"x-forwarded-proto": "http, https", "x-forwarded-host": "x, y"}, "127.0.0.1", "https", "y"),
    ],
)  # fmt: skip
def test_only_a_trusted_proxy_is_believed(trusted, headers, client, scheme, host):
    from onthedot.api.http.behind_proxy import BehindProxy

    scope: dict[str, Any] = {
        "path": "/",
        "scheme": "http",
        "client": ("127.0.0.1", 1234),
        "headers": [
            (b"host", HERE.encode()),
            *((name.encode(), value.encode()) for name, value in headers.items()),
        ],
    }
    BehindProxy("", trusted).rewrite(scope)
    assert scope["client"][0] == client
    assert scope["scheme"] == scheme
    assert [value for name, value in scope["headers"] if name == b"host"] == [host.encode()]


async def test_an_open_server_refuses_what_came_through_a_proxy_even_a_trusted_one(mounted):
    assert (await mounted.get("/otd/v1/jobs", headers={"x-forwarded-for": "127.0.0.1"})).status_code == 403


async def test_an_action_says_once_what_it_did(site):
    answer = await site.post("/probe", data={"note": "<b>it</b>", "pick": ["1", "2"], "back": "/jobs?q=a"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?q=a")
    first = await site.get("/jobs")
    assert '<div class="notice good" role="status">Noted &lt;b&gt;it&lt;/b&gt; and 2 more</div>' in first.text
    assert "Noted" not in (await site.get("/jobs")).text


async def test_an_action_goes_nowhere_else_and_takes_nothing_unknown(site):
    for back in ("https://evil.com", "//evil.com", "/\\evil.com", ""):
        assert (await site.post("/probe", data={"note": "a", "back": back})).headers["location"] == "/jobs"
    assert (await site.post("/probe", data={"note": "a"}, headers={"origin": "http://evil.com"})).status_code == 403
    for data, words_, status in (
        ({"nope": "1"}, "unknown field", 422),
        ({"note": "wrong"}, "must not be wrong", 422),
        ({"note": "gone"}, "The job has ended.", 409),
    ):
        answer = await site.post("/probe", data=data)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert words_ in answer.text
    assert (await site.post("/probe", content=b"\xff" * 10)).status_code == 400
    assert (await site.post("/probe", json={"note": "a"})).status_code == 415
    assert (await site.post("/probe", content=b"note=" + b"x" * 300_000)).status_code == 413


async def test_who_can_only_read_is_told_and_can_not_act(app, site):
    key = (await app.context.service.create_key(ApiKeySpec(name="eyes", scope="read"))).key
    session = await site.post("/login", data={"key": key})
    assert session.status_code == 303
    text = (await site.get("/jobs")).text
    assert "your key can only read" in text
    assert ">eyes</span>" in text
    refused = await site.post("/probe", data={"note": "a"})
    assert refused.status_code == 403
    assert "Not allowed" in refused.text
    assert "has the scope" in refused.text


async def test_a_session_that_ended_while_a_form_was_open_loses_nothing(app, site):
    await app.context.service.create_key(ApiKeySpec(name="k", scope="write"))
    answer = await site.post("/probe", data={"note": "a"}, headers={"cookie": "otd_session=old"})
    assert answer.status_code == 401
    assert "Your session has ended" in answer.text
    assert "what you typed is still there" in answer.text
    assert "Bearer" not in answer.text, "that is for programs"
    away = await site.get("/jobs", headers={"cookie": "otd_session=old"})
    assert away.headers["location"] == "/login?next=%2Fjobs&ended=true"
    assert "Your session has ended" in (await site.get(away.headers["location"])).text


async def test_a_browser_never_gets_json_for_a_page(site):
    browser = {"accept": "text/html,application/xhtml+xml"}
    page_ = await site.get("/no/such/page", headers=browser)
    assert (page_.status_code, page_.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "Not found" in page_.text
    assert "There is no page at this address" in page_.text
    assert "path" not in page_.text.partition("<body>")[2], "that is for programs"
    assert (await site.get("/v1/nothing", headers=browser)).headers["content-type"] == "application/problem+json"
    assert (await site.get("/no/such/page")).headers["content-type"] == "application/problem+json"


async def test_the_live_part_is_made_once_for_all_who_ask_at_the_same_time(site, fake_clock):
    before = made
    answers = await asyncio.gather(*(site.get("/counted", headers=LIVE) for _ in range(20)))
    assert made == before + 1
    assert {answer.status_code for answer in answers} == {200}
    assert "<html" not in answers[0].text
    assert "No destinations" in answers[0].text
    tag = answers[0].headers["etag"]
    assert (await site.get("/counted", headers={**LIVE, "if-none-match": tag})).status_code == 304
    assert made == before + 1
    await fake_clock.advance(1)
    assert (await site.get("/counted", headers={**LIVE, "if-none-match": tag})).status_code == 304
    assert made == before + 2


async def test_pages_are_compressed_for_who_takes_it(site):
    await site.post("/v1/jobs", json=JOB)
    plain = await site.get("/jobs", headers={"accept-encoding": "identity"})
    small = await site.get("/jobs", headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert small.headers["content-encoding"] == "gzip"
    assert small.text == plain.text
    assert int(small.headers["content-length"]) < len(plain.text) / 2


async def test_a_part_that_fails_or_is_slow_leaves_the_rest(fake_clock):
    async def fails() -> None:
        raise Conflict("not now")

    never = asyncio.ensure_future(load_all(fake_clock, bad=fails(), slow=asyncio.Event().wait()))
    while not never.done():
        await fake_clock.advance(1)
    parts = never.result()
    assert parts["bad"].error == "not now"
    assert parts["slow"].error == "it took longer than 1 s"
    assert (await load(fake_clock, asyncio.sleep(0, 7))).value == 7


def test_forms_keep_what_was_typed_and_say_what_is_wrong_at_the_field():
    form = Form({"name": [" a\r\nb "], "on": ["on"]}).refuse(Invalid.one("name", "too long", accepted="1 letter"))
    assert (form.text("name"), form.flag("on"), form.flag("off"), form.given("none")) == ("a\nb", True, False, None)
    assert form.error_at("name") == "too long; accepted: 1 letter"
    assert form.errors_elsewhere("name") == []
    assert form.errors_elsewhere("other") == ["name: too long; accepted: 1 letter"]


@pytest.mark.parametrize(
    ("address", "local"),
    [("/", True), ("/jobs?q=%20", True), ("//a", False), ("/\\a", False), ("http://a", False), ("/a\nb", False)],
)  # fmt: skip
def test_only_paths_of_this_server_are_local(address, local):
    assert is_local(address) is local


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "now"), (3, "in 3 s"), (-59, "59 s ago"), (90, "in 1 min 30 s"), (3600, "in 1 h"), (-93784, "1 d 2 h ago"),
     (864000, "in 10 d")],
)  # fmt: skip
def test_relative_times_are_said_as_the_script_says_them(seconds, said):
    assert words.relative("2026-01-10T00:00:00.000Z", 1_768_003_200_000 - seconds * 1000) == said


def test_charts_are_drawn_from_numbers():
    strip = charts.strip_bars([("DONE", "done")] * 25 + [("FAILED", "failed")])
    assert (len(strip), strip[-1].x + 5, strip[-1].status) == (20, 119, "FAILED")
    assert charts.strip_bars([("DONE", "d")])[0].x == 114, "few runs stand at the right, under the newest of other rows"
    bars = charts.bar_chart([("00:00", 0, ""), ("00:01", 50, "bad"), ("00:02", 100, "")], width=300, height=100)
    assert [(bar.height, bar.tone) for bar in bars.bars] == [(0, ""), (50, "bad"), (100, "")]
    assert bars.rows[1] == ("00:01", "50")
    lines = charts.line_chart(["a", "b", "c", "d"], [("p50", "", [1, 2, None, 2])], width=300, height=100, unit=" ms")
    assert lines.lines[0].paths == ["M0.0 48.5 L100.0 0.0"]  # a nought stands above the axis
    assert lines.lines[0].dots == [(300.0, 0.0)]
    assert lines.rows[2] == ["c", "–"]
    assert charts.bar_chart([]).top == ""
    (alone,) = charts.bar_chart([("00:00", 7, "")], width=300).bars
    assert (alone.x, alone.width) == (143.5, 13), "in the middle, and no wall"
