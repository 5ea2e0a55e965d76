"""Jobs that publish, in a real node with a real broker, by API and command line; docs/queues.md typed as it stands."""

from __future__ import annotations

import base64
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nats
import pytest
import redis.asyncio

from tests.cluster.nodes import Cluster, post
from tests.cluster.typed import TypedPage, doctor, html_of, run_with
from tests.cluster.walking import ask
from tests.services.brokers import PASSWORD, BrokerServer, running_nats, running_redis
from tests.services.consumers import CONSUMERS
from tests.services.process import NodeProcess
from tests.services.simulated import FromSqs, running_kafka, running_sqs
from tests.services.waiting import until

TARGET = {"type": "queue", "broker": "orders", "topic": "orders.nightly", "body": {"full": True}}


pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def broker() -> Iterator[BrokerServer]:
    with running_nats() as server:
        yield server


def environment(broker: BrokerServer) -> dict[str, str]:
    return {"ONTHEDOT_BROKERS": json.dumps({"orders": {"url": broker.url}})}


@pytest.fixture
async def node(cluster: Cluster, sqlite_url: str, broker: BrokerServer) -> NodeProcess:
    await CONSUMERS["nats"].prepare(broker, "orders.nightly")
    node = cluster.start("--store", sqlite_url, env=environment(broker))
    await node.ready()
    return node


async def ended(node: NodeProcess, job: Any, status: str) -> dict[str, Any]:
    async def look() -> Any:
        _, page = await ask(node, "GET", f"/v1/runs?job_id={job['id']}&status={status}")
        return page["items"]

    return (await until(look, f"a run of it is {status}", 30))[-1]  # type: ignore[no-any-return]


async def command(node: NodeProcess, broker: BrokerServer, *words: str) -> tuple[int, str]:
    process = NodeProcess(*words, directory=node.directory, port=0, env=environment(broker))
    before = len(process.output())
    code = await process.exited()
    return code, process.output()[before:]


async def test_jobs_publish_by_api_and_command_line(node: NodeProcess, broker: BrokerServer):
    job = await post(node, "/v1/jobs", {"key": "nightly", "schedule": {"in": "1ms"}, "target": TARGET})
    assert job["target"] == TARGET
    run = await ended(node, job, "DONE")
    _, run = await ask(node, "GET", f"/v1/runs/{run['id']}")
    assert run["result"] == {"broker": "orders", "stream": "orders-nightly", "seq": 1}
    add = ("--in", "1ms", "--key", "second", "--broker", "orders", "--topic", "orders.nightly", "-H", "Colour: red")
    code, said = await command(
        node, broker, "jobs", "add", *add, "--body", '{"n": 2}', "--message-key", "k", "--server", node.url
    )
    assert code == 0, said
    _, second = await ask(node, "GET", "/v1/jobs/by-key/second")
    run = await ended(node, second, "DONE")
    code, said = await command(node, broker, "runs", "show", run["id"], "--server", node.url)
    assert code == 0
    assert "orders-nightly" in said
    code, said = await command(node, broker, "jobs", "list", "--server", node.url)
    assert "orders/orders.nightly" in said
    first, other = await CONSUMERS["nats"].consume(broker, "orders.nightly")
    assert (json.loads(first.body), json.loads(other.body)) == ({"full": True}, {"n": 2})
    assert (other.id, other.headers["Colour"], other.headers["x-onthedot-key"]) == (run["id"], "red", "k")
    _, metrics = await ask(node, "GET", "/metrics")
    assert 'onthedot_broker_up{broker="orders"} 1.0' in metrics
    _, document = await ask(node, "GET", "/openapi.json")
    assert document["components"]["schemas"]["QueueTarget"]["properties"]["topic"]["maxLength"] == 1000
    _, page = await ask(node, "GET", "/jobs?status=all", headers={"accept": "text/html"})
    assert "orders/orders.nightly" in page
    assert PASSWORD not in node.output() + json.dumps(job) + metrics + page


async def test_what_can_not_work_is_refused_with_what_can(node: NodeProcess):
    wrong: dict[str, dict[str, Any]] = {
        "target.broker": {"broker": "order"},
        "target.topic": {"topic": "orders.*"},
        "target.format": {"format": "celery", "task": "t"},
        "target.partition": {"partition": 3},
    }
    for path, fields in wrong.items():
        status, problem = await ask(
            node, "POST", "/v1/jobs", {"schedule": {"in": "1s"}, "target": {**TARGET, **fields}}
        )
        assert (status, problem["errors"][0]["path"]) == (422, path)
        if path == "target.broker":
            assert problem["errors"][0]["accepted"] == "orders"


async def test_a_broker_that_hangs_ends_in_a_time_out_and_can_be_cancelled(node: NodeProcess, broker: BrokerServer):
    warm = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": TARGET})
    await ended(node, warm, "DONE")
    broker.freeze()
    policy = {"timeout": "300ms", "retry": {"attempts": 1}}
    job = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": TARGET, "policy": policy})
    run = await ended(node, job, "FAILED")
    assert (run["outcome"]["kind"], run["error"]) == ("timeout", "timed out after 0.3 s")
    job = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": TARGET, "policy": {"timeout": "60s"}})
    run = await ended(node, job, "EXECUTING")
    await post(node, f"/v1/runs/{run['id']}/cancel", expect=202)
    run = await ended(node, job, "CANCELLED")
    assert run["error"] == "cancelled by a user"
    broker.thaw()
    assert await node.stop() == 0


async def test_a_broker_that_is_away_is_told_everywhere_and_the_run_is_tried_again(
    node: NodeProcess, broker: BrokerServer
):
    code, said = await command(node, broker, "doctor", "--server", node.url)
    assert f"✓ broker    orders: NATS at 127.0.0.1:{broker.port} is reachable, login accepted" in said
    broker.stop()
    code, said = await command(node, broker, "doctor", "--server", node.url)
    assert code == 1
    assert f"✗ broker    orders: NATS at 127.0.0.1:{broker.port}: " in said
    policy = {"retry": {"attempts": 50, "backoff": "100ms", "factor": 1}}
    job = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": TARGET, "policy": policy})

    async def tried() -> Any:
        _, page = await ask(node, "GET", f"/v1/runs?job_id={job['id']}&status=PENDING")
        return [run for run in page["items"] if run["attempt"] > 1]

    (waiting,) = await until(tried, "it was tried twice")
    _, run = await ask(node, "GET", f"/v1/runs/{waiting['id']}")
    assert run["attempts"][0]["error"].startswith("broker orders: ")
    _, metrics = await ask(node, "GET", "/metrics")
    assert 'onthedot_broker_up{broker="orders"} 0.0' in metrics
    assert 'onthedot_broker_unavailable_total{broker="orders"} 1.0' in metrics
    assert '"event": "broker.unavailable"' in node.output()
    broker.start()
    run = await ended(node, job, "DONE")
    assert run["attempt"] > 1
    assert [message.id for message in await CONSUMERS["nats"].consume(broker, "orders.nightly")] == [run["id"]]


async def test_a_wrong_password_is_told_by_run_and_doctor(cluster: Cluster, sqlite_url: str, broker: BrokerServer):
    env = {"ONTHEDOT_BROKERS": json.dumps({"orders": {"url": broker.with_wrong_password}})}
    node = cluster.start("--store", sqlite_url, env=env)
    await node.ready()
    policy = {"retry": {"attempts": 1}}
    job = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": TARGET, "policy": policy})
    run = await ended(node, job, "FAILED")
    assert "authorization violation" in run["error"].lower()
    doctor = NodeProcess("doctor", "--server", node.url, directory=node.directory, port=0, env=env)
    assert await doctor.exited() == 1
    assert "that the url and the login of [brokers.orders] are correct" in doctor.output()


async def test_a_consumer_can_tell_later_how_it_ended(node: NodeProcess, broker: BrokerServer):
    policy = {"completion": "callback", "retry": {"attempts": 3, "backoff": "100ms"}}
    job = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": TARGET, "policy": policy})
    run = await ended(node, job, "EXECUTING")
    seen: list[str] = []

    async def published() -> Any:
        messages = await CONSUMERS["nats"].consume(broker, "orders.nightly")
        return [message for message in messages if message.id not in seen]

    for number, told in ((1, {"status": "failed", "error": "no"}), (2, {"status": "done", "result": {"rows": 3}})):
        (message,) = await until(published, "a message of this try")
        assert message.id == f"{run['id']}-{number}"
        seen.append(message.id)
        path = message.headers["x-onthedot-callback"].removeprefix(node.url)
        status, _ = await ask(node, "POST", path, told)
        assert status == 200
    await ended(node, job, "DONE")
    _, run = await ask(node, "GET", f"/v1/runs/{run['id']}")
    assert run["result"] == {"rows": 3}


async def test_a_broker_that_hangs_or_is_away_keeps_no_other_from_firing_and_nothing_is_given_up(
    cluster: Cluster, sqlite_url: str, broker: BrokerServer
):
    with running_redis() as hanging:
        tables = {"orders": {"url": broker.url}, "events": {"url": hanging.url}}
        await CONSUMERS["nats"].prepare(broker, "orders.nightly")
        env = {"ONTHEDOT_BROKERS": json.dumps(tables), "ONTHEDOT_CONCURRENCY": "20"}
        node = cluster.start("--store", sqlite_url, env=env)
        await node.ready()
        event = {"type": "queue", "broker": "events", "topic": "events"}
        job = {"schedule": {"in": "1ms"}, "target": event, "policy": {"timeout": "1s", "retry": {"attempts": 3}}}
        first = await post(node, "/v1/jobs", job)
        await ended(node, first, "DONE")
        hanging.freeze()
        await post(node, "/v1/jobs/batch", [job] * 40, expect=200)

        async def waits() -> Any:
            _, page = await ask(node, "GET", "/v1/runs?status=PENDING")
            return [run for run in page["items"] if run["waiting_for"] == "events"]

        await until(waits, "runs wait for the broker that hangs")
        other = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": TARGET})
        run = await ended(node, other, "DONE")
        assert run["attempt"] == 1
        hanging.thaw()

        async def all_done() -> bool:
            _, page = await ask(node, "GET", "/v1/runs?status=DONE&limit=100")
            return len(page["items"]) == 42

        await until(all_done, "what waited is published", 60)
        ids = [message.id for message in await CONSUMERS["redis"].consume(hanging, "events")]
        assert len(set(ids)) == 41


PAGE = (Path(__file__).parents[2] / "docs" / "queues.md").read_text()
BROKERS = {"orders": "NATS JetStream", "tasks": "Redis streams", "events": "Kafka", "work": "SQS"}


def section(title: str) -> str:
    _, _, rest = PAGE.partition(f"\n## {title}\n")
    assert rest, title
    return rest.partition("\n## ")[0]


def result_of(title: str) -> set[str]:
    """The fields that the page says a result has, without those of some queues only."""
    (said,) = re.findall(r"The\s+result\s+has\s+((?:`\w+`(?:,\s+|\s+and\s+)?)+)", section(title))
    return {"broker", *re.findall(r"`(\w+)`", said)}


async def test_the_page(cluster: Cluster, sqlite_url: str, broker: BrokerServer, tmp_path: Path):
    """RabbitMQ has the same tests without a node: it takes longer to start than all of this."""
    page = TypedPage("queues.md", tmp_path)
    (tmp_path / "nats").write_text(f"{PASSWORD}\n")
    with running_redis() as tasks, running_kafka() as events, running_sqs() as work:
        orders = page.block("[brokers.orders]", "toml").replace("/run/secrets/nats", str(tmp_path / "nats"))
        tables = {"tasks": tasks.url, "events": events.url, "work": work.url}
        page.settings(
            orders.replace("nats.internal:4222", f"127.0.0.1:{broker.port}")
            + "".join(f'[brokers.{name}]\nurl = "{url}"\n' for name, url in tables.items())
        )
        said = page.block("✓ broker", "").partition("\n")[0].replace("nats.internal:4222", f"127.0.0.1:{broker.port}")
        assert re.sub(" +", " ", said) in await doctor(page)
        node = cluster.start("--store", sqlite_url)
        await node.ready()
        await add_stream(page, broker)
        await a_job_is_created(page, node, broker)
        await FromSqs().prepare(work, "orders_nightly")
        for name, title in BROKERS.items():
            target = {**TARGET, "broker": name, "topic": TARGET["topic"] if name != "work" else "orders_nightly"}
            job = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": target})
            run = await run_with(node, job["id"], "DONE")
            assert set(run["result"]) == result_of(title), title
        await a_task_of_celery(page, node, tasks)


async def add_stream(page: TypedPage, broker: BrokerServer) -> None:
    """By the client library: the command of the page is not to be had here."""
    words = shlex.split(page.block("nats stream add"))
    assert words[:3] + words[4:5] + words[6:] == ["nats", "stream", "add", "--subjects", "--defaults"]
    client = await nats.connect(broker.url)
    await client.jetstream().add_stream(name=words[3], subjects=[words[5]])
    await client.close()


async def a_job_is_created(page: TypedPage, node: NodeProcess, broker: BrokerServer) -> None:
    await page.type(page.block("--broker orders"), node)
    _, made = await ask(node, "GET", "/v1/jobs/by-key/nightly")
    block = json.loads(page.block('"broker": "orders"', "json"))
    status, same = await ask(node, "PUT", "/v1/jobs/by-key/nightly", block)
    assert (status, same["version"], same["target"]) == (200, made["version"], block["target"])
    await page.type("onthedot jobs run nightly", node)
    run = await run_with(node, "nightly", "DONE")
    typed, _, shown = page.block("jq -c .result", "console").removeprefix("$ ").partition("\n")
    command, _, _ = typed.replace("7-1763234567890", run["id"]).partition(" | ")
    printed = json.loads(await page.type(command, node))["result"]
    assert printed == json.loads(shown) | {"seq": 1}
    assert "ORDERS" in await html_of(node, run["id"])
    event = {**TARGET, "format": "cloudevents"}
    job = await post(node, "/v1/jobs", {"key": "event", "schedule": {"in": "1ms"}, "target": event})
    run = await run_with(node, job["id"], "DONE")
    published = {message.id: message for message in await consumed(broker, "ORDERS", "orders.>")}
    sent = json.loads(published[run["id"]].data)
    shown_event = json.loads(page.block('"specversion"', "json"))
    own = {name: sent[name] for name in ("id", "source", "subject", "time")}
    assert sent == shown_event | own
    assert (sent["id"], sent["subject"]) == (run["id"], "event")
    headers = re.findall(r"^\| `(x-onthedot-[a-z-]+|content-type)`", section("The message"), re.MULTILINE)
    assert set(headers) - {"x-onthedot-callback"} <= set(published[run["id"]].headers)


class Published:
    def __init__(self, headers: dict[str, str], data: bytes) -> None:
        self.id, self.headers, self.data = headers["Nats-Msg-Id"], headers, data


async def consumed(broker: BrokerServer, stream: str, subject: str) -> list[Published]:
    client = await nats.connect(broker.url)
    try:
        subscription = await client.jetstream().pull_subscribe(subject, stream=stream)
        return [Published(message.headers or {}, message.data) for message in await subscription.fetch(10, timeout=5)]
    finally:
        await client.close()


async def a_task_of_celery(page: TypedPage, node: NodeProcess, tasks: BrokerServer) -> None:
    """Workers of Celery take such ones in tests/targets."""
    (run_id,) = re.findall(r"\bjob (\d+)", (await page.type(page.block("--format celery"), node)).lower())
    await page.type(f"onthedot jobs run {run_id}", node)
    run = await run_with(node, int(run_id), "DONE")
    client = redis.asyncio.Redis.from_url(tasks.url)
    (envelope,) = await client.lrange("celery", 0, -1)
    await client.aclose()
    task = json.loads(envelope)
    assert (task["headers"]["task"], task["headers"]["id"]) == ("shop.tasks.report", run["id"])
    assert json.loads(base64.b64decode(task["body"]))[1] == {"full": True}
