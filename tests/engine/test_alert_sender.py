"""Delivering messages: many of one cause as one, again after a failure, no more than a channel may be sent."""

from __future__ import annotations

import random
from typing import Any

from onthedot.channels.channel import NotDelivered
from onthedot.channels.message import AlertMessage
from onthedot.clock import FakeClock
from onthedot.engine.alerting.alert_sender import AlertSender
from onthedot.engine.membership.backoff import Backoff
from onthedot.engine.membership.health import StoreHealth
from onthedot.plan.alert_groups import RATE, grouped, wait_after_failure
from onthedot.store import DueAlert
from tests.engine.scripted import ScriptedStore


class Heard:
    kind, place = "heard", "here"

    def __init__(self, failures: int = 0) -> None:
        self.messages: list[AlertMessage] = []
        self.failures = failures

    async def send(self, message: AlertMessage) -> None:
        if self.failures:
            self.failures -= 1
            raise NotDelivered("away")
        self.messages.append(message)


def alert(number: int, **more: Any) -> DueAlert:
    facts = {"tenant": 1, "event": "opened", "tries": 1, "incident_id": number, "condition": "failed", "job_id": number}
    texts = {"title": f"job-{number}", "reason": f"boom {number}", "cause": f"cause {number}", "output": "the end"}
    times = {"occurrence": f"{number}-1", "count": 1, "opened_at": 0, "closed_at": None}
    return DueAlert(**{"id": number, **facts, **texts, **times, **more})


def sender(store: ScriptedStore, channel: Heard, clock: FakeClock, link: str | None = "https://x") -> AlertSender:
    rng = random.Random(1)
    return AlertSender(
        "n1", "ops", channel, store=store, clock=clock, rng=rng, health=StoreHealth(), backoff=Backoff(rng), link=link
    )


async def deliver(*due: DueAlert, sent: int = 0, failures: int = 0) -> tuple[Heard, ScriptedStore, bool]:
    clock = FakeClock()
    store, channel = ScriptedStore(clock), Heard(failures)
    store.script("take_alerts", (list(due), sent))
    return channel, store, await sender(store, channel, clock).deliver()


async def test_a_message_has_job_condition_reason_output_and_link():
    channel, store, done = await deliver(alert(1))
    assert done
    (message,) = channel.messages
    assert (message.event, message.condition) == ("opened", "failed")
    assert (message.reason, message.output) == ("boom 1", "the end")
    assert message.job == {"id": 1, "title": "job-1"}
    assert message.link == "https://x/runs/1-1"
    assert message.text == "job-1 failed\nboom 1\n\nLast output:\nthe end\n\nhttps://x/runs/1-1"
    assert store.asked_for("alerts_sent") == [[1]]


async def test_many_of_one_cause_become_one_message():
    due = [alert(number, cause="connection refused") for number in range(30)]
    channel, store, _ = await deliver(*due, alert(99))
    many, one = channel.messages
    assert (many.count, len(many.incidents), many.cause) == (30, 20, "connection refused")
    assert "and 10 more" in many.text
    assert many.link == "https://x/alerts"
    assert one.title == "job-99 failed"
    assert store.asked_for("alerts_sent") == [list(range(30)), [99]]


async def test_what_fails_waits_longer_each_time_and_the_rest_is_put_back():
    channel, store, done = await deliver(alert(1, tries=3), alert(2), failures=1)
    assert not channel.messages
    assert not done
    assert store.asked_for("alerts_not_sent") == [([1], "away", wait_after_failure(3)), ([2], None, 5000)]
    assert [wait_after_failure(tries) for tries in (1, 2, 6, 20)] == [5_000, 15_000, 3_600_000, 3_600_000]


async def test_a_channel_that_was_sent_enough_waits():
    channel, store, done = await deliver(alert(1), sent=RATE)
    assert (channel.messages, done) == ([], False)
    assert store.asked_for("alerts_not_sent") == [([1], None, 5000)]


async def test_what_is_over_the_rate_is_told_by_one_message():
    channel, _, _ = await deliver(*[alert(number) for number in range(30)], sent=RATE - 3)
    assert [message.count for message in channel.messages] == [1, 1, 28]
    assert channel.messages[-1].title == "28 incidents"


def test_groups_of_a_cause_keep_their_order():
    due = [alert(1, cause="a"), alert(2, cause="b"), alert(3, cause="a"), alert(4, cause="a"), alert(5, cause="a")]
    assert [[each.id for each in message] for message in grouped(due, 10)] == [[1, 3, 4, 5], [2]]
    assert [[each.id for each in message] for message in grouped(due[:3], 10)] == [[1], [3], [2]]


async def test_recovered_says_what_it_began_with():
    channel, _, _ = await deliver(alert(1, event="recovered", condition="in_a_row"))
    assert channel.messages[0].text.startswith("job-1 has recovered (in a row)\nIt began with: boom 1")
