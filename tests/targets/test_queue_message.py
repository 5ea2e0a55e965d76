"""What is published for a run, and what is wrong with targets."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from onthedot.brokers import clients
from onthedot.brokers.message import kombu_envelope
from onthedot.errors import Invalid, NotAvailable
from onthedot.model.targets import QueueTarget
from onthedot.settings import BrokerSetting
from onthedot.targets.queue.kind import Queues
from onthedot.targets.queue.message import compose
from tests.targets.conftest import SLOT, MakeCall


def target(**fields: Any) -> QueueTarget:
    return msgspec.convert({"broker": "it", "topic": "orders.new", **fields}, QueueTarget)


def kind(url: str) -> Queues:
    return Queues({"it": BrokerSetting(url=url)})


def paths(wrong: QueueTarget) -> list[str]:
    return [problem.path for problem in wrong.problems()]


def test_json_is_the_body_or_the_params(make_call: MakeCall):
    given = target(body={"a": [1, "é"]}, headers={"Colour": "red"}, key="k")
    message = compose(make_call(given, attempt=4), given)
    assert (message.id, message.topic, message.key) == (f"7-{SLOT}", "orders.new", "k")
    assert json.loads(message.body) == {"a": [1, "é"]}
    assert message.content_type == "application/json"
    assert message.headers == {
        "Colour": "red",
        "x-onthedot-run-id": f"7-{SLOT}",
        "x-onthedot-job": "7",
        "x-onthedot-scheduled-for": "2025-11-15T19:22:47.890Z",
        "x-onthedot-attempt": "4",
    }
    given = target()
    assert compose(make_call(given, params={"n": 1}), given).body == b'{"n":1}'


def test_where_the_end_is_told_later_a_new_try_is_a_new_message(make_call: MakeCall):
    given = target(format="cloudevents")
    first = compose(make_call(given, callback="http://h/complete?token=1", attempt=1), given)
    again = compose(make_call(given, callback="http://h/complete?token=1", attempt=2), given)
    other = compose(make_call(given, callback="http://h/complete?token=2", attempt=3, try_number=2), given)
    assert (first.id, again.id, other.id) == (f"7-{SLOT}-1", f"7-{SLOT}-1", f"7-{SLOT}-2")
    assert json.loads(other.body)["id"] == other.id
    assert other.headers["x-onthedot-callback"] == "http://h/complete?token=2"
    assert other.headers["x-onthedot-run-id"] == f"7-{SLOT}"


def test_raw_is_the_text_itself(make_call: MakeCall):
    given = target(format="raw", body="<order/>", headers={"Content-Type": "application/xml"})
    message = compose(make_call(given), given)
    assert (message.body, message.content_type) == (b"<order/>", "application/xml")
    assert "Content-Type" not in message.headers


def test_a_cloud_event_is_structured_and_the_same_in_each_attempt(make_call: MakeCall):
    given = target(
        format="cloudevents", body={"a": 1}, key="k", headers={"ce-type": "shop.order", "ce-region": "eu", "x": "1"}
    )
    message = compose(make_call(given, key="nightly"), given)
    assert message.content_type == "application/cloudevents+json"
    assert json.loads(message.body) == {
        "specversion": "1.0",
        "id": f"7-{SLOT}",
        "source": "/onthedot/jobs/7",
        "type": "shop.order",
        "time": "2025-11-15T19:22:47.890Z",
        "datacontenttype": "application/json",
        "subject": "nightly",
        "partitionkey": "k",
        "region": "eu",
        "data": {"a": 1},
    }
    assert not [name for name in message.headers if name.startswith("ce-")]
    assert compose(make_call(given, key="nightly", attempt=2), given).body == message.body


@pytest.mark.parametrize(
    ("body", "arguments", "keywords"), [([1, 2], [1, 2], {"p": 1}), ({"a": 1}, [], {"a": 1}), (None, [], {"p": 1})]
)
def test_a_celery_task_has_arguments_or_keywords(make_call: MakeCall, body: Any, arguments: Any, keywords: Any):
    given = target(format="celery", task="shop.tasks.send", body=body)
    message = compose(make_call(given, params={"p": 1}), given)
    assert json.loads(message.body)[:2] == [arguments, keywords]
    assert message.task is not None
    assert (message.task["id"], message.task["task"], message.task["retries"]) == (f"7-{SLOT}", "shop.tasks.send", 0)
    envelope = json.loads(kombu_envelope(message))
    assert base64.b64decode(envelope["body"]) == message.body
    assert envelope["properties"]["correlation_id"] == f"7-{SLOT}"


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"broker": " "}, "target.broker"),
        ({"topic": ""}, "target.topic"),
        ({"topic": "a\nb"}, "target.topic"),
        ({"key": ""}, "target.key"),
        ({"headers": {"a b": "1"}}, "target.headers.a b"),
        ({"headers": {"X-OnTheDot-Run-Id": "1"}}, "target.headers.X-OnTheDot-Run-Id"),
        ({"headers": {"Nats-Msg-Id": "1"}}, "target.headers.Nats-Msg-Id"),
        ({"headers": {"a": "1\r\nb: 2"}}, "target.headers.a"),
        ({"headers": {"ce-type": "x"}}, "target.headers.ce-type"),
        ({"format": "cloudevents", "headers": {"ce-Id": "x"}}, "target.headers.ce-Id"),
        ({"format": "cloudevents", "headers": {"ce-a_b": "x"}}, "target.headers.ce-a_b"),
        ({"format": "cloudevents", "headers": {"content-type": "x"}}, "target.headers.content-type"),
        ({"headers": {f"h{n}": "1" for n in range(51)}}, "target.headers"),
        ({"headers": {f"h{n}": "1" * 4000 for n in range(9)}}, "target.headers"),
        ({"format": "raw", "body": {"a": 1}}, "target.body"),
        ({"format": "raw"}, "target.body"),
        ({"format": "celery"}, "target.task"),
        ({"format": "celery", "task": "t", "body": "text"}, "target.body"),
        ({"task": "t"}, "target.task"),
    ],
)
def test_what_is_wrong_anywhere_is_named(fields: dict[str, Any], path: str):
    assert paths(target(**fields)) == [path]


def test_a_wrong_value_of_a_secret_header_is_not_shown():
    (problem,) = target(headers={"authorization": "Bearer x\n"}).problems()
    assert problem.given == "••••••"


@pytest.mark.parametrize(
    ("url", "topic"),
    [
        ("nats://h", "orders.*"),
        ("nats://h", "orders..new"),
        ("nats://h", "$JS.API.x"),
        ("nats://h", "with space"),
        ("kafka://h", "orders/new"),
        ("kafka://h", ".."),
        ("kafka://h", "x" * 250),
        ("amqp://h", "x" * 256),
        ("amqp://h", "ü" * 128),
        ("sqs://eu-west-1", "orders.new"),
        ("sqs://eu-west-1", "x" * 81),
        ("redis://h", "x" * 501),
    ],
)
def test_each_broker_has_topics_of_its_own(url: str, topic: str):
    with pytest.raises(Invalid) as refused:
        kind(url).check(target(topic=topic))
    assert [problem.path for problem in refused.value.problems] == ["target.topic"]


@pytest.mark.parametrize(
    ("url", "topic"),
    [
        ("nats://h", "orders.new"),
        ("kafka://h", "orders.new_2"),
        ("amqp://h", "orders new"),
        ("sqs://eu-west-1", "orders.fifo"),
        ("redis://h", "orders:new"),
    ],
)
def test_what_a_broker_takes_is_accepted(url: str, topic: str):
    queues = kind(url)
    queues.check(target(topic=topic))
    assert queues.capabilities() == ["queue:it"] == [target(topic=topic).capability()]


def test_an_unknown_broker_is_refused_with_the_known_ones():
    queues = Queues({"b": BrokerSetting(url="nats://h"), "a": BrokerSetting(url="redis://h")})
    with pytest.raises(Invalid) as refused:
        queues.check(target(broker="c"))
    (problem,) = refused.value.problems
    assert (problem.path, problem.given, problem.accepted) == ("target.broker", "c", "a, b")


@pytest.mark.parametrize("client", sorted(clients.CLIENTS))
def test_a_client_that_is_not_installed_is_named_with_the_command_that_installs_it(
    client: str, monkeypatch: pytest.MonkeyPatch
):
    url = {"rabbitmq": "amqp://h", "sqs": "sqs://eu-west-1"}.get(client, f"{client}://h")
    monkeypatch.setattr(clients, "find_spec", lambda name: None)
    queues = kind(url)
    with pytest.raises(NotAvailable) as refused:
        queues.check(target())
    (problem,) = refused.value.problems
    assert problem.path == "target.broker"
    assert problem.accepted == f"pip install 'onthedot[{client}]'"
    assert queues.capabilities() == []


@pytest.mark.parametrize("url", ["nats://h", "kafka://h"])
def test_celery_uses_some_brokers_only(url: str):
    with pytest.raises(Invalid) as refused:
        kind(url).check(target(topic="celery", format="celery", task="t"))
    assert [problem.path for problem in refused.value.problems] == ["target.format"]


def test_sqs_takes_few_headers():
    with pytest.raises(Invalid) as refused:
        kind("sqs://eu-west-1").check(target(topic="orders", headers={f"h{n}": "1" for n in range(5)}))
    assert [problem.path for problem in refused.value.problems] == ["target.headers"]


@pytest.mark.parametrize("name", ["AWS.x", "aws.x", "Amazon.TraceId", "aMaZoN.y", "team.", "a..b"])
def test_sqs_takes_no_headers_that_aws_refuses(name: str):
    given = target(topic="orders", headers={"team": "billing", name: "1"})
    with pytest.raises(Invalid) as refused:
        kind("sqs://eu-west-1").check(given)
    (problem,) = refused.value.problems
    assert (problem.path, problem.given) == (f"target.headers.{name}", name)
    assert "AWS. or Amazon." in (problem.accepted or "")
    kind("nats://h").check(given)


@pytest.mark.parametrize("name", ["aws", "awsome.x", "x.aws.y", "amazon-x", "A.b"])
def test_sqs_takes_other_headers(name: str):
    given = target(topic="orders", headers={name: "1"})
    kind("sqs://eu-west-1").check(given)
    assert paths(given) == []


@pytest.mark.parametrize(
    ("url", "name", "accepted"),
    [
        *(("redis://h", name, "not id, key, body") for name in ("id", "key", "body")),
        *(("amqp://h", name, "not CC, BCC") for name in ("CC", "BCC")),
    ],
)
def test_the_fields_of_messages_of_a_broker_are_no_headers(url: str, name: str, accepted: str):
    with pytest.raises(Invalid) as refused:
        kind(url).check(target(topic="orders", headers={"team": "billing", name: "1"}))
    (problem,) = refused.value.problems
    assert (problem.path, problem.accepted) == (f"target.headers.{name}", accepted)
    kind("nats://h").check(target(topic="orders", headers={name: "1"}))
