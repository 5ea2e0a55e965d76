"""`jobs edit` changes the target with the flags of `jobs add`; who is asked instead of the server is told as such."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

RECEIVER = "http://127.0.0.1:9/hook"


def add(online, key, *more):
    made = online("jobs", "add", "--in", "9h", "--url", RECEIVER, "--key", key, *more)
    assert made.code == 0, made.err


def target(online, key):
    return online("jobs", "show", key, "--json").json["target"]


@pytest.fixture
def receiver():
    """A receiver of webhooks: what it was sent, and where it is."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append((self.path, self.headers.get("authorization")))
            self.send_response(200)
            self.send_header("content-type", "text/plain; charset=utf-8")
            self.end_headers()
            self.wfile.write(b"thank you")

        do_POST = do_PATCH = do_PUT = do_GET  # noqa: N815

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield seen, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_url_of_a_webhook(online, key, receiver):
    seen, url = receiver
    add(online, key, "--method", "PUT", "-H", "X-Team: a")
    done = online("jobs", "edit", key, "--target-url", url)
    assert done.code == 0, done.err
    assert f"Its target is PUT {url}" in done.out
    changed = target(online, key)
    assert (changed["url"], changed["method"], changed["headers"]) == (url, "PUT", {"X-Team": "a"})
    assert seen == []


def test_url_is_the_servers_as_in_other_commands(cli, online, node, key, receiver):
    _, url = receiver
    add(online, key)
    assert cli("jobs", "edit", key, "--method", "PUT", "--url", node.url).code == 0
    assert target(online, key)["method"] == "PUT"
    told = cli("jobs", "edit", key, "--method", "GET", "--url", url)
    assert told.code == 1
    assert "did not answer like an On the Dot server" in told.err
    assert "jobs edit JOB --target-url" in " ".join(told.err.split())
    assert (target(online, key)["method"], target(online, key)["url"]) == ("PUT", RECEIVER)


def test_method_headers_and_body(online, key):
    add(online, key, "-H", "X-Team: a", "--body", '{"a": 1, "b": {"c": 2, "d": 3}}')
    sets = ("--method", "put", "-H", "X-Day: 1", "--body", '{"b": {"c": 4}}', "--set", "target.certificate=null")
    assert online("jobs", "edit", key, *sets).code == 0
    changed = target(online, key)
    assert (changed["url"], changed["method"], changed["body"]) == (RECEIVER, "PUT", {"b": {"c": 4}})
    assert changed["headers"] == {"X-Team": "a", "X-Day": "1"}


def test_a_null_in_a_body_is_refused_and_not_lost(online, key):
    add(online, key, "--body", '{"a": 1}')
    told = online("jobs", "edit", key, "--body", '{"b": null}')
    assert told.code == 2
    assert "--body can't set a field to null" in told.err
    assert target(online, key)["body"] == {"a": 1}


def test_another_kind_replaces_the_target(online, key):
    add(online, key)
    assert online("jobs", "edit", key, "--command", "say").code == 0
    changed = target(online, key)
    assert (changed["type"], changed["command"], "url" in changed) == ("command", "say", False)
    told = online("jobs", "edit", key, "--method", "PUT")
    assert told.code == 2
    assert "--method: not an option of a target of the type command" in told.err


def test_the_same_field_twice_is_refused(online, key):
    add(online, key)
    told = online(
        "jobs", "edit", key, "--target-url", "http://127.0.0.1:9/a", "--set", "target.url=http://127.0.0.1:9/b"
    )
    assert told.code == 2
    assert "target.url" in told.err


def test_with_a_file_url_and_key_are_the_servers(cli, online, node, key, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(f"{{key: {key}, schedule: {{every: 1h}}, target: {{type: command, command: say}}}}")
    told = cli("jobs", "add", path, "--url", node.url, "--key", "otd_nobodys")
    assert "API key is unknown" in told.err
    assert online("jobs", "show", key).code == 1
    made = cli("jobs", "add", path, "--url", node.url)
    assert made.code == 0, made.err
    assert target(online, key)["command"] == "say"


def test_a_file_and_options_of_a_job_are_refused(online, key, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(f"{{key: {key}, schedule: {{every: 1h}}, target: {{type: command, command: say}}}}")
    for option in (["--method", "PUT"], ["--every", "5s"], ["--tag", "a"]):
        told = online("jobs", "add", path, *option)
        assert told.code == 2
        assert "from FILE or from options" in " ".join(told.err.replace("│", " ").split())
    assert online("jobs", "show", key).code == 1


@pytest.mark.parametrize("how", ["flag", "environment"])
def test_what_is_no_server_is_told_as_such(cli, receiver, monkeypatch, how):
    seen, url = receiver
    if how == "environment":
        monkeypatch.setenv("ONTHEDOT_URL", url)
    told = cli("jobs", "show", "nightly", *(("--url", url) if how == "flag" else ()))
    assert told.code == 1
    assert f"{url} did not answer like an On the Dot server (got 200 text/plain)" in told.err
    assert "--server or ONTHEDOT_URL" in told.err
    assert "malformed" not in told.err
    assert len(seen) == 1
