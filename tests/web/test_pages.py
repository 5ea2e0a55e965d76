"""The pages as HTML: what they say, and that they escape what they are given."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator

import httpx
import pytest

from onthedot.api.app import App
from onthedot.api.auth import COOKIE
from onthedot.clock import FakeClock
from onthedot.errors import StoreUnavailable
from onthedot.model.destination import DestinationLoad
from onthedot.model.key import ApiKeySpec
from onthedot.model.node import NodeLoad
from onthedot.telemetry import Event, telemetry
from onthedot.telemetry.log import level_of
from onthedot.web import words
from onthedot.web.static import media_by_name, static_url
from tests.api.conftest import JOB, client_of, serving
from tests.api.executor import FAILED, OK, TinyNode


@pytest.fixture
async def app(sqlite_url: str, fake_clock: FakeClock) -> AsyncIterator[App]:
    async with serving(sqlite_url, fake_clock) as app:
        yield app


@pytest.fixture
async def site(app: App) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


async def test_an_empty_server_shows_how_to_make_the_first_timer(site):
    page = await site.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "No jobs yet" in page.text
    assert "curl http://localhost:8000/timers" in page.text
    assert "No nodes are running" in page.text


async def test_destinations_are_shown_and_what_they_are_called_is_text(site, app):
    assert "No destinations" in (await site.get("/destinations")).text
    assert 'href="/destinations"' in (await site.get("/")).text
    store = app.context.service.store
    node = TinyNode(store)
    await node.register()
    told = [
        DestinationLoad(
            requires="webhook@http://<b>",
            breaker="open",
            failures=12,
            since=1_700_000_000_000,
            next_probe=1_700_000_010_000,
        )
    ]
    await store.beat(node.info.id, NodeLoad(destinations=told))
    page = (await site.get("/destinations")).text
    assert "http://&lt;b&gt;" in page
    assert "open" in page
    assert "2023-11-14T22:13:20.000Z" in page
    assert re.search(r'next probe <time datetime="2023-11-14T22:13:30.000Z"', page)


async def test_each_destination_has_a_page_with_its_nodes_jobs_and_failures(site, app, fake_clock):
    node = TinyNode(app.context.service.store)
    await node.register()
    place = "http://127.0.0.1:5003"
    await site.post("/v1/jobs", json={**JOB, "schedule": {"every": "1m"}, "policy": {"retry": {"attempts": 1}}})
    idle = (await site.get("/destinations/http%3A%2F%2F127.0.0.1%3A5003")).text
    for expected in ("It was not called within the last minute", "No node has called it", "None of the last 20 runs"):
        assert expected in idle
    await fake_clock.advance(60)
    (failed,) = await node.work(FAILED)
    told = DestinationLoad(
        requires=f"webhook@{place}", in_flight=3, failures=4, per_second=12.5, calls=9, p50=20, p99=90
    )
    await app.context.service.store.beat(node.info.id, NodeLoad(destinations=[told]))
    assert 'href="/destinations/http%3A%2F%2F127.0.0.1%3A5003"' in (await site.get("/destinations")).text
    for address in ("/destinations/http%3A%2F%2F127.0.0.1%3A5003", f"/destinations/{place}"):
        page = re.sub(r"\s+", " ", (await site.get(address)).text)
        for expected in (
            f"<title>{place}",
            "Its last 4 calls failed. After 10 in a row its runs wait",
            "12.5/s",
            "90 ms",
            ">tiny</a>",
            "410 Gone",
            f'href="/runs/{failed}"',
            f'href="/jobs?q={place.replace(":", "%3A").replace("/", "%2F")}"',
            'href="/dead?cause=',
        ):
            assert expected in page, expected
    gone = await site.get("/destinations/nobody", headers={"accept": "text/html"})
    assert (gone.status_code, "no job calls it" in gone.text) == (404, True)
    assert (await site.get(f"/v1/destinations/{place}")).json()["jobs"][0]["key"] == "nightly"


async def test_open_is_said_until_a_key_is_made(site, app):
    assert "anyone on this machine" in (await site.get("/")).text
    key = (await app.context.service.create_key(ApiKeySpec(name="k", scope="read"))).key
    closed = await site.get("/", headers={"authorization": f"Bearer {key}"})
    assert "anyone on this machine" not in closed.text
    assert "Log out" in closed.text


async def test_a_job_is_shown_with_all_that_a_person_wants_to_know(site, app, fake_clock):
    node = TinyNode(app.context.service.store)
    await node.register()
    made = {**JOB, "name": "Nightly report", "tags": ["reports"], "schedule": {"every": "1m"}}
    await site.post("/v1/jobs", json={**made, "policy": {"retry": {"attempts": 1}}})
    for outcome in (OK, FAILED):
        await fake_clock.advance(60)
        await node.work(outcome)
    text = re.sub(r"\s+", " ", (await site.get("/jobs")).text)
    for expected in (
        "Nightly report",
        "<code>nightly</code>",
        'href="/jobs?tag=reports">reports</a>',
        "Every minute",
        "every 1m",
        "http://127.0.0.1:5003/",
        "POST",
        '<time datetime="2023-11-14T22:16:20.000Z" title="2023-11-14 22:16:20 UTC" data-due>in 1 min</time>',
        'class="badge FAILED" title="',
        "2 ms late",
        "12 ms",
        "Last 2 runs: 1 failed, 1 done",
    ):
        assert expected in text, expected
    text = re.sub(r"\s+", " ", (await site.get("/")).text)
    assert "<b>tiny</b> alive" in text
    assert '<a class="total bad" href="/jobs?failing=true"><b>1</b><span>job is failing</span></a>' in text


async def test_whatever_a_job_is_called_it_is_text(site):
    evil = "<script>alert(1)</script>"
    url = "http://127.0.0.1/?<script>alert(1)</script>"
    made = await site.post("/v1/jobs", json={**JOB, "name": evil, "tags": [evil, '"><img src=x>']})
    assert made.status_code == 201, made.text
    await site.post("/v1/jobs", json={**JOB, "key": "b", "target": {"type": "webhook", "url": url}})
    for address in ("/jobs", f"/jobs?q={evil}", f"/jobs?tag={evil}", f"/jobs?x={evil}", f"/{evil}"):
        text = (await site.get(address, headers={"accept": "text/html"})).text
        assert "<script>alert" not in text
        assert "<img" not in text


async def test_a_host_that_is_no_host_can_not_get_into_the_page(site):
    answer = await site.get("/", headers={"host": 'localhost"><script>'})
    assert "<script>" not in answer.text


async def test_search_and_state_filter_the_list(site):
    for key, paused in (("alpha", False), ("beta", True)):
        await site.post("/v1/jobs", json={**JOB, "key": key, "paused": paused})
    found = (await site.get("/jobs?q=AL&status=")).text
    assert ("alpha" in found, "beta" in found) == (True, False)
    found = (await site.get("/jobs?status=paused")).text
    assert (">alpha<" in found, ">beta<" in found) == (False, True)
    assert '<option value="paused" selected>' in found
    nothing = (await site.get("/jobs?q=zzz")).text
    assert "No jobs found" in nothing
    assert 'value="zzz"' in nothing


async def test_more_than_a_page_has_a_link_to_the_rest(site):
    jobs = [{**JOB, "key": f"job-{number:03}"} for number in range(101)]
    await site.post("/v1/jobs/batch", json=jobs)
    first = (await site.get("/jobs?q=job")).text
    assert first.count('class="title"') == 100
    (link,) = re.findall(r'href="([^"]+)" rel="next"', first)
    rest = (await site.get(link.replace("&amp;", "&"))).text
    assert rest.count('class="title"') == 1
    assert 'href="/jobs?q=job">First jobs</a>' in rest


@pytest.mark.parametrize("query", ["limit=1", "status=junk", "cursor=junk", "q=%ff", "q=" + "x" * 300, "a=b"])
async def test_a_slip_in_the_address_is_said_on_a_page(site, query):
    answer = await site.get(f"/jobs?{query}")
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert f"<code>{query.partition('=')[0]}</code>" in answer.text or "percent-encoded UTF-8" in answer.text
    assert 'href="/jobs">Show the page without' in answer.text


async def test_no_page_has_anything_inline_or_foreign(site):
    await site.post("/v1/jobs", json=JOB)
    for address in ("/", "/jobs", "/destinations", "/docs", "/no-such-page"):
        text = (await site.get(address)).text
        assert "style=" not in text
        assert not re.search(r"\son\w+=", text)
        assert not re.findall(r"<script(?![^>]*src=)", text)
        for link in re.findall(r'(?:src|href)="([^"]+)"', text):
            assert link.startswith(("/", "#", "data:")), link


async def test_static_files_are_kept_for_ever_under_an_address_that_changes_with_them(site):
    assert {"style.css", "live.js", "dot.svg"} <= set(media_by_name())
    for name, media in media_by_name().items():
        address = static_url(name)
        answer = await site.get(address)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(media)
        assert "immutable" in answer.headers["cache-control"]
        assert re.fullmatch(rf"/static/{name}\?[0-9a-f]{{12}}", address)


async def test_logging_in_and_out(app, site):
    assert (await site.get("/login")).headers["location"] == "/"  # open: nothing to log in to
    made = await app.context.service.create_key(ApiKeySpec(name="k", scope="read"))
    away = await site.get("/")
    assert (away.status_code, away.headers["location"]) == (303, "/login")
    assert 'type="password"' in (await site.get("/login")).text

    wrong = await site.post("/login", data={"key": "otd_wrong"})
    assert wrong.status_code == 401
    assert "unknown, expired or revoked" in wrong.text
    assert "set-cookie" not in wrong.headers
    for nonsense in ("", "x", "otd_; Path=/", "otd_\r\nset-cookie: a=b", "<script>"):
        answer = await site.post("/login", data={"key": nonsense})
        assert answer.status_code == 401
        assert "<script>" not in answer.text

    good = await site.post("/login", data={"key": f" {made.key} "})
    assert (good.status_code, good.headers["location"]) == (303, "/")
    said = re.fullmatch(
        rf"{COOKIE}=([\w-]{{43}}); Max-Age=604800; Path=/; HttpOnly; SameSite=Strict", good.headers["set-cookie"]
    )
    assert said is not None
    assert (await site.get("/")).status_code == 200  # the client keeps the cookie
    out = await site.post("/logout")
    assert (out.status_code, out.headers["location"]) == (303, "/login")
    assert (await site.get("/")).status_code == 303
    kept = {"cookie": f"{COOKIE}={said[1]}"}
    assert (await site.get("/", headers=kept)).status_code == 303, "who kept the cookie has nothing"


async def test_the_session_is_not_the_key_and_ends_with_it(app, site):
    service = app.context.service
    made = await service.create_key(ApiKeySpec(name="k", scope="read"))
    first = (await site.post("/login", data={"key": made.key})).headers["set-cookie"]
    assert made.key not in first
    token = first.partition("=")[2].partition(";")[0]
    rows = await service.store.driver.read(lambda tx: tx.sql("SELECT * FROM sessions"))
    assert token not in " ".join(str(value) for row in rows for value in tuple(row)), "only its hash is kept"
    site.cookies.clear()
    assert (await site.get("/", headers={"cookie": f"{COOKIE}={made.key}"})).status_code == 303, "the key is no cookie"
    assert (await site.get("/v1/jobs", headers={"authorization": f"Bearer {token}"})).status_code == 401
    assert (await site.get("/", headers={"cookie": f"{COOKIE}={token}"})).status_code == 200
    await service.revoke_key(1, made.info.id)
    assert (await site.get("/", headers={"cookie": f"{COOKIE}={token}"})).status_code == 303


async def test_logins_are_told_to_the_operator_without_the_key(app, site):
    heard: list[Event] = []
    made = await app.context.service.create_key(ApiKeySpec(name="k", scope="read"))
    stop = telemetry.subscribe(heard.append)
    try:
        await site.post("/login", data={"key": "otd_wrong-and-long-enough-to-see"})
        await site.post("/login", data={"key": "hunter2"})
        await site.post("/login", data={"key": made.key})
        await site.post("/logout")
        await site.post("/logout")
    finally:
        stop()
    told = [(event.name, event.fields) for event in heard if event.name.startswith("log")]
    address = "127.0.0.1"
    assert told == [
        ("login.refused", {"address": address, "key": "otd_wron…"}),
        ("login.refused", {"address": address, "key": None}),
        ("login.done", {"address": address, "key_id": made.info.id}),
        ("logout", {"address": address}),
    ]
    assert not any(level_of(event) == "debug" for event in heard if event.name.startswith("log"))


async def test_a_login_form_on_another_site_is_refused(app, site):
    made = await app.context.service.create_key(ApiKeySpec(name="k", scope="read"))
    elsewhere = {"origin": "http://evil.com"}
    assert (await site.post("/login", data={"key": made.key}, headers=elsewhere)).status_code == 403
    assert (await site.post("/logout", headers=elsewhere)).status_code == 403


async def test_a_login_that_is_too_large_is_413(app, site):
    await app.context.service.create_key(ApiKeySpec(name="k", scope="read"))
    assert (await site.post("/login", content=b"key=" + b"x" * 5000)).status_code == 413


async def test_for_a_page_with_tls_the_cookie_is_secure(app, site):
    made = await app.context.service.create_key(ApiKeySpec(name="k", scope="read"))
    assert "Secure" not in (await site.post("/login", data={"key": made.key})).headers["set-cookie"]
    own = {"origin": "https://localhost:8000"}
    good = await site.post("/login", data={"key": made.key}, headers=own)
    assert good.headers["set-cookie"].endswith("; Secure")
    assert "--url https://localhost:8000 " in (await site.get("/login", headers=own)).text
    anybody = {"x-forwarded-proto": "https"}
    assert "Secure" not in (await site.post("/login", data={"key": made.key}, headers=anybody)).headers["set-cookie"]


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (None, ""), (0, "0 ms"), (1.4, "1.4 ms"), (12.6, "13 ms"), (999, "999 ms"), (1500, "1.5 s"), (59_000, "59 s"),
        (90_000, "1.5 min"), (3_600_000, "1 h"), (100 * 3_600_000, "100 h"),
    ],
)  # fmt: skip
def test_durations_are_said_as_people_say_them(ms, said):
    assert words.how_long(ms) == said


@pytest.mark.parametrize(
    ("path", "broken"),
    [
        ("http://127.0.0.1:5003/a/b?c=1&d", "http://|127.0.0.1:|5003/|a/|b?|c=1&|d"),
        ("periodic_functions.functions:greet", "periodic_functions.functions:|greet"),
        ("$ disk-space", "$ disk-space"),
        ("", ""),
    ],
)
def test_a_line_breaks_where_an_address_has_its_joints(path, broken):
    assert "|".join(words.pieces(path)) == broken


async def test_jobs_of_every_kind_have_words(site, app):
    for number, spec in enumerate(
        (
            {"schedule": {"in": "1h"}, "target": {"type": "command", "command": "backup"}},
            {"schedule": {"at": "2030-01-01T00:00:00Z"}, "target": {"type": "function", "function": "json:dumps"}},
            {"schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin"}, "target": JOB["target"]},
        )
    ):
        assert (await site.post("/v1/jobs", json={"key": f"k{number}", **spec})).status_code == 201
    text = re.sub(r"</?span[^>]*>", "", (await site.get("/jobs")).text)
    for expected in ("in 1h", "backup", "json:dumps", "0 3 * * * · Europe/Berlin"):
        assert expected in text


async def test_a_database_that_is_away_is_said_in_a_page(site, app, monkeypatch):
    async def gone(*_: object, **__: object) -> None:
        raise StoreUnavailable("the database can't be reached")

    monkeypatch.setattr(app.context.service.store.driver, "read", gone)
    page = await site.get("/")
    assert page.status_code == 503
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["retry-after"] == "1"
    assert "The database can't be reached" in html.unescape(page.text)
    assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in page.text
    assert (await site.get("/v1/jobs")).headers["content-type"] == "application/problem+json"
