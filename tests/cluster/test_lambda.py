"""docs/lambda.md, typed as it stands, with a strict stand-in for AWS: what it shows happens, and what goes wrong is
said by API, command line, page and doctor. `proof.lambdas` does the same with moto, under load."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.nodes import Cluster, post
from tests.cluster.typed import TypedPage, doctor, html_of, log_of, run_with
from tests.cluster.walking import ask
from tests.services.fake_aws import KEY, SECRET, FakeAws, Invoked, echoes, fails, hangs
from tests.services.fake_step_functions import FakeStepFunctions
from tests.services.process import NodeProcess
from tests.services.waiting import until

pytestmark = pytest.mark.timeout(180)
ENVIRONMENT = {"ONTHEDOT_LEASE": "2s"}


@pytest.fixture
async def aws() -> AsyncIterator[FakeAws]:
    async with FakeAws() as server:
        server.services["AWSStepFunctions"] = FakeStepFunctions()
        server.functions = {"nightly-report": echoes, "resize:live": echoes, "fails": fails, "hangs": hangs}
        yield server


@pytest.fixture
def page(tmp_path: Path, aws: FakeAws) -> TypedPage:
    page = TypedPage("lambda.md", tmp_path)
    page.settings(page.block("[aws]", "toml") + f'endpoint = "{aws.url}"\n')
    (tmp_path / ".aws").mkdir()
    log_in(page, SECRET)
    return page


def log_in(page: TypedPage, secret: str) -> None:
    credentials = f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {secret}\n"
    (page.directory / ".aws" / "credentials").write_text(credentials)


def job(function: str, **policy: Any) -> dict[str, Any]:
    target = {"type": "lambda", "function": function}
    return {"schedule": {"in": "1ms"}, "target": target, "policy": {"retry": {"attempts": 1}} | policy}


def ids_of(aws: FakeAws, function: str) -> list[str]:
    return [each.context["custom"]["run_id"] for each in aws.invoked if each.function == function]


def _called_times(aws: FakeAws, times: int) -> bool:
    return len(aws.invoked) == times


def _called_for(aws: FakeAws, run_id: str) -> bool:
    return run_id in ids_of(aws, "hangs")


async def test_the_page(page: TypedPage, aws: FakeAws, cluster: Cluster, sqlite_url: str):
    said, _, _ = page.block("onthedot doctor").partition("\n")
    _, _, shown = said.partition("# ")
    assert " ".join(shown.split()).replace("AWS eu-central-1", aws.url) in await doctor(page)
    node = cluster.start("--store", sqlite_url, env=ENVIRONMENT)
    await node.ready()
    run = await page.add_run_and_look(page.block("--lambda nightly-report"), node, "DONE")
    assert run["result"] == {"day": "monday"}
    for told in (run["shown"], await html_of(node, run["id"])):
        assert "monday" in told
        assert "START nightly-report" in told
    assert await log_of(node, run["id"]) == "START nightly-report\nEND nightly-report\n"
    await page.type(page.block("curl -X POST"), node)
    await page.type("onthedot jobs run resize", node)
    run = await run_with(node, "resize", "DONE")
    assert run["result"] is None
    (event,) = [each.event for each in aws.invoked if each.function == "resize:live"]
    assert (event["bucket"], event["run"], event["onthedot"]["run_id"]) == ("images", run["id"], run["id"])


async def test_a_function_tells_later_how_it_ended(page: TypedPage, aws: FakeAws, cluster: Cluster, sqlite_url: str):
    node = cluster.start("--store", sqlite_url, env=ENVIRONMENT)
    await node.ready()
    target = {"type": "lambda", "function": "resize:live", "invocation": "event"}
    policy = {"completion": "callback", "retry": {"attempts": 3, "backoff": "100ms"}}
    made = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": target, "policy": policy})
    for number, told in enumerate(({"status": "failed", "error": "no"}, {"status": "done", "result": [3]}), 1):
        await until(partial(_called_times, aws, number), "it is called")
        about = aws.invoked[-1].event["onthedot"]
        await run_with(node, made["id"], "EXECUTING")
        status, _ = await ask(node, "POST", about["callback"].removeprefix(node.url), told)
        assert status == 200
    run = await run_with(node, made["id"], "DONE")
    assert (run["result"], run["tries"]) == ([3], 2)


async def test_what_goes_wrong(page: TypedPage, aws: FakeAws, cluster: Cluster, sqlite_url: str):
    node = cluster.start("--store", sqlite_url, env=ENVIRONMENT)
    await node.ready()
    await fails_and_hangs(node)
    await aws_is_away(page, node, aws)
    await nobody_knows_us(page, node, aws)
    await a_node_is_killed(node, cluster, sqlite_url, aws)


async def fails_and_hangs(node: NodeProcess) -> None:
    made = await post(node, "/v1/jobs", job("fails"))
    run = await run_with(node, made["id"], "FAILED")
    assert run["error"] == "the function failed: ValueError: no such customer"
    assert "no such customer" in await html_of(node, run["id"])
    assert "START fails" in await log_of(node, run["id"])
    made = await post(node, "/v1/jobs", job("unknown"))
    run = await run_with(node, made["id"], "FAILED")
    assert run["error"].startswith("AWS Lambda: ResourceNotFoundException: ")
    made = await post(node, "/v1/jobs", job("hangs", timeout="300ms"))
    run = await run_with(node, made["id"], "FAILED")
    assert (run["outcome"]["kind"], run["error"]) == ("timeout", "timed out after 0.3 s")
    made = await post(node, "/v1/jobs", job("hangs"))
    run = await run_with(node, made["id"], "EXECUTING")
    await post(node, f"/v1/runs/{run['id']}/cancel", expect=202)
    run = await run_with(node, made["id"], "CANCELLED")
    assert run["error"] == "cancelled by a user"


async def aws_is_away(page: TypedPage, node: NodeProcess, aws: FakeAws) -> None:
    await aws.stop()
    assert "✗ lambda" in await doctor(page, node, code=1)
    made = await post(node, "/v1/jobs", job("resize:live", retry={"attempts": 50, "backoff": "100ms", "factor": 1}))

    async def tried() -> bool:
        _, found = await ask(node, "GET", f"/v1/jobs/{made['id']}/runs?status=PENDING")
        return any(run["attempt"] > 1 for run in found["items"])

    await until(tried, "it was tried twice")
    await aws.start()
    run = await run_with(node, made["id"], "DONE")
    assert run["attempts"][0]["error"].startswith("AWS Lambda was not reached: ")


async def nobody_knows_us(page: TypedPage, node: NodeProcess, aws: FakeAws) -> None:
    """Keys that are changed are found again: no restart."""
    aws.secret = "rotated"
    assert "InvalidSignatureException" in await doctor(page, node, code=1)
    made = await post(node, "/v1/jobs", job("resize:live"))
    run = await run_with(node, made["id"], "FAILED")
    assert run["error"].startswith("AWS Lambda: InvalidSignatureException: ")
    log_in(page, aws.secret)
    made = await post(node, "/v1/jobs", job("resize:live"))
    assert (await run_with(node, made["id"], "DONE", "FAILED"))["status"] == "DONE"
    assert SECRET not in node.output()


async def a_node_is_killed(node: NodeProcess, cluster: Cluster, store: str, aws: FakeAws) -> None:
    """What it waited for is called again, with the same id, by the next one; at most once, it is not."""
    once = await post(node, "/v1/jobs", job("hangs", delivery="at_most_once"))
    again = await post(node, "/v1/jobs", job("hangs"))
    for made in (once, again):
        run = await run_with(node, made["id"], "EXECUTING")
        await until(partial(_called_for, aws, run["id"]), "it was called")
    node.kill()
    told: list[str] = []

    async def answers(invoked: Invoked) -> Any:
        told.append(invoked.context["custom"]["attempt"])
        return {"rows": 3}

    aws.functions["hangs"] = answers
    await aws.stop()
    await aws.start()
    second = cluster.start("--store", store, env=ENVIRONMENT)
    await second.ready()
    run = await run_with(second, again["id"], "DONE", "FAILED")
    assert (run["status"], run["result"], run["losses"]) == ("DONE", {"rows": 3}, 1)
    assert (ids_of(aws, "hangs").count(run["id"]), told) == (2, ["2"])
    run = await run_with(second, once["id"], "DONE", "FAILED")
    assert (run["status"], run["outcome"]["kind"]) == ("FAILED", "unknown")
    assert ids_of(aws, "hangs").count(run["id"]) == 1


BLOCKED = "import sys\nsys.modules.update(dict.fromkeys(('aiobotocore', 'nats', 'aiokafka', 'redis', 'aiormq')))\n"
"""What is not installed can't be found."""


async def test_without_the_extras_each_kind_is_refused_with_the_command_that_installs_it(
    page: TypedPage, cluster: Cluster, sqlite_url: str
):
    queues = TypedPage("queues.md", page.directory)
    others = {
        "events": "kafka://kafka.internal:9092",
        "cache": "redis://a",
        "tasks": "amqp://a",
        "jobs": "sqs://eu-west-1",
    }
    tables = queues.block("[brokers.orders]", "toml")
    tables += "".join(f'[brokers.{name}]\nurl = "{url}"\n' for name, url in others.items())
    page.settings(page.block("[aws]", "toml") + tables)
    (page.directory / "sitecustomize.py").write_text(BLOCKED)
    env = {"PYTHONPATH": str(page.directory)}
    node = cluster.start("--store", sqlite_url, env=env)
    await node.ready()
    machine = "arn:aws:states:eu-central-1:123456789012:stateMachine:report"
    targets = {
        "pip install 'onthedot[aws]'": [
            {"type": "lambda", "function": "resize"},
            {"type": "workflow", "engine": "stepfunctions", "workflow": machine},
        ],
        "pip install 'onthedot[nats]'": [{"type": "queue", "broker": "orders", "topic": "a"}],
        "pip install 'onthedot[kafka]'": [{"type": "queue", "broker": "events", "topic": "a"}],
        "pip install 'onthedot[redis]'": [{"type": "queue", "broker": "cache", "topic": "a"}],
        "pip install 'onthedot[rabbitmq]'": [{"type": "queue", "broker": "tasks", "topic": "a"}],
        "pip install 'onthedot[sqs]'": [{"type": "queue", "broker": "jobs", "topic": "a"}],
    }
    for remedy, refused in targets.items():
        for target in refused:
            status, problem = await ask(node, "POST", "/v1/jobs", {"schedule": {"every": "1h"}, "target": target})
            assert (status, problem["errors"][0]["accepted"]) == (422, remedy), problem
            assert "not available" in json.dumps(problem)
    said = await page.type("onthedot doctor", node, code=1, **env)
    _, _, kafka = queues.block("✗ broker", "").partition("✗")
    assert f"✗{kafka}" in said
    assert "the client for AWS is not installed" in said
