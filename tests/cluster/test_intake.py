"""Jobs by queue, in a real node with a real broker: readyz, metrics and doctor; docs/intake.md typed as it stands."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.nodes import Cluster
from tests.cluster.typed import TypedPage
from tests.cluster.typed import doctor as doctor_of
from tests.cluster.walking import ask
from tests.services.brokers import PASSWORD, USER, BrokerServer, running_nats, running_redis
from tests.services.consumers import CONSUMERS
from tests.services.process import NodeProcess
from tests.services.senders import SENDERS
from tests.services.waiting import until

pytestmark = pytest.mark.timeout(120)
JOB = {"schedule": {"cron": "0 3 * * *"}, "target": {"type": "webhook", "url": "http://127.0.0.1:5003/"}}


@pytest.fixture
def broker() -> Iterator[BrokerServer]:
    with running_nats() as server:
        yield server


def environment(broker: BrokerServer) -> dict[str, str]:
    table = {"broker": "it", "topic": "jobs", "dead_letter": "jobs.refused"}
    return {
        "ONTHEDOT_BROKERS": json.dumps({"it": {"url": broker.url}}),
        "ONTHEDOT_INTAKE": json.dumps({"orders": table}),
    }


async def doctor(node: NodeProcess, broker: BrokerServer) -> list[dict[str, Any]]:
    process = NodeProcess("doctor", "--json", directory=node.directory, port=0, env=environment(broker))
    before = len(process.output())
    await process.exited()
    found: list[dict[str, Any]] = json.loads(process.output()[before:])
    return [each for each in found if each["subject"] == "intake"]


async def test_a_node_reads_and_says_how_it_is(cluster: Cluster, sqlite_url: str, broker: BrokerServer):
    node = cluster.start("--store", sqlite_url, env=environment(broker))
    await node.ready()

    async def told() -> str:
        _, ready = await ask(node, "GET", "/readyz")
        return str(ready["intake"]["orders"])

    async def says_what_is_missing() -> bool:
        return "no JetStream stream has the subject 'jobs'" in await told()

    async def is_ok() -> bool:
        return await told() == "ok"

    await until(says_what_is_missing, "readyz says what is missing")
    (finding,) = await doctor(node, broker)
    assert finding["state"] == "wrong"
    for topic in ("jobs", "jobs.refused"):
        await CONSUMERS["nats"].prepare(broker, topic)
    await until(is_ok, "it reads")
    messages = [b"bad", json.dumps({"op": "create", "key": "nightly", "job": JOB}).encode()]
    await SENDERS["nats"](broker, "jobs", [*zip(("m1", "m2"), messages, strict=True)])

    async def metrics() -> str:
        _, text = await ask(node, "GET", "/metrics")
        return text if 'messages_total{intake="orders",result="refused"} 1.0' in text else ""

    text = await until(metrics, "both were handled")
    assert 'onthedot_intake_messages_total{intake="orders",result="ok"} 1.0' in text
    assert 'onthedot_intake_up{intake="orders"} 1.0' in text
    assert 'onthedot_intake_lag{intake="orders"}' in text
    _, job = await ask(node, "GET", "/v1/jobs/by-key/nightly")
    assert job["owner"] == "intake:orders"
    (finding,) = await doctor(node, broker)
    assert (finding["state"], "orders: jobs on NATS at" in finding["found"]) == ("ok", True)
    assert await node.stop() == 0
    assert "Traceback" not in node.output()


async def test_the_page(cluster: Cluster, sqlite_url: str, tmp_path: Path):
    """Each message is waited for, as a reader does; Redis is at another address, and wants a login."""
    page = TypedPage("intake.md", tmp_path)
    with running_redis() as server:
        (tmp_path / "redis-cli").write_text(
            f"#!/bin/sh\nexec {Path(sys.executable).with_name('redis-cli')} "
            f'-p {server.port} --no-auth-warning --user {USER} --pass {PASSWORD} "$@"\n'
        )
        (tmp_path / "redis-cli").chmod(0o755)
        page.settings(page.block("[intake.orders]", "toml").replace("redis://127.0.0.1:6379", server.url))
        node = cluster.start("--store", sqlite_url)
        await node.ready()
        lines = [line for line in page.block("onthedot serve &").splitlines() if "serve" not in line]
        printed: dict[str, str] = {}

        async def handled(count: int) -> None:
            async def enough() -> bool:
                _, text = await ask(node, "GET", "/metrics")
                found = re.findall(r"^onthedot_intake_messages_total{.*} (\S+)", text, re.MULTILINE)
                return sum(map(float, found)) == count

            await until(enough, f"{count} messages are handled")

        sent = 0
        for line in lines:
            said = await page.type(f"PATH={tmp_path}:$PATH\n{line}", node)
            printed[line] = printed.get(line, "") + said
            if line.startswith("redis-cli XADD"):
                sent += 1
                await handled(sent)
        shown = page.block("✓ intake", "").replace("127.0.0.1:6379", f"127.0.0.1:{server.port}")
        assert re.sub(" +", " ", shown).strip() in await doctor_of(page)
    assert sent == 7
    (shows,) = {line for line in lines if line == "onthedot jobs show nightly"}
    assert "0 3 * * *" in printed[shows]
    assert "0 4 * * *" in printed[shows]
    assert "stocktaking" in printed[shows]
    (letter,) = [printed[line] for line in lines if "XRANGE" in line]
    assert "unknown operation" in letter
    assert '"id":"m5"' in letter.replace("\\", "").replace(" ", "")
    (counted,) = [printed[line] for line in lines if line.startswith("curl")]
    counts = dict(re.findall(r'intake="orders",result="(\w+)"} (\S+)', counted))
    assert counts == {"ok": "5.0", "refused": "1.0", "repeated": "1.0"}
    status, _ = await ask(node, "GET", "/v1/jobs/by-key/nightly")
    assert status == 404
