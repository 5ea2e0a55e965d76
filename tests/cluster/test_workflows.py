"""docs/workflows.md, typed as it stands, with strict stand-ins for all three engines behind one node: what it shows
happens, and what goes wrong is said by API, command line, page and doctor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from operator import contains
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.nodes import Cluster, post
from tests.cluster.typed import TypedPage, doctor, html_of, log_of, run_of, run_with
from tests.cluster.walking import ask
from tests.services.fake_aws import KEY, SECRET, FakeAws
from tests.services.fake_step_functions import FakeStepFunctions
from tests.services.fake_workflow_servers import PASSWORD, TOKEN, FakeAirflow, FakeArgo
from tests.services.process import NodeProcess
from tests.services.waiting import until

pytestmark = pytest.mark.timeout(240)
MACHINE = "arn:aws:states:eu-central-1:123456789012:stateMachine:report"
ENVIRONMENT = {"ONTHEDOT_LEASE": "2s"}


class Engines:
    """The three, as a test needs them."""

    def __init__(self, airflow: FakeAirflow, argo: FakeArgo, aws: FakeAws, machine: FakeStepFunctions) -> None:
        self.airflow, self.argo, self.aws, self.machine = airflow, argo, aws, machine
        self.targets = {
            "etl": {"type": "workflow", "engine": "etl", "workflow": "nightly_load"},
            "batch": {"type": "workflow", "engine": "batch", "workflow": "report"},
            "stepfunctions": {"type": "workflow", "engine": "stepfunctions", "workflow": MACHINE},
        }

    @property
    def made(self) -> dict[str, dict[str, Any]]:
        return {"etl": self.airflow.runs, "batch": self.argo.workflows, "stepfunctions": self.machine.executions}

    def end(self, engine: str, name: str) -> None:
        match engine:
            case "etl":
                self.airflow.end(name)
            case "batch":
                self.argo.end(name, outputs={"parameters": [{"name": "rows", "value": "3"}]})
            case _:
                self.machine.end(name, output='{"rows": "3"}')

    def fail(self, engine: str, name: str) -> None:
        match engine:
            case "etl":
                self.airflow.failed_tasks = ["load"]
                self.airflow.end(name, "failed")
            case "batch":
                self.argo.end(name, "Failed", message="child 'load' failed")
            case _:
                self.machine.end(name, "FAILED", error="States.TaskFailed", cause="load failed")

    def status(self, engine: str, name: str) -> str:
        found = self.made[engine][name]
        return str(
            found["state"] if engine == "etl" else found["status"]["phase"] if engine == "batch" else found["status"]
        )

    async def restart(self) -> None:
        for server in (self.airflow, self.argo, self.aws):
            await server.stop()
            await server.start()


STOPPED = {"etl": "failed", "batch": "Failed", "stepfunctions": "ABORTED"}


@pytest.fixture
async def engines() -> AsyncIterator[Engines]:
    async with FakeAirflow() as airflow, FakeArgo() as argo, FakeAws() as aws:
        airflow.dags = {"nightly_load"}
        aws.services["AWSStepFunctions"] = machine = FakeStepFunctions(MACHINE)
        yield Engines(airflow, argo, aws, machine)


@pytest.fixture
def page(tmp_path: Path, engines: Engines) -> TypedPage:
    """Its settings with the addresses and the secrets of the stand-ins."""
    page = TypedPage("workflows.md", tmp_path)
    text = page.block("[workflows.etl]", "toml") + f'endpoint = "{engines.aws.url}"\n'
    for shown, real in (
        ("https://airflow.example.com", engines.airflow.url),
        ("https://argo.example.com:2746", engines.argo.url),
        ("/run/secrets/", f"{tmp_path}/"),
    ):
        assert shown in text
        text = text.replace(shown, real)
    page.settings(text)
    (tmp_path / ".aws").mkdir()
    log_in(page, PASSWORD, TOKEN, SECRET)
    return page


def log_in(page: TypedPage, password: str, token: str, secret: str) -> None:
    credentials = f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {secret}\n"
    for name, text in (("airflow", password), ("argo", token), (".aws/credentials", credentials)):
        (page.directory / name).write_text(text)


async def start(cluster: Cluster, store: str) -> NodeProcess:
    node = cluster.start("--store", store, env=ENVIRONMENT)
    await node.ready()
    return node


async def one_each(node: NodeProcess, engines: Engines, **policy: Any) -> dict[str, dict[str, Any]]:
    """A run on each engine that its engine has begun."""
    runs = {}
    for engine, target in engines.targets.items():
        job = {"schedule": {"in": "1ms"}, "target": target, "policy": {"retry": {"attempts": 1}} | policy}
        runs[engine] = await post(node, "/v1/jobs", job)
    for engine, made in runs.items():
        runs[engine] = run = await run_with(node, made["id"], "EXECUTING", "FAILED")
        assert run["status"] == "EXECUTING", run
        name = f"{run['id']}-1"
        await until(partial(contains, engines.made[engine], name), f"{engine} has it")
    return runs


async def all_ended(node: NodeProcess, runs: dict[str, dict[str, Any]], status: str) -> dict[str, dict[str, Any]]:
    found = await asyncio.gather(*(run_of(node, run["id"], "DONE", "FAILED", "CANCELLED") for run in runs.values()))
    assert {run["status"] for run in found} == {status}, found
    return dict(zip(runs, found, strict=True))


async def test_the_page(page: TypedPage, engines: Engines, cluster: Cluster, sqlite_url: str):
    said = await doctor(page)
    for name, title, about in (
        ("etl", "Airflow", "API version 2"),
        ("batch", "Argo Workflows", "namespace jobs"),
        ("stepfunctions", "AWS Step Functions", "region eu-central-1"),
    ):
        assert f"✓ workflows {name}: {title} at http://" in said
        assert f"is reachable, login accepted ({about})" in said
    node = await start(cluster, sqlite_url)
    ending = asyncio.create_task(ends_when_begun(engines, "etl"))
    run = await page.add_run_and_look(page.block("--engine etl"), node, "DONE")
    name = await ending
    assert (name, run["result"]) == (f"{run['id']}-1", None)
    assert engines.airflow.runs[name]["conf"] == {"day": "monday"}
    link = f"{engines.airflow.url}/dags/nightly_load/runs/{name}"
    assert run["outcome"]["link"] == link
    log = f"started {name} on Airflow at {engines.airflow.url}\nended: success; see {link}\n"
    assert await log_of(node, run["id"]) == log
    assert log == await page.type(f"onthedot runs logs {run['id']}", node)
    assert "workflow etl/nightly_load" in run["shown"]
    assert link in await html_of(node, run["id"])
    await page.type(page.block("curl -X POST"), node)
    ending = asyncio.create_task(ends_when_begun(engines, "stepfunctions"))
    await page.type("onthedot jobs run report", node)
    run = await run_with(node, "report", "DONE")
    assert (run["result"], await ending) == ({"rows": "3"}, f"{run['id']}-1")
    assert '"rows"' in await page.type(f"onthedot runs show {run['id']}", node)
    assert "rows" in await html_of(node, run["id"])


async def ends_when_begun(engines: Engines, engine: str) -> str:
    (name,) = await until(lambda: list(engines.made[engine]), f"{engine} has it", 60)
    engines.end(engine, name)
    return str(name)


async def test_what_goes_wrong(page: TypedPage, engines: Engines, cluster: Cluster, sqlite_url: str):
    node = await start(cluster, sqlite_url)
    await it_fails(node, engines)
    await it_takes_too_long_or_is_cancelled(node, engines)
    node = await a_node_is_killed_and_the_engines_restarted(node, engines, cluster, sqlite_url)
    await a_wrong_login(page, node, engines)
    status, problem = await ask(
        node, "POST", "/v1/jobs", {"schedule": {"every": "1h"}, "target": engines.targets["etl"] | {"engine": "elt"}}
    )
    accepted = "batch, etl, stepfunctions; others by [workflows.NAME] in onthedot.toml"
    assert (status, problem["errors"][0]["accepted"]) == (422, accepted)


async def it_fails(node: NodeProcess, engines: Engines) -> None:
    runs = await one_each(node, engines)
    for engine, run in runs.items():
        engines.fail(engine, f"{run['id']}-1")
    for engine, run in (await all_ended(node, runs, "FAILED")).items():
        assert run["error"].startswith("the workflow failed: "), engine
        assert "load" in run["error"]
        assert "the workflow failed: " in await html_of(node, run["id"])


async def it_takes_too_long_or_is_cancelled(node: NodeProcess, engines: Engines) -> None:
    late = await one_each(node, engines, timeout="1s")
    unwanted = await one_each(node, engines)
    for run in unwanted.values():
        await post(node, f"/v1/runs/{run['id']}/cancel", expect=202)
    for run in (await all_ended(node, late, "FAILED")).values():
        assert (run["outcome"]["kind"], run["error"]) == ("timeout", "timed out after 1 s")
    for run in (await all_ended(node, unwanted, "CANCELLED")).values():
        assert run["error"] == "cancelled by a user"
    for runs in (late, unwanted):
        assert {engine: engines.status(engine, f"{run['id']}-1") for engine, run in runs.items()} == STOPPED


async def a_node_is_killed_and_the_engines_restarted(
    node: NodeProcess, engines: Engines, cluster: Cluster, store: str
) -> NodeProcess:
    runs = await one_each(node, engines)
    before = {engine: len(made) for engine, made in engines.made.items()}
    node.kill()
    await engines.restart()
    second = await start(cluster, store)
    for engine, run in runs.items():
        engines.end(engine, f"{run['id']}-1")
    for engine, run in (await all_ended(second, runs, "DONE")).items():
        assert (run["attempt"], len(run["attempts"]), run["tries"], run["losses"]) == (2, 1, 1, 0)
        assert run["result"] == (None if engine == "etl" else {"rows": "3"})
        assert (await log_of(second, run["id"])).startswith(f"found {run['id']}-1 on ")
    assert {engine: len(made) for engine, made in engines.made.items()} == before
    return second


async def a_wrong_login(page: TypedPage, node: NodeProcess, engines: Engines) -> None:
    """Secrets in files are read again: no restart, neither when they go nor when they come."""
    log_in(page, "wrong", "wrong", SECRET)
    engines.airflow.tokens.clear()
    said = await doctor(page, node, code=1)
    for name in ("etl", "batch"):
        target = engines.targets[name]
        made = await post(
            node, "/v1/jobs", {"schedule": {"in": "1ms"}, "target": target, "policy": {"retry": {"attempts": 1}}}
        )
        run = await run_with(node, made["id"], "FAILED")
        assert run["error"].startswith("not started: ")
        assert "HTTP 401" in run["error"]
        assert f"✗ workflows {name}: " in said
    log_in(page, PASSWORD, TOKEN, SECRET)
    runs = await one_each(node, engines)
    for engine, run in runs.items():
        engines.end(engine, f"{run['id']}-1")
    await all_ended(node, runs, "DONE")
