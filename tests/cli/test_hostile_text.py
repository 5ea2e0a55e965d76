"""What others wrote reaches the operator's terminal as text: names, errors, answers, logs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from onthedot.echo import EchoServer
from onthedot.echo.arrival import Arrival
from onthedot.jobsfile import parse_jobs
from onthedot.launcher.banner import banner
from onthedot.settings import Settings
from tests.services.waiting import until_blocking

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


def harmless(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.fixture
def redirecting() -> Iterator[str]:
    """A receiver that answers with a Location made for terminals. On a loop and thread of its own."""
    import threading

    ready, stop = threading.Event(), asyncio.Event()
    found: list[object] = []

    async def serve() -> None:
        async with EchoServer() as echo:
            echo.answer = lambda arrival: (302, {"location": "http://x/\x1b[2J\x9b31m"}, ESCAPES.encode())
            found.extend((echo.url, asyncio.get_running_loop()))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    url, loop = found
    yield str(url)
    loop.call_soon_threadsafe(stop.set)  # type: ignore[attr-defined]
    thread.join(10)


def test_names_and_logs(online, key):
    words = ("--key", key, "--name", f"Nightly {ESCAPES}", "--tag", "t\x1b[31m", "--function", "chores:greet")
    made = online("jobs", "add", "--at", "2033-01-01T00:00:00Z", *words, "--param", f"name=Anna{ESCAPES}")
    assert made.code == 0, made.err
    assert harmless(made.out + made.err)
    run = online("jobs", "run", key, "--json").json["id"]
    assert online("runs", "logs", "-f", run).out.startswith("hello Anna\\x1b]0;owned\\x07")
    for command in (
        ("jobs", "list"), ("jobs", "show", key), ("jobs", "show", key, "--json"), ("runs", "list", key),
        ("runs", "show", run), ("runs", "logs", run), ("runs", "logs", "-f", run), ("runs", "logs", run, "--json"),
        ("jobs", "show", f"none{ESCAPES}"), ("jobs", "run", key), ("jobs", "pause", key), ("jobs", "list", "--json"),
    ):  # fmt: skip
        seen = online(*command)
        assert harmless(seen.out + seen.err), command
    assert online("jobs", "show", key, "--json").json["name"] == f"Nightly {ESCAPES}", "for programs it is what it was"


def test_what_a_receiver_answers(online, key, redirecting):
    online("jobs", "add", "--at", "2033-01-01T00:00:00Z", "--key", key, "--url", redirecting)
    run = online("jobs", "run", key, "--json").json["id"]
    until_blocking(lambda: online("runs", "show", run, "--json").json["status"] == "FAILED", "it failed")
    for command in (("runs", "show", run), ("runs", "list", key), ("dead", "list"), ("jobs", "show", key)):
        seen = online(*command)
        assert harmless(seen.out + seen.err), command
    assert "\\x1b[2J" in online("runs", "show", run).out


def test_the_banner():
    text = '[{"identifier": "a", "path": "f", "function_name": "g", "periodicity": "1m"}]'
    jobs = parse_jobs(text, "json", "jobs\x1b[2J.json")
    told = banner(Settings(store="sqlite:///a\x1b]0;x\x07.db"), jobs, None, port=8000, colour=False)
    assert harmless(told)
    assert "\\x1b[2J" in told


def test_what_echo_receives():
    headers = {"webhook-id": ESCAPES, "x-onthedot-attempt": "\x1b[2J"}
    arrival = Arrival(at=0, method="POST", path=f"/{ESCAPES}", headers=headers, body=ESCAPES.encode(), status=200)
    assert harmless(arrival.line())
    assert harmless(arrival.json())
