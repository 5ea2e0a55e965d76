"""What the page of a run says while the run waits, and what to do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from onthedot.clock import FakeClock
from onthedot.model.destination import DestinationLoad
from onthedot.model.node import NodeLoad
from onthedot.model.run import RunView
from onthedot.settings import BrokerSetting, Settings
from onthedot.store import TurnedAway
from onthedot.targets import build_targets
from onthedot.web.run_story import story_of, verdict_of
from tests.api.conftest import JOB, client_of, serving
from tests.api.executor import TinyNode

SINCE = "2026-01-01T00:00:00.000Z"


def run(status: str, waiting: str, waiting_for: str | None = None) -> RunView:
    plain: dict[str, Any] = dict.fromkeys(RunView.__struct_fields__)
    del plain["trigger"]
    told = {"id": "1-0", "scheduled_for": SINCE, "due_at": SINCE, "status": status, "attempt": 1, "attempts": []}
    return RunView(**{**plain, **told, "waiting": waiting, "waiting_for": waiting_for, "waiting_since": SINCE})


@pytest.mark.parametrize(
    ("waits", "text", "step"),
    [
        (
            run("EXECUTING", "place", "container@QHZY"),
            "It goes on at container@QHZY, which no live node reaches.",
            "Start a node that reaches it.",
        ),
        (
            run("PENDING", "capability", "function:reports"),
            "It waits: no live node offers function:reports.",
            "Start a node that offers it",
        ),
        (run("PENDING", "broker", "orders"), "It waits for the broker orders.", "when the broker answers again"),
        (run("EXECUTING", "check-in"), "It waits for its job to report.", "within its grace time"),
        (run("EXECUTING", "callback"), "It was accepted, and waits for the receiver", "completion_timeout"),
    ],
    ids=lambda each: each.waiting if isinstance(each, RunView) else "",
)
def test_what_it_waits_for_and_what_to_do(waits: RunView, text: str, step: str):
    verdict = verdict_of(waits)
    assert verdict.tone == "warn"
    assert verdict.text.startswith(text)
    assert step in verdict.next_step


@pytest.mark.parametrize(
    ("waiting", "title"),
    [("callback", "Attempt 1 was accepted"), ("place", "Attempt 1 runs"), ("check-in", "Attempt 1 runs")],
)
def test_only_what_was_accepted_was_accepted(waiting: str, title: str):
    event = story_of(run("EXECUTING", waiting, "container@QHZY"), {})[-1]
    assert event.title == title
    assert event.text


async def test_the_breaker_of_its_broker_is_shown(sqlite_url: str, fake_clock: FakeClock):
    target, requires = {"type": "queue", "broker": "orders", "topic": "created"}, "queue:orders@orders"
    async with serving(sqlite_url, fake_clock) as app, client_of(app) as site:
        store = app.context.service.store
        brokers = {"orders": BrokerSetting(url="nats://127.0.0.1:9")}
        app.context.service.targets = build_targets(Settings(brokers=brokers))
        node = TinyNode(store)
        node.info = msgspec.structs.replace(node.info, offers=["queue:orders"])
        await node.register()
        made = await site.post("/v1/jobs", json={**JOB, "schedule": {"in": "1s"}, "target": target})
        assert made.status_code == 201, made.text
        await fake_clock.advance(2)
        (run,) = (await store.claim(node.info.id, offers=["queue:orders"], level=9, limit=9, lookahead_ms=2000)).runs
        away = TurnedAway(run_id=run.id, token=run.token, version=run.version, requires=requires)
        await store.wait_for_destinations(node.info.id, [away])
        now = await store.now()
        load = DestinationLoad(requires=requires, breaker="open", failures=12, since=now, next_probe=now + 4000)
        await store.beat(node.info.id, NodeLoad(destinations=[load]))
        page = (await site.get(f"/runs/{run.id}")).text
        assert "It waits for the broker orders." in page
        assert "Its last 12 calls failed" in page
