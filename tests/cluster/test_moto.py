"""Lambda and Step Functions with a real node and moto in the place of AWS: what is sent is read by code that is not
ours. Functions answer with what they are sent, and executions there never end by themselves."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.cluster.nodes import Cluster, post
from tests.cluster.typed import run_of, run_with
from tests.services.brokers import BrokerServer
from tests.services.fake_aws import KEY, REGION, SECRET
from tests.services.simulated import running_sqs
from tests.services.waiting import until

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def moto() -> Iterator[BrokerServer]:
    with running_sqs() as server:  # and all else that it has
        body = json.dumps({"lambda": {"use_docker": False}}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/moto-api/config", body, timeout=60):
            yield server


@pytest.fixture
def machines(moto: BrokerServer) -> Iterator[Any]:
    login = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
    client = boto3.client("stepfunctions", region_name=REGION, endpoint_url=f"http://127.0.0.1:{moto.port}", **login)
    yield client
    client.close()


def executions(machines: Any, machine: str) -> dict[str, str]:
    return {each["name"]: each["status"] for each in machines.list_executions(stateMachineArn=machine)["executions"]}


async def test_a_function_is_called_and_an_execution_survives_its_node(
    cluster: Cluster, sqlite_url: str, moto: BrokerServer, machines: Any, tmp_path: Path
):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    )
    aws = {"region": REGION, "endpoint": f"http://127.0.0.1:{moto.port}"}
    env = {"ONTHEDOT_AWS": json.dumps(aws), "ONTHEDOT_LEASE": "2s"}
    node = cluster.start("--store", sqlite_url, env=env)
    await node.ready()
    payload = {"day": 1, "run": {"$": "run_id"}}
    target: dict[str, Any] = {"type": "lambda", "function": "echo", "payload": payload}
    job = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": target})
    run = await run_with(node, job["id"], "DONE", "FAILED")
    assert run["result"] == {"day": 1, "run": run["id"]}

    definition = json.dumps({"StartAt": "it", "States": {"it": {"Type": "Pass", "End": True}}})
    role = "arn:aws:iam::123456789012:role/it"
    machine = machines.create_state_machine(name="report", definition=definition, roleArn=role)["stateMachineArn"]
    target = {"type": "workflow", "engine": "stepfunctions", "workflow": machine}
    job = await post(node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": target})
    run = await run_with(node, job["id"], "EXECUTING")
    name = f"{run['id']}-1"
    await until(lambda: executions(machines, machine) == {name: "RUNNING"}, "it is started")
    node.kill()
    second = cluster.start("--store", sqlite_url, env=env)
    await second.ready()
    await post(second, f"/v1/runs/{run['id']}/cancel", expect=202)
    run = await run_of(second, run["id"], "CANCELLED", "FAILED")
    assert (run["status"], run["tries"], run["losses"]) == ("CANCELLED", 1, 0)
    assert executions(machines, machine) == {name: "ABORTED"}
