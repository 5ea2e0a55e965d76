"""Sections 2, 3, 7 and 8: the command line, settings, keys, jobs files."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.acceptance.product import HOOK, Product, printed, run

# Real processes on a machine that may be busy; one client of the product for all tests.
pytestmark = [pytest.mark.timeout(180), pytest.mark.keeps_connections]

WEBHOOK = f'{{"type": "webhook", "url": "{HOOK["url"]}"}}'


def test_answers_as_json_and_codes_of_leaving(product):
    assert printed(product.command("preview", "0 3 * * *", "--tz", "Europe/Berlin", "-n", "2", "--json"))["fires"]
    assert printed(product.command("timer", "10m", HOOK["url"], "--json"))["time_left"] == 600
    assert {"talk", "short"} <= {job["key"] for job in printed(product.command("jobs", "list", "--json"))}
    assert product.command("jobs", "show", "nobody").returncode == 1
    assert product.command("jobs", "list", "--nonsense").returncode == 2
    assert run(product.directory, "nodes", "--url", "http://127.0.0.1:9").returncode == 1


def test_a_file_applied_twice_changes_nothing_and_a_bad_one_names_line_and_field(product):
    folder = product.directory
    (folder / "all.yaml").write_text(
        "jobs:\n- {identifier: y1, path: mine, function_name: talk, periodicity: 1d}\n"
        f"- {{key: y2, schedule: {{every: 1d}}, target: {WEBHOOK}}}\n"
    )
    apply = ("jobs", "apply", "all.yaml", "--json")
    assert printed(product.command(*apply))["created"] == ["y1", "y2"]
    assert printed(product.command(*apply))["unchanged"] == ["y1", "y2"]
    (folder / "all.yaml").write_text("jobs:\n- {identifier: y1, path: mine, function_name: talk, periodicity: 2d}\n")
    assert printed(product.command(*apply, "--prune")) == {
        "created": [], "updated": ["y1"], "unchanged": [], "removed": ["y2"],
    }  # fmt: skip
    (folder / "bad.toml").write_text(
        '[[jobs]]\nkey = "good"\nschedule = {every = "1d"}\ntarget = {type = "webhook", url = "http://127.0.0.1:9/"}\n'
        '[[jobs]]\nidentifier = "bad"\npath = "mine"\nfunction_name = "talk"\nperiodicity = "often"\n'
    )
    bad = product.command("jobs", "apply", "bad.toml")
    assert bad.returncode == 1
    assert "bad.toml:9" in bad.stderr
    assert "periodicity" in bad.stderr
    assert product.command("jobs", "show", "good").returncode == 1


@pytest.mark.parametrize(
    ("env", "arguments", "said"),
    [
        ({"ONTHEDOT_STOER": "x"}, (), "ONTHEDOT_STORE"),
        ({"GRANULARITY": "fortnight"}, (), "minute"),
        ({}, ("--host", "0.0.0.0"), "keys create"),
        ({"SUPPORTED_EXTENSIONS": "yaml"}, ("--jobs", "jobs.json"), "SUPPORTED_EXTENSIONS"),
    ],
)
def test_what_will_not_start_says_why(tmp_path, env, arguments, said):
    (tmp_path / "jobs.json").write_text('{"jobs": []}')
    refused = run(tmp_path, "serve", "--port", "0", *arguments, **env)
    assert refused.returncode in (1, 2)
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr


def test_keys_close_the_door_and_sqlite_is_for_one_process(tmp_path):
    store = "sqlite:///closed.db"
    make = ("keys", "create", "--name", "n", "--store", store, "--json", "--scope")
    keys = {scope: printed(run(tmp_path, *make, scope))["key"] for scope in ("read", "admin")}
    closed = Product(tmp_path, store)
    try:
        second = run(tmp_path, "serve", "--port", "0", "--store", store)
        assert (second.returncode, "in use" in second.stderr) == (1, True)
        job = {"schedule": {"every": "1d"}, "target": {"type": "webhook", "url": "https://example.com/never"}}

        def status(method, path, scope=None, **more) -> int:
            headers = {"authorization": f"Bearer {keys.get(scope, scope)}"} if scope else {}
            return httpx.request(method, f"{closed.http.base_url}/{path}", headers=headers, **more).status_code

        assert status("GET", "v1/jobs") == status("GET", "v1/jobs", "otd_wrong") == status("POST", "timers") == 401
        assert status("GET", "v1/jobs", "read") == status("GET", "healthz") == 200
        assert status("POST", "v1/jobs", "read", json=job) == status("GET", "v1/keys", "read") == 403
        assert status("POST", "v1/jobs", "admin", json={**job, "target": HOOK}) == 422, "private, and there is a key"
        assert status("POST", "v1/jobs", "admin", json=job) == 201
        listed = httpx.get(f"{closed.http.base_url}/v1/keys", headers={"authorization": f"Bearer {keys['admin']}"})
        assert all(key not in listed.text for key in keys.values())
        assert all(key.encode() not in (tmp_path / "closed.db").read_bytes() for key in keys.values())
        reader = next(item["id"] for item in listed.json()["items"] if item["scope"] == "read")
        assert status("DELETE", f"v1/keys/{reader}", "admin") == 204
        assert status("GET", "v1/jobs", "read") == 401
    finally:
        closed.close()
    assert json.loads(run(tmp_path, "keys", "list", "--store", store, "--json").stdout)
