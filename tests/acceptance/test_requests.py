"""Sections 4 and 5: what is accepted, what is refused, and how answers look."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.acceptance.product import HOOK

# Real processes on a machine that may be busy; one client of the product for all tests.
pytestmark = [pytest.mark.timeout(180), pytest.mark.keeps_connections]

INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
URL = HOOK["url"]


def refused(answer, status=422):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("application/problem+json")
    said = answer.json()
    assert {"type", "title", "status", "detail"} <= set(said)
    if status == 422:
        assert said["errors"]
        assert all({"path", "given", "accepted"} <= set(entry) for entry in said["errors"]), said
    return said


def test_timers(product):
    made = product.http.post("/timers", json={"hours": 1, "minutes": 1, "seconds": 1, "url": URL})
    assert (made.status_code, set(made.json()), made.json()["time_left"]) == (201, {"id", "time_left"}, 3661)
    read = product.http.get(f"/timers/{made.json()['id']}")
    assert (read.status_code, read.json()) == (200, {"id": made.json()["id"], "time_left": read.json()["time_left"]})
    refused(product.http.get("/timers/999999999"), 404)


WRONG_TIMERS: list[Any] = [
    {},
    {"seconds": 0, "url": URL},
    {"seconds": -1, "url": URL},
    {"hours": 1, "seconds": -1, "url": URL},
    {"seconds": 1.5, "url": URL},
    {"seconds": "1", "url": URL},
    {"seconds": True, "url": URL},
    {"seconds": None, "url": URL},
    {"seconds": 10**30, "url": URL},
    {"seconds": 1, "url": URL, "more": 1},
    *(
        {"seconds": 1, "url": url}
        for url in (
            "", "x", "/x", "//h/x", "http://", "http:///x", "file:///etc/passwd", "ftp://h/", "http://u:p@h/", 5, None,
            "http://h:99999/", "http://h/\n", "http://h/\0", "http://169.254.169.254/", "http://2852039166/",
            "http://0xa9fea9fe/", "http://0251.0376.0251.0376/", "http://[::ffff:169.254.169.254]/", "http://[fe80::1]/",
        )
    ),
    [], 1, "x", None,
]  # fmt: skip


def test_wrong_timers_are_422(product):
    for body in WRONG_TIMERS:
        refused(product.http.post("/timers", content=json.dumps(body)))


def test_what_can_not_be_read_is_400_and_what_is_huge_413(product):
    for raw in (b"", b"{", b"\xff\xfe{}", b'{"url":"\xff"}', b"[" * 100_000, b"\0", '{"seconds":1}'.encode("utf-16")):
        for path in ("/timers", "/v1/jobs", "/v1/preview", "/v1/jobs/batch"):
            refused(product.http.post(path, content=raw), 400)
    refused(product.http.post("/timers", content=b"1" * 30_000_000), 413)
    refused(product.http.get("/nowhere"), 404)
    assert product.http.get("/healthz").status_code == 200


WRONG_JOBS: list[dict[str, Any]] = [
    {"schedule": {}},
    {"schedule": {"cron": "0 3 * * *", "every": "1m"}},
    {"schedule": {"cron": "0 0 31 2 *"}},
    {"schedule": {"cron": "61 * * * *"}},
    {"schedule": {"cron": "* * * *"}},
    {"schedule": {"every": "0s"}},
    {"schedule": {"every": "-1s"}},
    {"schedule": {"in": 0}},
    {"schedule": {"at": "2020-01-01T00:00:00Z"}},
    {"schedule": {"cron": "0 3 * * *", "tz": "Europe/Berln"}},
    {"schedule": {"cron": "0 3 * * *", "end": "2020-01-01T00:00:00Z"}},
    {"schedule": {"cron": "0 3 * * *", "count": 0}},
    {"schedule": {"rrule": "FREQ=DAILY"}},
    {"target": {"type": "nothing"}},
    {"target": {"type": "script", "source": "1"}},
    {"target": {"type": "function", "function": "os:system"}},
    {"target": {"type": "command", "command": "rm"}},
    {"target": {**HOOK, "url": "file:///x"}},
    {"target": {**HOOK, "headers": {"a": "b\r\nc: d"}}},
    {"policy": {"timeout": 0}},
    {"policy": {"retry": {"attempts": 0}}},
    {"policy": {"overlap": "x"}},
    {"key": "-x"},
    {"key": "x" * 201},
    {"tags": "x"},
    {"paused": 1},
    {"more": 1},
]


def test_wrong_jobs_are_422_and_in_a_batch_stop_no_other(product):
    whole = {"schedule": {"cron": "0 3 * * *"}, "target": HOOK}
    wrong = [{**whole, **part} for part in WRONG_JOBS]
    for body in wrong:
        refused(product.http.post("/v1/jobs", content=json.dumps(body)))
    answer = product.http.post("/v1/jobs/batch", json=[whole, *wrong, {**whole, "key": "batch-last"}])
    first, *middle, last = answer.json()
    assert (answer.status_code, first["status"], first["key"], last["status"]) == (200, 201, None, 201)
    assert last["key"] == "batch-last"
    assert all(item["status"] == 422 and item["errors"] for item in middle)


def test_a_batch_of_five_thousand_lines_is_answered_in_order_and_one_more_is_413(product):
    lines = [json.dumps({"key": f"b-{n}", "schedule": {"every": "1d"}, "target": HOOK}) for n in range(5000)]
    media = {"content-type": "application/x-ndjson"}
    answer = product.http.post("/v1/jobs/batch", content="\n".join(lines), headers=media, timeout=50)
    assert [(item["key"], item["status"]) for item in answer.json()] == [(f"b-{n}", 201) for n in range(5000)]
    refused(product.http.post("/v1/jobs/batch", content="\n".join([*lines, "{}"]), headers=media), 413)


def test_a_job_is_read_changed_replaced_and_deleted(product):
    job = product.job(key="life", name="Life", tags=["a"])
    assert {"id", "version", "state", "next_run", "last_run", "created_at", "updated_at", "stats"} <= set(job)
    assert all(INSTANT.fullmatch(job[name]) for name in ("next_run", "created_at", "updated_at"))
    assert job["policy"]["retry"] == {"attempts": 3, "backoff": "1s", "factor": 2, "max": "5m", "max_age": None}
    address = f"/v1/jobs/{job['id']}"
    tag = product.http.get(address).headers["etag"]
    changed = product.http.patch(address, json={"policy": {"retry": {"attempts": 7}}}, headers={"If-Match": tag})
    assert (changed.json()["policy"]["retry"]["attempts"], changed.json()["name"]) == (7, "Life")
    refused(product.http.patch(address, json={"name": "x"}, headers={"If-Match": tag}), 412)
    refused(product.http.post("/v1/jobs", json={"key": "life", "schedule": {"every": 1}, "target": HOOK}), 409)
    body = {"schedule": {"every": "PT1M30S"}, "target": HOOK}
    again = product.http.put("/v1/jobs/by-key/life", json=body)
    assert (again.status_code, again.json()["id"], again.json()["tags"]) == (200, job["id"], [])
    assert product.http.put("/v1/jobs/by-key/life", json=body).json()["version"] == again.json()["version"]
    refused(product.http.delete(address, headers={"If-Match": tag}), 412)
    assert product.http.delete(address).status_code == 204
    refused(product.http.get(address), 404)
    assert product.http.put("/v1/jobs/by-key/life", json=body).status_code == 201


@pytest.mark.parametrize(
    ("path", "body", "other"),
    [
        ("/v1/jobs", {"schedule": {"every": "1d"}, "target": HOOK}, {"schedule": {"every": "2d"}, "target": HOOK}),
        ("/timers", {"seconds": 900, "url": URL}, {"seconds": 901, "url": URL}),
        (
            "/v1/jobs/batch",
            [{"schedule": {"every": "1d"}, "target": HOOK}],
            [{"schedule": {"every": "1d"}, "target": HOOK}, {"schedule": {"every": "2d"}, "target": HOOK}],
        ),
    ],
)
def test_an_idempotency_key_makes_one_and_is_422_with_another_body(product, path, body, other):
    key = {"Idempotency-Key": f"once{path}"}
    first, again = (product.http.post(path, json=body, headers=key) for _ in range(2))
    ids = [
        item["id"]
        for answer in (first, again)
        for item in ([answer.json()] if path != "/v1/jobs/batch" else answer.json())
    ]
    assert first.status_code == again.status_code
    assert len(set(ids)) == 1
    refused(product.http.post(path, json=other, headers=key))


def test_lists_filter_page_and_stay_stable(product):
    for n in range(7):
        product.job(
            key=f"list-{n}", tags=["list"], schedule={"every": "1h"} if n % 2 else {"at": "2030-01-01T00:00:00Z"}
        )
    every = f"list-{1} list-{3} list-{5}".split()

    def keys(**filters):
        return sorted(item["key"] for item in product.http.get("/v1/jobs", params=filters).json()["items"])

    assert keys(q="LIST-3") == ["list-3"]
    assert keys(q="ist-3") == ["list-3"]
    assert keys(q="st") == [], "two letters count only where something begins"
    assert keys(tag="list", schedule="every") == keys(tag="list", next_before="2029-01-01T00:00:00Z") == every
    assert keys(tag="list", target="function") == keys(tag="list", status="paused") == []
    address, seen = "/v1/jobs?tag=list&limit=3", []
    while address:
        page = product.http.get(address).json()
        seen += [item["key"] for item in page["items"]]
        address = page["next"]
        product.job(tags=["list"])
    assert {f"list-{n}" for n in range(7)} <= set(seen)
    assert len(set(filter(None, seen))) == len(list(filter(None, seen)))
    for wrong in ("limit=501", "limit=0", "cursor=x", "status=x", "next_after=x", "nonsense=1"):
        refused(product.http.get(f"/v1/jobs?{wrong}"))


@pytest.mark.parametrize(
    ("cron", "zone", "after", "fires", "remark"),
    [
        ("0 3 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", ["2026-03-28T02:00", "2026-03-29T01:00"], False),
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", ["2026-03-29T01:00", "2026-03-30T00:30"], True),
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", ["2026-10-25T00:30", "2026-10-26T01:30"], True),
        ("30 * * * *", "America/New_York", "2026-11-01T05:00:00Z", ["2026-11-01T05:30", "2026-11-01T06:30"], True),
        ("0 0 LW * *", "UTC", "2026-01-01T00:00:00Z", ["2026-01-30T00:00", "2026-02-27T00:00"], False),
    ],
)
def test_previews_know_their_zones(product, cron, zone, after, fires, remark):
    body = {"schedule": {"cron": cron, "tz": zone}, "after": after, "count": 2}
    said = product.http.post("/v1/preview", json=body).json()
    assert (said["fires"], bool(said["remarks"])) == ([f"{fire}:00.000Z" for fire in fires], remark)
    assert said["description"]


def test_pages_need_nothing_from_elsewhere(product):
    for path in ("/", "/docs"):
        page = product.http.get(path)
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.search(r'(src|<link[^>]*href)="(https?:)?//', page.text)
    assert product.http.get("/openapi.json").json()["openapi"].startswith("3.")
    assert product.http.get("/readyz").status_code == 200
    assert "onthedot_runs_fired_total" in product.http.get("/metrics").text
    assert "alive" in {node["state"] for node in product.http.get("/v1/nodes").json()["items"]}
    assert "jobs" in product.http.get("/v1/stats").json()


PAGES = (
    *("/", "/jobs", "/jobs/new", "/jobs/{job_id}", "/jobs/{job_id}/edit", "/runs", "/runs/{run_id}", "/dead"),
    *("/upcoming", "/nodes", "/destinations", "/settings", "/login", "/docs", "/openapi.json"),
)


def test_an_unknown_query_parameter_is_422_everywhere(product):
    job = product.job()
    run = product.http.post(f"/v1/jobs/{job['id']}/run").json()
    described = product.http.get("/openapi.json").json()["paths"]
    routes = [(method, path) for path, methods in described.items() for method in methods]
    real = {"job_id": job["id"], "timer_id": job["id"], "run_id": run["id"]}
    for method, path in [*routes, *(("get", page) for page in PAGES)]:
        address = re.sub(r"\{(\w+)\}", lambda name: str(real.get(name[1], "1")), path)
        answer = product.http.request(method, address, params={"nonsense": "1"})
        assert 400 <= answer.status_code < 500, f"{method} {address}: {answer.status_code}"
        if path in PAGES:
            assert answer.status_code == 422, f"{address}: {answer.status_code}"
