"""Publishing to real brokers: confirmed, read back by somebody else, and what happens when the broker is not well."""

from __future__ import annotations

import asyncio
import importlib
import itertools
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from onthedot.brokers import link
from onthedot.brokers.link import BrokerLink
from onthedot.brokers.message import Message
from onthedot.model.run import Outcome
from onthedot.model.targets import QueueTarget
from onthedot.settings import BrokerSetting
from onthedot.targets import Call
from onthedot.targets.contract import Stop
from onthedot.targets.queue.kind import Queues
from onthedot.telemetry import Event, subscribe
from tests.services.brokers import PASSWORD, BrokerServer, running_nats
from tests.services.consumers import CONSUMERS, Consumed
from tests.services.waiting import until
from tests.targets.receivers import CERTIFICATES, certified
from tests.targets.sending import send

# The first test of RabbitMQ may have to install it.
pytestmark = pytest.mark.timeout(300)
_numbers = itertools.count(1)


class Party:
    """A broker, a topic of its own on it, and calls."""

    def __init__(self, name: str, server: BrokerServer) -> None:
        self.name, self.server = name, server
        self.topic = f"test{next(_numbers)}"

    def kind(self, url: str | None = None, **fields: Any) -> Queues:
        return Queues({"it": BrokerSetting(url=url or self.server.url, **fields)})

    def target(self, **fields: Any) -> QueueTarget:
        return QueueTarget(**({"broker": "it", "topic": self.topic, "body": {"n": 1}} | fields))

    def call(self, number: int = 1, target: QueueTarget | None = None) -> Call:
        return Call(run_id=f"7-{number}", job_id=7, slot=number, attempt=1, target=target or self.target())

    async def prepare(self) -> None:
        await CONSUMERS[self.name].prepare(self.server, self.topic)

    async def consumed(self) -> list[Consumed]:
        return await CONSUMERS[self.name].consume(self.server, self.topic)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        self.server.stop()
        try:
            yield
        finally:
            self.server.start()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        self.server.freeze()
        try:
            yield
        finally:
            self.server.thaw()


@pytest.fixture(params=["nats", "redis", "rabbitmq"])
def party(request: pytest.FixtureRequest, servers: Callable[[str], BrokerServer]) -> Party:
    return Party(request.param, servers(request.param))


@pytest.fixture
def on_nats(servers: Callable[[str], BrokerServer]) -> Party:
    return Party("nats", servers("nats"))


@pytest.fixture
def events() -> Iterator[list[Event]]:
    told: list[Event] = []
    stop = subscribe(told.append)
    yield told
    stop()


def confirmed(outcome: Outcome) -> dict[str, Any]:
    assert outcome.ok, outcome
    result: dict[str, Any] = outcome.detail["result"]
    assert result["broker"] == "it"
    return result


async def test_a_message_is_confirmed_and_somebody_else_reads_it(party: Party):
    await party.prepare()
    target = party.target(headers={"colour": "red"}, key="k")
    async with party.kind() as kind:
        result = confirmed(await send(kind, party.call(3, target)))
    match party.name:
        case "nats":
            assert (result["stream"], result["seq"]) == (party.topic, 1)
        case "redis":
            assert result["stream"] == party.topic
            assert result["id"].endswith("-0")
        case "rabbitmq":
            assert (result["routing_key"], result["message_id"]) == (party.topic, "7-3")
    (message,) = await party.consumed()
    assert (message.id, json.loads(message.body)) == ("7-3", {"n": 1})
    headers = {name.lower(): value for name, value in message.headers.items()}
    assert headers["colour"] == "red"
    assert headers["content-type"] == "application/json"
    assert headers["x-onthedot-run-id"] == "7-3"
    assert "k" in (headers.get("x-onthedot-key"), headers.get("key"))


async def test_no_header_of_a_job_takes_the_place_of_the_id(party: Party):
    """By which consumers drop what comes twice: they would drop all runs but one."""
    await party.prepare()
    async with party.kind() as kind:
        confirmed(await send(kind, party.call(3, party.target(headers={"id": "mine", "body": "mine"}))))
    (message,) = await party.consumed()
    assert (message.id, json.loads(message.body)) == ("7-3", {"n": 1})


async def test_many_at_once_are_all_confirmed(party: Party):
    await party.prepare()
    async with party.kind() as kind:
        outcomes = await asyncio.gather(*(send(kind, party.call(number)) for number in range(300)))
    assert len({json.dumps(confirmed(outcome)) for outcome in outcomes}) == 300
    assert sorted(message.id or "" for message in await party.consumed()) == sorted(f"7-{n}" for n in range(300))


async def interrupted_while_it_connects(party: Party) -> None:
    """At every moment of it, half a millisecond apart. What it leaves are tasks, and what these hold."""
    setting, there = BrokerSetting(url=party.server.url), asyncio.all_tasks()
    open_ = importlib.import_module(f"onthedot.brokers.{party.name}").connect
    message = Message(id="1", topic=party.topic, key=None, headers={}, content_type="text/plain", body=b"")
    for moment in range(60):
        way = BrokerLink("it", setting, open_)
        publishing = asyncio.ensure_future(way.publish(message, lambda: True))
        await asyncio.wait({publishing}, timeout=moment * 0.0005)
        publishing.cancel()
        await way.close()
        await asyncio.gather(publishing, return_exceptions=True)
    await until(lambda: asyncio.all_tasks() <= there, "no task is left")


async def test_who_is_interrupted_while_it_connects_leaves_nothing(party: Party):
    await interrupted_while_it_connects(party)


async def test_a_broker_that_is_away_is_told_at_once_and_found_again(party: Party, events: list[Event]):
    await party.prepare()
    async with party.kind() as kind:
        confirmed(await send(kind, party.call(1)))
        with party.stopped():
            for number in range(2, 20):
                began = time.monotonic()
                failed = await send(kind, party.call(number))
                assert (failed.kind, failed.retryable) == ("error", True)
                assert failed.error is not None
                assert failed.error.startswith("broker it: ")
                assert time.monotonic() - began < 2

        async def found_again() -> bool:
            return (await send(kind, party.call(20))).ok

        await until(found_again, "it is connected again")
    names = [event.name for event in events if event.name.startswith("broker.")]
    assert names == ["broker.connected", "broker.unavailable", "broker.back"]
    assert {message.id for message in await party.consumed()} == {"7-1", "7-20"}


@pytest.mark.timeout(180)  # RabbitMQ takes ten seconds to start, and much longer on a machine that is busy
async def test_what_waits_for_a_confirmation_fails_when_the_broker_dies(party: Party):
    await party.prepare()
    async with party.kind() as kind:
        confirmed(await send(kind, party.call(1)))
        party.server.freeze()
        calls = [asyncio.create_task(send(kind, party.call(number))) for number in range(2, 30)]
        await until(lambda: kind.waiting("it") == 28)
        await asyncio.to_thread(party.server.restart, kill=True)  # the calls must hear that it died meanwhile
        outcomes = await asyncio.gather(*calls)
        assert {(outcome.kind, outcome.retryable) for outcome in outcomes} == {("error", True)}

        async def found_again() -> bool:
            return (await send(kind, party.call(30))).ok

        await until(found_again, "it is connected again", within=90)
    ids = {message.id for message in await party.consumed()}
    assert {"7-1", "7-30"} <= ids <= {f"7-{number}" for number in range(1, 31)}


async def test_a_frozen_broker_keeps_what_it_has_and_fails_the_rest(party: Party, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(link, "STALLED", 0.0)
    monkeypatch.setattr(link, "CONNECT_WITHIN", 0.3)
    await party.prepare()
    kind = party.kind()
    async with kind:
        confirmed(await send(kind, party.call(1)))
        with party.frozen():
            ended: list[Any] = []
            handle = kind.start(party.call(2), time.monotonic(), ended.append)
            await until(lambda: kind.waiting("it") == 1)
            assert handle.stop("timeout") is Stop.STOPPING
            await until(lambda: ended)
            assert ended[0].outcome is None
            failed = await send(kind, party.call(3))
            assert (failed.kind, failed.retryable) == ("error", True)
            assert "did not respond within" in (failed.error or "")

        async def found_again() -> bool:
            return (await send(kind, party.call(4))).ok

        await until(found_again, "it is connected again")


async def test_a_job_without_a_timeout_does_not_wait_forever(party: Party, monkeypatch: pytest.MonkeyPatch):
    """With one, the engine ends it."""
    await party.prepare()
    async with party.kind() as kind:
        confirmed(await send(kind, party.call(1)))
        with party.frozen():
            monkeypatch.setattr("onthedot.targets.queue.kind.CONFIRMED_WITHIN", 0.3)
            failed = await send(kind, party.call(2))
        assert (failed.kind, failed.retryable) == ("timeout", True)
        assert "within 0.3 s" in (failed.error or "")


async def test_a_node_stops_although_its_broker_is_frozen(party: Party, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(link, "CLOSE_WITHIN", 0.3)
    await party.prepare()
    async with party.kind() as kind:
        confirmed(await send(kind, party.call(1)))
        party.server.freeze()
        waiting = asyncio.create_task(send(kind, party.call(2)))
        await until(lambda: kind.waiting("it") == 1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        began = time.monotonic()
    took = time.monotonic() - began
    party.server.thaw()
    assert took < 3


async def test_a_wrong_password_is_told_and_shown_nowhere(party: Party):
    async with party.kind(party.server.with_wrong_password) as kind:
        failed = await send(kind, party.call())
    assert (failed.kind, failed.retryable) == ("error", True)
    assert failed.error is not None
    assert failed.error.startswith("broker it: ")
    assert "wrong" not in failed.error.replace("WRONGPASS", "")
    (found,) = await party.kind(party.server.with_wrong_password).diagnose()
    assert found.advice is not None
    assert "[brokers.it]" in found.advice


async def test_a_password_in_a_file_is_read_with_each_connection(party: Party, tmp_path: Path):
    await party.prepare()
    secret = tmp_path / "password"
    async with party.kind(party.server.url.replace(f":{PASSWORD}", ""), password_file=str(secret)) as kind:
        failed = await send(kind, party.call(1))
        assert "password_file can't be read" in (failed.error or "")
        secret.write_text(PASSWORD + "\n")

        async def works() -> bool:
            return (await send(kind, party.call(2))).ok

        await until(works, "the password is found")


async def test_the_doctor_says_whether_a_broker_works(party: Party):
    (found,) = await party.kind().diagnose()
    assert found.advice is None
    assert "is reachable, login accepted" in found.found
    assert PASSWORD not in found.found
    with party.stopped():
        (found,) = await party.kind().diagnose()
    assert found.advice is not None
    assert f"127.0.0.1:{party.server.port}" in found.found


async def test_a_broker_without_a_queue_for_one_message_is_not_away(party: Party):
    target = (
        party.target(topic="nowhere")
        if party.name != "redis"
        else party.target(topic="list", format="celery", task="t")
    )
    async with party.kind() as kind:
        assert kind.destination(target) == "it"
        if party.name == "redis":
            assert (await send(kind, party.call(1, target))).ok
            target = party.target(topic="list")
        outcome = await send(kind, party.call(2, target))
        assert not outcome.ok
        assert kind.answered(outcome) is (None if party.name == "redis" else True)
        await party.prepare()
        assert kind.answered(await send(kind, party.call(3))) is True
        with party.stopped():
            assert kind.answered(await send(kind, party.call(4))) is False


async def test_a_subject_without_a_stream_is_a_failed_try(on_nats: Party):
    async with on_nats.kind() as kind:
        failed = await send(kind, on_nats.call())
    assert (failed.kind, failed.retryable) == ("error", True)
    assert failed.error == f"broker it: no JetStream stream has the subject {on_nats.topic!r}"


async def test_a_queue_that_does_not_exist_is_a_failed_try(servers: Callable[[str], BrokerServer]):
    party = Party("rabbitmq", servers("rabbitmq"))
    async with party.kind() as kind:
        failed = await send(kind, party.call())
        assert (failed.kind, failed.retryable) == ("error", True)
        assert failed.error == f"broker it: no queue is bound to {party.topic!r}: the message was returned"
        await party.prepare()
        confirmed(await send(kind, party.call()))


async def test_what_the_server_will_never_take_is_final(on_nats: Party):
    await on_nats.prepare()
    async with on_nats.kind() as kind:
        waiting = asyncio.create_task(send(kind, on_nats.call(2)))
        for size in (70_000, 65_500):  # the second one is too large by its headers alone
            failed = await send(kind, on_nats.call(1, on_nats.target(body="x" * size)))
            assert (failed.kind, failed.retryable) == ("error", False)
            assert "bytes with its headers; the server accepts at most 65,536" in (failed.error or "")
        confirmed(await waiting)
        room = 65_536 - 400
        confirmed(await send(kind, on_nats.call(3, on_nats.target(body="x" * room))))


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"CC": "elsewhere"}, "RabbitMQ takes no text as the header CC"),
        ({"BCC": "elsewhere"}, "RabbitMQ takes no text as the header BCC"),
        ({f"h{n}": "\N{GRINNING FACE}" * 4096 for n in range(8)}, "bytes; the server accepts at most 131,064"),
        ({"Content-Type": "text/" + "x" * 300}, "the content-type has 305 bytes; RabbitMQ accepts at most 255"),
    ],
    ids=["cc", "bcc", "too large", "content type"],
)
async def test_what_rabbitmq_would_never_take_is_not_sent(
    servers: Callable[[str], BrokerServer], headers: dict[str, str], why: str
):
    """Messages of other jobs wait on it, too."""
    party = Party("rabbitmq", servers("rabbitmq"))
    await party.prepare()
    async with party.kind() as kind:
        others = [asyncio.ensure_future(send(kind, party.call(n))) for n in range(20)]
        failed = await send(kind, party.call(100, party.target(headers=headers)))
        assert (failed.kind, failed.retryable) == ("error", False)
        assert why in (failed.error or "")
        for other in others:
            confirmed(await other)


async def test_who_may_not_publish_is_told_so(on_nats: Party, servers: Callable[[str], BrokerServer]):
    url = f"nats://reader:reads@127.0.0.1:{on_nats.server.port}"
    async with on_nats.kind(url) as kind:
        failed = await send(kind, on_nats.call(1, on_nats.target(topic="orders.New")))
    assert (failed.kind, failed.retryable) == ("error", False)
    assert 'permissions violation for publish to "orders.new"' in (failed.error or "").lower()
    on_redis = Party("redis", servers("redis"))
    async with on_redis.kind(f"redis://reader:reads@127.0.0.1:{on_redis.server.port}") as kind:
        failed = await send(kind, on_redis.call(1))
    assert (failed.kind, failed.retryable) == ("error", False)
    assert "permission" in (failed.error or "")


async def test_a_repeat_has_the_same_id_and_jetstream_drops_it(on_nats: Party):
    await on_nats.prepare()
    async with on_nats.kind() as kind:
        first, second = [confirmed(await send(kind, on_nats.call(5))) for _ in range(2)]
    assert "duplicate" not in first
    assert second == {**first, "duplicate": True}
    assert [message.id for message in await on_nats.consumed()] == ["7-5"]


async def test_tls_is_checked_against_the_authority_and_the_name(on_nats: Party):
    pem = CERTIFICATES / "receiver.pem"
    with running_nats(f'tls {{ cert_file: "{pem}", key_file: "{pem}" }}\n') as server:
        party = Party("nats", server)
        secure = server.url.replace("nats://", "nats+tls://")
        for url, ca, said in (
            (secure.replace("127.0.0.1", "localhost"), None, "CERTIFICATE_VERIFY_FAILED"),
            (secure, str(CERTIFICATES / "authority.pem"), None),
        ):
            async with party.kind(url, ca=ca) as kind:
                failed = await send(kind, party.call())
            assert failed.retryable
            assert (said or "no JetStream stream") in (failed.error or "")
    async with on_nats.kind(on_nats.server.url.replace("nats://", "nats+tls://")) as kind:
        failed = await send(kind, on_nats.call())
    assert failed.retryable
    assert "broker it: " in (failed.error or "")


@asynccontextmanager
async def tls_before(port: int) -> AsyncIterator[int]:
    """A port with TLS that leads to a broker without."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ssl.SSLError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, back), copy(there, writer))

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=certified())
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()


@pytest.mark.parametrize(("name", "secure"), [("redis", "rediss"), ("rabbitmq", "amqps")])
async def test_tls_works_with_the_other_brokers(name: str, secure: str, servers: Callable[[str], BrokerServer]):
    party = Party(name, servers(name))
    await party.prepare()
    async with tls_before(party.server.port) as port:
        url = party.server.url.replace(str(party.server.port), str(port)).replace(
            party.server.url.split(":")[0], secure
        )
        async with party.kind(url, ca=str(CERTIFICATES / "authority.pem")) as kind:
            confirmed(await send(kind, party.call(1)))
        async with party.kind(url) as kind:
            failed = await send(kind, party.call(2))
    assert failed.retryable
    assert "CERTIFICATE_VERIFY_FAILED" in (failed.error or "")
    assert [message.id for message in await party.consumed()] == ["7-1"]
