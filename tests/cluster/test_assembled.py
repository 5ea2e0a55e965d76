"""The composition root, in this process: what the settings ask for is what runs."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from onthedot.errors import Invalid, SettingsError
from onthedot.jobsfile import parse_jobs, read_jobs_file
from onthedot.main import assembled, load_jobs
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.key import ApiKeySpec
from onthedot.model.schedule import Schedule
from onthedot.model.targets import CommandTarget, FunctionTarget, WebhookTarget
from onthedot.service import DEFAULT_TENANT
from onthedot.settings import CommandSetting, Settings
from onthedot.store import JobFilter, open_store
from onthedot.targets import Call
from tests.services.waiting import until
from tests.targets.sending import send


def settings(url: str, tmp_path, **fields) -> Settings:
    return Settings(store=url, logs_base_directory=tmp_path / "logs", grace=Duration.parse("1s"), **fields)


async def test_both_roles_run_and_get_ready(store_url, tmp_path):
    async with assembled(settings(store_url, tmp_path)) as running:
        assert running.app is not None
        node = running.node
        assert node is not None
        await until(lambda: node.ready, "the node is ready")
        (listed,) = await running.service.list_nodes()
        assert (listed.state, sorted(listed.roles)) == ("alive", ["api", "executor"])
        assert running.app.context.ready() is None
    store = await open_store(store_url)
    assert [node.state for node in await store.list_nodes() if node.state == "alive"] == []
    await store.close()


async def test_a_node_that_only_serves_is_shown_and_executes_nothing(sqlite_url, tmp_path):
    async with assembled(settings(sqlite_url, tmp_path, roles=("api",))) as running:
        assert running.app is not None
        await until(lambda: running.node.ready, "the node is ready")
        assert running.app.context.ready() is None
        (listed,) = await running.service.list_nodes()
        assert (listed.roles, listed.offers, listed.capacity) == (["api"], [], 0)


async def test_a_node_that_only_executes_serves_nothing(sqlite_url, tmp_path):
    async with assembled(settings(sqlite_url, tmp_path, roles=("executor",))) as running:
        assert running.app is None
        assert running.node is not None


async def test_not_ready_says_why(sqlite_url, tmp_path):
    async with assembled(settings(sqlite_url, tmp_path)) as running:
        assert running.app is not None
        assert running.app.context.ready() == "not registered yet"
        await until(lambda: running.node.ready, "the node is ready")
        await running.node.stop()
        assert running.app.context.ready() == "the node is stopping"


@pytest.mark.parametrize("host", ["0.0.0.0", "10.1.2.3", "::", "otd.example"])
async def test_beyond_this_machine_a_key_is_needed(sqlite_url, tmp_path, host):
    with pytest.raises(SettingsError, match="onthedot keys create") as caught:
        async with assembled(settings(sqlite_url, tmp_path, host=host, roles=("api",))):
            raise AssertionError("it must not start")
    assert host in str(caught.value)


async def test_beyond_this_machine_with_a_key_it_starts(sqlite_url, tmp_path):
    store = await open_store(sqlite_url)
    await store.create_key(ApiKeySpec(name="a"), "hash", "otd_")
    await store.close()
    async with assembled(settings(sqlite_url, tmp_path, host="0.0.0.0", roles=("api",))) as running:
        assert not await running.service.is_open()


async def test_who_serves_nothing_needs_no_key(sqlite_url, tmp_path):
    async with assembled(settings(sqlite_url, tmp_path, host="0.0.0.0", roles=("executor",))) as running:
        assert running.node is not None


PRIVATE = WebhookTarget(url="http://127.0.0.1:9/")


@pytest.mark.parametrize("roles", [("api",), ("executor",), ("api", "executor")])
async def test_webhooks_may_go_to_private_addresses_until_the_first_key(sqlite_url, tmp_path, roles):
    """By trust, not by binding: the roles of the node and where it listens make no difference."""
    async with assembled(settings(sqlite_url, tmp_path, roles=roles)) as running:
        running.prepared.targets.check(PRIVATE)
        await running.service.create_key(ApiKeySpec(name="a"))
        with pytest.raises(Invalid, match="EGRESS_ALLOW"):
            running.prepared.targets.check(PRIVATE)
        await until(lambda: running.node.ready, "beats")
        with pytest.raises(Invalid, match="EGRESS_ALLOW"):
            running.prepared.targets.check(PRIVATE)
    async with assembled(settings(sqlite_url, tmp_path, roles=roles)) as running:
        with pytest.raises(Invalid, match="EGRESS_ALLOW"):
            running.prepared.targets.check(PRIVATE)
    async with assembled(settings(sqlite_url, tmp_path, roles=roles, egress_allow=("127.0.0.0/8",))) as running:
        running.prepared.targets.check(PRIVATE)


async def test_who_asks_for_keys_from_the_start_is_not_open(sqlite_url, tmp_path):
    async with assembled(settings(sqlite_url, tmp_path, roles=("api",), auth=("keys",))) as running:
        with pytest.raises(Invalid, match="EGRESS_ALLOW"):
            running.prepared.targets.check(PRIVATE)


async def test_its_own_port_is_no_target(sqlite_url, tmp_path):
    chosen = settings(sqlite_url, tmp_path, port=8123, egress_allow=("127.0.0.0/8",))
    async with assembled(chosen) as running:
        for host in ("127.0.0.1", "localhost", "0x7f.1", "[::ffff:7f00:1]"):
            with pytest.raises(Invalid, match="used by On the Dot itself"):
                running.prepared.targets.check(WebhookTarget(url=f"http://{host}:8123/v1/keys"))
    async with assembled(settings(sqlite_url, tmp_path, port=8123, egress_allow=("127.0.0.1:8123",))) as running:
        running.prepared.targets.check(WebhookTarget(url="http://127.0.0.1:8123/healthz"))


async def test_functions_and_commands_are_those_that_were_registered(sqlite_url, tmp_path):
    text = """
    [[jobs]]
    identifier = "a"
    path = "from_file"
    function_name = "f"
    periodicity = "1h"
    [commands.of_file]
    argv = ["true"]
    """
    jobs = parse_jobs(text, "toml", tmp_path / "jobs.toml")
    given = settings(
        sqlite_url, tmp_path, functions=("from_settings",), commands={"of_settings": CommandSetting(argv=("true",))}
    )
    async with assembled(given, jobs=jobs) as running:
        check = running.prepared.targets.check
        for target in (FunctionTarget(function="from_file:f"), FunctionTarget(function="from_settings:g")):
            check(target)
        for command in ("of_file", "of_settings"):
            check(CommandTarget(command=command))
        for wrong in (FunctionTarget(function="os:system"), CommandTarget(command="rm")):
            with pytest.raises(Invalid):
                check(wrong)


async def test_a_jobs_file_opens_what_it_names_and_only_to_its_tenant(sqlite_url, tmp_path):
    (tmp_path / "mod.py").write_text("def f(): pass\ndef g(): pass\n")
    entry = {"periodicity": "1h", "path": "mod", "function_name": "f", "identifier": "a"}
    text = json.dumps({"jobs": [entry], "commands": {"of_file": {"argv": ["true"]}}})
    jobs = parse_jobs(text, "json", tmp_path / "jobs.json")
    given = settings(
        sqlite_url, tmp_path, functions=("open:one", "all"), commands={"of_all": CommandSetting(argv=("true",))}
    )
    async with assembled(given, jobs=jobs) as running:
        service = running.service
        await service.create_key(ApiKeySpec(name="theirs", scope="write", tenant="theirs"))
        theirs = await service.tenant_named("theirs")

        async def refused(tenant: int, target: FunctionTarget | CommandTarget) -> bool:
            job = JobSpec(schedule=Schedule(every=Duration.parse("1h")), target=target)
            answers = [await service.create_many(tenant, [job]), await tried(service.create_job(tenant, job))]
            assert isinstance(answers[0][0], Invalid) == isinstance(answers[1], Invalid), "every way in says the same"
            return isinstance(answers[1], Invalid)

        named, beside = FunctionTarget(function="mod:f"), FunctionTarget(function="mod:g")
        assert [await refused(DEFAULT_TENANT, target) for target in (named, beside)] == [False, True]
        assert [await refused(theirs, target) for target in (named, beside)] == [True, True]
        own, shared = CommandTarget(command="of_file"), CommandTarget(command="of_all")
        assert [await refused(DEFAULT_TENANT, target) for target in (own, shared)] == [False, False]
        assert [await refused(theirs, target) for target in (own, shared)] == [True, False]
        for function, wrong in (("open:one", False), ("open:two", True), ("all:any", False)):
            assert await refused(theirs, FunctionTarget(function=function)) == wrong

        call = Call(run_id="1-1", job_id=1, slot=1, attempt=1, target=named, tenant=theirs)
        outcome = await send(running.prepared.targets, call)
        assert (outcome.kind, outcome.error) == ("refused", "mod:f is not registered on this node")
        call = msgspec.structs.replace(call, target=own)
        assert (await send(running.prepared.targets, call)).kind == "refused", "also if it got into the store before"


async def tried(call):
    try:
        return await call
    except Invalid as invalid:
        return invalid


async def test_the_jobs_file_is_the_truth_for_its_own_jobs(sqlite_url, tmp_path):
    path = tmp_path / "jobs.yaml"
    entry = "- {{key: {0}, schedule: {{every: 1h}}, target: {{type: webhook, url: 'http://127.0.0.1:9/'}}}}\n"
    path.write_text(entry.format("a") + entry.format("b"))
    async with assembled(settings(sqlite_url, tmp_path), jobs=read_jobs_file(path)) as running:
        assert running.synced is not None
        assert running.synced.created == ["a", "b"]
        path.write_text(entry.format("b"))
        report = await load_jobs(running.service, read_jobs_file(path))
        assert (report.removed, report.unchanged) == (["a"], ["b"])
        page = await running.service.list_jobs(DEFAULT_TENANT, JobFilter())
        assert [job.key for job in page.items] == ["b"]


async def test_a_file_that_can_not_be_applied_stops_the_start_with_its_line(sqlite_url, tmp_path):
    path = tmp_path / "jobs.yaml"
    path.write_text("- key: a\n  schedule: {every: 1h}\n  target:\n    type: command\n    command: rm\n")
    with pytest.raises(Invalid, match=r"jobs\.yaml:5: \[?jobs\[0\]\.target\.command"):
        async with assembled(settings(sqlite_url, tmp_path), jobs=read_jobs_file(path)):
            raise AssertionError("it must not start")


async def test_what_was_started_is_stopped_when_the_start_fails(sqlite_url, tmp_path, monkeypatch):
    """The store's lock is free again: nothing was left open."""
    path = tmp_path / "jobs.json"
    path.write_text('[{"key": "a", "schedule": {"every": "1h"}, "target": {"type": "command", "command": "rm"}}]')
    with pytest.raises(Invalid):
        async with assembled(settings(sqlite_url, tmp_path), jobs=read_jobs_file(path)):
            raise AssertionError("it must not start")
    store = await open_store(sqlite_url)
    assert await store.list_nodes() == []
    await store.close()


async def test_a_run_goes_all_the_way(sqlite_url, tmp_path):
    (tmp_path / "chores.py").write_text("def greet(name):\n    print('hello', name)\n")
    path = tmp_path / "jobs.json"
    path.write_text(
        '[{"identifier": "g", "path": "chores", "function_name": "greet", "periodicity": "1h",\n'
        '  "arguments": {"name": "A"}}]'
    )
    async with assembled(settings(sqlite_url, tmp_path), jobs=read_jobs_file(path)) as running:
        job = await running.service.get_job_by_key(DEFAULT_TENANT, "g")
        run = await running.service.run_job(DEFAULT_TENANT, job.id)

        async def done() -> bool:
            return (await running.service.get_run(DEFAULT_TENANT, run.id)).status == "DONE"

        await until(done, "the function has run")
        assert "hello A" in (await running.service.run_logs(DEFAULT_TENANT, run.id) or "")
    written = tmp_path / "logs" / "g" / f"{run.id}.log"
    assert "hello A" in await asyncio.to_thread(written.read_text)
