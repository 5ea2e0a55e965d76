"""A node that was frozen finds requests whose clients have given up: it must not carry them out."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections import Counter
from typing import Any

import pytest

from tests.cluster.nodes import post
from tests.cluster.test_workers import is_frozen
from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until

YEARLY = {"cron": "0 0 1 1 *"}
TARGET = {"type": "webhook", "url": "https://example.com/hook"}


class Visitor:
    """A client on a connection of its own that says what it wants and does not wait."""

    def __init__(self, node: NodeProcess) -> None:
        self._socket = socket.create_connection(("127.0.0.1", node.port), timeout=10)

    def say(self, method: str, path: str, body: Any = None) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(content)}\r\n\r\n"
        self._socket.sendall(head.encode() + content)

    def hear(self) -> int:
        """The status of an answer, which is in one piece."""
        return int(self._socket.recv(65536).split()[1])

    def leave(self) -> None:
        self._socket.close()


async def answers(node: NodeProcess, *statuses: int) -> Counter[tuple[str, str]]:
    """How many requests were answered so, as the node counts them."""
    _, text = await ask(node, "GET", "/metrics")
    line = re.compile(r'onthedot_http_requests_total{method="(\w+)",route="([^"]+)",status="(\d+)"} (\d+)')
    found: Counter[tuple[str, str]] = Counter()
    for method, route, status, number in line.findall(text):
        if int(status) in statuses and method != "GET":  # /readyz says 503 before it says 200
            found[method, route] += int(number)
    return found


GIVEN_UP = (400, 503)
"""400: that the connection was closed was read before the body was asked for."""


async def freeze(node: NodeProcess) -> None:
    node.signal(signal.SIGSTOP)
    await until(lambda: is_frozen(node.pid), "it stands still")


@pytest.fixture
async def two(postgres_url, cluster) -> tuple[NodeProcess, NodeProcess]:
    nodes = [cluster.start("--store", postgres_url, "--roles", "api") for _ in range(2)]
    for node in nodes:
        await node.ready()
    return nodes[0], nodes[1]


async def test_a_pause_that_was_given_up_does_not_undo_what_was_said_since(two):
    """POST pause to a frozen node and hang up; pause and resume at another. The thawed one paused it for ever."""
    frozen, other = two
    job = await post(other, "/v1/jobs", {"schedule": YEARLY, "target": TARGET})
    await freeze(frozen)
    visitor = Visitor(frozen)
    visitor.say("POST", f"/v1/jobs/{job['id']}/pause")
    visitor.leave()
    await post(other, f"/v1/jobs/{job['id']}/pause", expect=200)
    resumed = await post(other, f"/v1/jobs/{job['id']}/resume", expect=200)
    frozen.signal(signal.SIGCONT)

    async def heard_of() -> bool:
        return ("POST", "/v1/jobs/{job_id}/pause") in await answers(frozen, *GIVEN_UP)

    await until(heard_of, "the thawed node has looked at it")
    _, now = await ask(other, "GET", f"/v1/jobs/{job['id']}")
    assert (now["state"], now["version"]) == ("active", resumed["version"])


async def test_nothing_that_was_given_up_is_written(two):
    """Every kind of change, also by the short way that a create under a known head takes."""
    frozen, other = two
    job = await post(other, "/v1/jobs", {"key": "there", "schedule": YEARLY, "target": TARGET})
    at, delayed = f"/v1/jobs/{job['id']}", {"schedule": {"in": "1h"}, "target": TARGET}
    regular = Visitor(frozen)
    for _ in range(2):  # the first makes its head known, the second is taken by it
        regular.say("POST", "/v1/jobs", delayed)
        assert regular.hear() == 201
    asked: list[tuple[str, str, Any, str]] = [
        ("PATCH", at, {"name": "x"}, "/v1/jobs/{job_id}"),
        ("PUT", at, {"schedule": {"every": "1h"}, "target": TARGET}, "/v1/jobs/{job_id}"),
        ("DELETE", at, None, "/v1/jobs/{job_id}"),
        ("PUT", "/v1/jobs/by-key/new", delayed, "/v1/jobs/by-key/{key}"),
        ("POST", f"{at}/pause", None, "/v1/jobs/{job_id}/pause"),
        ("POST", f"{at}/run", None, "/v1/jobs/{job_id}/run"),
        ("POST", "/timers", {"seconds": 3600, "url": TARGET["url"]}, "/timers"),
        ("POST", "/v1/jobs", {"schedule": YEARLY, "target": TARGET}, "/v1/jobs"),
        ("POST", "/v1/jobs/sync", {"source": "f", "jobs": [{**delayed, "key": "f"}]}, "/v1/jobs/sync"),
        ("POST", "/v1/keys", {"name": "k", "scope": "admin"}, "/v1/keys"),
        ("POST", "/v1/jobs/batch", [delayed, delayed], "/v1/jobs/batch"),
    ]
    _, before = await ask(other, "GET", "/v1/jobs")
    await freeze(frozen)
    regular.say("POST", "/v1/jobs", delayed)
    regular.leave()
    for method, path, body, _ in asked:
        visitor = Visitor(frozen)
        visitor.say(method, path, body)
        visitor.leave()
    frozen.signal(signal.SIGCONT)

    async def all_heard_of() -> bool:
        looked_at = await answers(frozen, *GIVEN_UP)
        looked_at["POST", "/v1/jobs/batch"] += (await answers(frozen, 200))["POST", "/v1/jobs/batch"]  # item by item
        wanted = Counter((method, route) for method, _, _, route in asked) + Counter([("POST", "/v1/jobs")])
        return looked_at == wanted

    await until(all_heard_of, "the thawed node has looked at all of them")
    assert (await ask(other, "GET", "/v1/jobs"))[1] == before
    assert (await ask(other, "GET", f"{at}/runs?status=PENDING"))[1]["items"][0]["kind"] == "scheduled"
    assert (await ask(other, "GET", "/v1/keys"))[1] == {"items": []}


async def test_who_still_waits_is_answered(two):
    """Frozen for a moment is no reason to refuse: its client did not give up."""
    frozen, other = two
    job = await post(other, "/v1/jobs", {"schedule": YEARLY, "target": TARGET})
    await freeze(frozen)
    visitor = Visitor(frozen)
    visitor.say("POST", f"/v1/jobs/{job['id']}/pause")
    frozen.signal(signal.SIGCONT)
    assert visitor.hear() == 200
    visitor.leave()
    assert (await ask(other, "GET", f"/v1/jobs/{job['id']}"))[1]["state"] == "paused"
