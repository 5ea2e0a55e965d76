"""/ping/{token}: reports of jobs that run elsewhere, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx

from onthedot.model.ping import job_of_token, ping_token
from onthedot.service.ping_rates import BURST

JOB = {"key": "backup", "schedule": {"cron": "0 3 * * *"}, "target": {"type": "checkin", "grace": "10m"}}


async def made(api: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    answer = await api.post("/v1/jobs", json={**JOB, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_the_url_is_told_with_the_job(api):
    job = await made(api)
    assert job["ping_url"] == f"http://localhost:8000/ping/{job['ping_token']}"
    assert job["last_ping"] is None
    for path in (f"/v1/jobs/{job['id']}", "/v1/jobs/by-key/backup"):
        assert (await api.get(path)).json()["ping_url"] == job["ping_url"]
    (listed,) = (await api.get("/v1/jobs")).json()["items"]
    assert listed["ping_token"] == job["ping_token"]
    patched = await api.patch(f"/v1/jobs/{job['id']}", json={"target": {"grace": "20m"}})
    assert (patched.json()["ping_url"], patched.json()["target"]) == (
        job["ping_url"],
        {"type": "checkin", "grace": "20m"},
    )


async def test_jobs_that_run_here_have_none(api, new_job):
    assert "ping_url" not in await new_job()


async def test_every_form_of_a_report_is_taken(api):
    job = await made(api)
    path = f"/ping/{job['ping_token']}"
    for method in ("GET", "POST", "HEAD"):
        answer = await api.request(method, path)
        assert (answer.status_code, answer.text) == (200, "" if method == "HEAD" else "OK\n")
    for signal, known in (("start", "start"), ("fail", "fail"), ("log", "log"), ("0", "success"), ("255", "fail")):
        answer = await api.post(f"{path}/{signal}?rid=r1", content=b"said \xff", headers={"content-type": "image/png"})
        assert answer.status_code == 200, answer.text
        last = (await api.get(f"/v1/jobs/{job['id']}")).json()["last_ping"]
        assert (last["signal"], last["rid"], last["message"]) == (known, "r1", "said \ufffd")
        assert last.get("exit_status") == (int(signal) if signal.isdecimal() else None)


async def test_what_is_unknown_is_404(api):
    token = (await made(api))["ping_token"]
    other = ("A" if token[-1] != "A" else "B").join([token[:-1], ""])
    for wrong in (other, token[:-2], "x", "é", "0" * 32, token + "A"):
        for signal in ("", "/start", "/256"):
            answer = await api.get(f"/ping/{wrong}{signal}")
            assert answer.status_code == 404, wrong
            assert answer.json()["detail"] == "no job reports at this URL"
    for signal in ("256", "finish", "-1", "1.0", "0000", "²"):
        assert (await api.get(f"/ping/{token}/{signal}")).status_code == 404
    assert (await api.get(f"/ping/{token}?create=1")).status_code == 422
    assert (await api.get("/v1/jobs/by-key/backup")).json()["last_ping"] is None


async def test_a_deleted_job_reports_no_more(api):
    job = await made(api)
    assert (await api.delete(f"/v1/jobs/{job['id']}")).status_code == 204
    assert (await api.get(f"/ping/{job['ping_token']}")).status_code == 404


async def test_a_long_report_is_cut_and_a_huge_one_refused(api):
    path = f"/ping/{(await made(api))['ping_token']}"
    assert (await api.post(path, content=b"x" * 300_000)).status_code == 200
    assert (await api.post(path, content=b"x" * 1_100_000)).status_code == 413


async def test_too_many_reports_are_429(api):
    path = f"/ping/{(await made(api))['ping_token']}"
    for _ in range(BURST):
        assert (await api.get(path)).status_code == 200
    answer = await api.get(path)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert (await api.get(f"/ping/{(await made(api, key='other'))['ping_token']}")).status_code == 200


async def test_it_needs_no_key_and_is_masked_for_those_who_only_read(app, keyed):
    job = await made(keyed["write"])
    assert (await keyed["nobody"].get(f"/ping/{job['ping_token']}")).status_code == 200
    for path in (f"/v1/jobs/{job['id']}", "/v1/jobs"):
        found = (await keyed["read"].get(path)).json()
        shown = found["items"][0] if "items" in found else found
        assert shown["ping_token"] == "••••••"
        assert job["ping_token"] not in str(shown)
        assert shown["last_ping"]["signal"] == "success"
    page = await keyed["read"].get(f"/jobs/{job['id']}")
    assert (page.status_code, job["ping_token"] in page.text) == (200, False)


async def test_the_page_of_the_job_shows_how_to_report(api):
    job = await made(api)
    await api.post(f"/ping/{job['ping_token']}/fail", content=b"disk full")
    page = (await api.get(f"/jobs/{job['id']}")).text
    assert f"0 3 * * * /usr/local/bin/job &amp;&amp; curl -fsS -m 10 --retry 5 -o /dev/null {job['ping_url']}" in page
    assert "disk full" in page


async def test_the_grace_time_is_checked(api):
    for grace in ("0s", "400d", "soon", -1):
        answer = await api.post("/v1/jobs", json={**JOB, "target": {"type": "checkin", "grace": grace}})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["path"] == "target.grace"


def test_a_token_is_of_one_job_and_one_installation():
    token = ping_token("secret", 7)
    assert (job_of_token("secret", token), job_of_token("other", token)) == (7, None)
    assert ping_token("secret", 8) != token
    assert len({ping_token("secret", job_id)[:12] for job_id in range(-3, 3)}) == 6
