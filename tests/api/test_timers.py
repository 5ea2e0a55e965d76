"""Timers: the shorthand that a person types first."""

from __future__ import annotations

from tests.api.conftest import both_ways, paths, problem

pytestmark = both_ways

URL = "http://127.0.0.1:5003/"


async def test_a_timer_counts_down_to_zero(api, fake_clock):
    made = await api.post("/timers", json={"hours": 1, "minutes": 1, "seconds": 10, "url": URL})
    assert made.status_code == 201, made.text
    timer = made.json()
    assert set(timer) == {"id", "time_left"}
    assert timer["time_left"] == 3670
    address = f"/timers/{timer['id']}"
    assert made.headers["location"] == address
    await fake_clock.advance(0.5)
    assert (await api.get(address)).json() == {"id": timer["id"], "time_left": 3670}
    await fake_clock.advance(0.5)
    assert (await api.get(address)).json()["time_left"] == 3669
    await fake_clock.advance(4000)
    assert (await api.get(address)).json() == {"id": timer["id"], "time_left": 0}


async def test_a_timer_is_a_job(api):
    timer = (await api.post("/timers", json={"seconds": 5, "url": URL})).json()
    job = (await api.get(f"/v1/jobs/{timer['id']}")).json()
    assert (job["schedule"], job["target"]["url"], job["key"]) == ({"in": "5s"}, URL, None)
    assert job["policy"]["retry"]["attempts"] == 3


async def test_curl_without_a_content_type_works(api):
    body = b'{"seconds": 10, "url": "http://127.0.0.1:5003/"}'
    for media in ("application/x-www-form-urlencoded", "text/plain", "application/json; charset=utf-8"):
        answer = await api.post("/timers", content=body, headers={"content-type": media})
        assert answer.status_code == 201, answer.text


WRONG: list[tuple[dict[str, object], list[str]]] = [
    ({}, ["url"]),
    ({"url": URL}, ["seconds"]),
    ({"seconds": 0, "url": URL}, ["seconds"]),
    ({"seconds": -1, "url": URL}, ["seconds"]),
    ({"seconds": 1.5, "url": URL}, ["seconds"]),
    ({"seconds": "10", "url": URL}, ["seconds"]),
    ({"seconds": True, "url": URL}, ["seconds"]),
    ({"seconds": None, "url": URL}, ["seconds"]),
    ({"hours": -1, "minutes": "x", "seconds": [], "url": URL}, ["hours", "minutes", "seconds"]),
    ({"seconds": 10**12, "url": URL}, ["seconds"]),
    ({"seconds": 10**30, "url": URL}, ["seconds"]),
    ({"hours": 3_000_000_000, "url": URL}, ["hours"]),
    ({"seconds": 1, "url": ""}, ["url"]),
    ({"seconds": 1, "url": "example.com"}, ["url"]),
    ({"seconds": 1, "url": "/hook"}, ["url"]),
    ({"seconds": 1, "url": "ftp://example.com"}, ["url"]),
    ({"seconds": 1, "url": "http://"}, ["url"]),
    ({"seconds": 1, "url": "http://exa mple.com/"}, ["url"]),
    ({"seconds": 1, "url": "http://example.com:99999/"}, ["url"]),
    ({"seconds": 1, "url": "javascript:alert(1)"}, ["url"]),
    ({"seconds": 1, "url": "http://example.com/\x00"}, ["url"]),
    ({"seconds": 1, "url": "http://169.254.169.254/"}, ["url"]),
    ({"seconds": 1, "url": 7}, ["url"]),
    ({"seconds": 1, "url": URL, "days": 1}, ["days"]),
]


async def test_anything_else_is_422_and_named_as_the_timer_names_it(api):
    for body, wrong in WRONG:
        assert paths(problem(await api.post("/timers", json=body), 422)) == wrong, body


async def test_a_timer_is_an_object(api):
    for body in ("[]", "null", '"x"', "1", "true", "[1]"):
        problem(await api.post("/timers", content=body), 422)


async def test_an_unknown_timer_is_404(api):
    for timer_id in ("0", "-1", "abc", "1.5", "99999999999999999999", "404"):
        problem(await api.get(f"/timers/{timer_id}"), 404)


async def test_timers_are_made_and_read_and_nothing_else(api):
    for method in ("PUT", "PATCH", "DELETE"):
        answer = await api.request(method, "/timers/1")
        problem(answer, 405)
        assert answer.headers["allow"] == "GET"


async def test_a_job_that_recurs_is_no_timer(api, new_job):
    recurring, once = await new_job(), await new_job(key=None, schedule={"in": "1h"})
    problem(await api.get(f"/timers/{recurring['id']}"), 404)
    assert (await api.get(f"/timers/{once['id']}")).json() == {"id": once["id"], "time_left": 3600}
