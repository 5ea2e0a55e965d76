"""Sections 5, 6 and 8: runs, what a webhook receives, functions, commands, and what survives kill -9."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from tests.services.waiting import until_blocking as until

# Real processes on a machine that may be busy; one client of the product for all tests.
pytestmark = [pytest.mark.timeout(180), pytest.mark.keeps_connections]

SOON = {"in": "100ms"}
FAST = {"retry": {"attempts": 3, "backoff": "50ms"}}
RUN = "id job_id key scheduled_for due_at status attempt node started_at finished_at lateness_ms duration_ms outcome"


def test_a_timer_fires_once_and_not_early(product, receiver):
    path, asked = f"/timer/{product.port}", time.time()
    timer = product.http.post("/timers", json={"seconds": 1, "url": receiver.url + path}).json()
    (arrival,) = until(lambda: receiver.arrivals(path), "the timer fires")
    assert (arrival.method, arrival.at >= asked + 1) == ("POST", True)
    assert product.http.get(f"/timers/{timer['id']}").json()["time_left"] == 0


def test_what_a_webhook_receives(product, receiver):
    path, secret = f"/signed/{product.port}", b"k" * 32
    target = {
        "type": "webhook", "url": receiver.url + path, "method": "PUT", "headers": {"X-Mine": "1"}, "body": {"a": 1},
        "secret": "whsec_" + base64.b64encode(secret).decode(),
    }  # fmt: skip
    job = product.job(schedule=SOON, target=target)
    run = product.ended(job)
    (arrival,) = receiver.arrivals(path)
    heard = arrival.headers
    assert (arrival.method, arrival.body, heard["x-mine"]) == ("PUT", b'{"a":1}', "1")
    assert (heard["webhook-id"], heard["x-onthedot-job"]) == (run["id"], str(job["id"]))
    assert (heard["x-onthedot-scheduled-for"], heard["x-onthedot-attempt"]) == (run["scheduled_for"], "1")
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]", heard["traceparent"])
    signed = f"{run['id']}.{heard['webhook-timestamp']}.".encode() + arrival.body
    proof = base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    assert f"v1,{proof}" in heard["webhook-signature"].split()
    assert set(RUN.split()) <= set(run)
    assert {"attempt", "node", "started_at", "finished_at", "outcome", "error"} <= set(run["attempts"][0])
    assert target["secret"] not in product.http.get(f"/v1/jobs/{job['id']}").text


@pytest.mark.parametrize(
    ("codes", "status", "sends"),
    [("204", "DONE", 1), ("500,408,200", "DONE", 3), ("425,429,200", "DONE", 3), ("503", "FAILED", 3),
     ("404", "FAILED", 1), ("302", "FAILED", 1)],
)  # fmt: skip
def test_the_answer_decides(product, receiver, codes, status, sends):
    path = f"/{codes}/{product.port}"
    run = product.ended(product.job(schedule=SOON, target={"type": "webhook", "url": receiver.url + path}, policy=FAST))
    heard = receiver.arrivals(path)
    assert (run["status"], len(heard), len(run["attempts"])) == (status, sends, sends)
    assert {arrival.headers["webhook-id"] for arrival in heard} == {run["id"]}


def test_retry_after_is_honoured_and_slow_answers_time_out(product, receiver):
    path, held = f"/503,200/retry-after/{product.port}", f"/hold/{product.port}"
    hooks = [{"type": "webhook", "url": receiver.url + name} for name in (path, held)]
    waited = product.job(schedule=SOON, target=hooks[0], policy=FAST)
    slow = product.job(schedule=SOON, target=hooks[1], policy={"retry": {"attempts": 1}})
    product.ended(waited)
    first, second = receiver.arrivals(path)
    assert second.at - first.at >= 1
    run = product.ended(slow)
    assert (run["status"], run["outcome"]["kind"]) == ("FAILED", "timeout")
    assert run["duration_ms"] >= 3000


def test_functions_and_commands_run_now_and_keep_their_logs(product):
    logs = {}
    for key, status in (("talk", "DONE"), ("hang", "FAILED"), ("three", "FAILED")):
        job = product.http.get(f"/v1/jobs/by-key/{key}").json()
        made = product.http.post(f"/v1/jobs/{job['id']}/run")
        assert made.status_code == 201, made.text
        run = product.ended(job)
        assert (run["id"], run["status"]) == (made.json()["id"], status)
        logs[key] = product.http.get(f"/v1/runs/{run['id']}/logs").text
        file = product.directory / "logs" / key / f"{run['id']}.log"
        until(partial(_told, file), f"{file} is written")
    assert all(word in logs["talk"] for word in ("out {'word': 7}", "err", "logged"))
    assert (logs["hang"], logs["three"]) == ("began\n", "said\n")
    dead = {item["key"] for item in product.http.get("/v1/dead").json()["items"]}
    assert {"hang", "three"} <= dead


def test_every_slot_is_fired_or_told_through_pause_and_resume(product, receiver):
    hook = {"type": "webhook", "url": f"{receiver.url}/seconds/{product.port}"}
    job = product.job(schedule={"cron": "* * * * * *"}, target=hook)
    until(lambda: len(product.runs(job, "DONE")) >= 2, "two seconds")
    paused = product.http.post(f"/v1/jobs/{job['id']}/pause").json()
    assert (paused["state"], paused["paused"], paused["next_run"]) == ("paused", True, None)
    until(lambda: _passed(paused, 2), "two slots pass")
    assert product.http.post(f"/v1/jobs/{job['id']}/resume").json()["state"] == "active"
    done = len(product.runs(job, "DONE"))
    until(lambda: len(product.runs(job, "DONE")) > done, "it goes on")
    product.http.post(f"/v1/jobs/{job['id']}/pause")
    runs = until(lambda: _complete(product.runs(job)), "each second has its row")
    assert [run["scheduled_for"] for run in runs] == sorted((run["scheduled_for"] for run in runs), reverse=True)
    assert "paused" in {run["reason"] for run in runs if run["status"] == "SKIPPED"}


def _told(file):
    return file.exists() and "execution time" in file.read_text()


def _passed(job, seconds):
    return datetime.now(UTC) > datetime.fromisoformat(job["updated_at"]) + timedelta(seconds=seconds)


def _complete(runs):
    """The runs, once every second between the first and the last of them has exactly one row, and none is going on."""
    slots = sorted(slot for run in runs for slot in _slots(run))
    ended = all(run["status"] in ("DONE", "SKIPPED") for run in runs)
    return runs if ended and slots == list(range(slots[0], slots[-1] + 1)) else None


def _slots(run):
    first = int(datetime.fromisoformat(run["scheduled_for"]).timestamp())
    return range(first, int(datetime.fromisoformat(run["until"] or run["scheduled_for"]).timestamp()) + 1)


def test_cancel_retry_and_backfill(product, receiver):
    held = product.job(
        schedule=SOON,
        target={"type": "webhook", "url": f"{receiver.url}/hold/cancel/{product.port}"},
        policy={"timeout": "30s"},
    )
    (run,) = until(lambda: product.runs(held, "EXECUTING"), "it runs")
    assert product.http.post(f"/v1/runs/{run['id']}/cancel").status_code == 202
    assert product.ended(held)["status"] == "CANCELLED"
    assert product.http.post(f"/v1/runs/{run['id']}/cancel").status_code == 409
    failing = product.job(schedule=SOON, target={"type": "webhook", "url": f"{receiver.url}/400,200/{product.port}/r"})
    failed = product.ended(failing)
    again = product.http.post(f"/v1/runs/{failed['id']}/retry")
    assert (again.status_code, failed["status"]) == (201, "FAILED")
    until(lambda: product.runs(failing, "DONE"), "the retried run is done")
    hourly = product.job(
        schedule={"cron": "0 * * * *"}, target={"type": "webhook", "url": f"{receiver.url}/back/{product.port}"}
    )
    now = datetime.now(UTC)
    span = {"start": (now - timedelta(hours=3)).isoformat(), "end": now.isoformat()}
    made = product.http.post(f"/v1/jobs/{hourly['id']}/backfill", json=span)
    assert (made.status_code, len(made.json()["runs"])) == (201, 3)
    until(lambda: len(product.runs(hourly, "DONE")) == 3, "three hours are filled")
    assert product.http.post(f"/v1/jobs/{hourly['id']}/backfill", json=span).json()["runs"] == []


@pytest.mark.leaves_children  # the product of all tests, started anew
def test_kill_nine_loses_nothing_and_what_came_due_fires_once(product, receiver):
    path = f"/survivor/{product.port}"
    later = product.http.post("/timers", json={"seconds": 3600, "url": receiver.url + path}).json()
    soon = product.http.post("/timers", json={"seconds": 1, "url": receiver.url + path}).json()
    product.node.kill()
    product.start()
    until(lambda: product.runs(soon, "DONE"), "the timer that came due meanwhile fires")
    assert [arrival.headers["x-onthedot-job"] for arrival in receiver.arrivals(path)] == [str(soon["id"])]
    assert 3500 < product.http.get(f"/timers/{later['id']}").json()["time_left"] <= 3600
    assert "unchanged" in product.node.output()
