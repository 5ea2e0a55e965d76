"""Every verb: Idempotency-Key and If-Match are honoured, or refused, and never passed over in silence.

The verbs are those of the OpenAPI document, so that one that is added is tried, too: it needs an entry in EXAMPLES.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from onthedot.api.app import ROUTES
from onthedot.api.openapi.document import openapi_document
from onthedot.model.key import ApiKeySpec
from onthedot.settings import ChannelSetting
from tests.api.conftest import JOB, client_of, paths, problem, serving
from tests.api.executor import FAILED, TinyNode
from tests.store.hands import node_info

TIMER = {"seconds": 30, "url": "http://127.0.0.1:5003/"}
LATER = "2100-01-01T03:00:00Z"
DOCUMENT = openapi_document([endpoint.operation for endpoint in ROUTES], "0")
WRITES = {
    f"{method.upper()} {path}": declared
    for path, methods in DOCUMENT["paths"].items()
    for method, declared in methods.items()
    if method in ("post", "put", "patch", "delete")
}
READS = {"POST /v1/preview", "POST /v1/plan"}
"""They change nothing."""
REPORTS = {
    "POST /v1/runs/{run_id}/complete",
    "POST /v1/runs/{run_id}/progress",
    "POST /ping/{token}",
    "POST /ping/{token}/{signal}",
}
"""Their token names the try, or the job, that is told about: a repeat changes nothing anyway, whatever it says."""


def headers_of(verb: str) -> set[str]:
    return {each["name"] for each in WRITES[verb]["parameters"] if each["in"] == "header"}


POSTS = sorted(verb for verb in WRITES if verb.startswith("POST ") and verb not in READS | REPORTS)
ON_JOBS = sorted(
    verb
    for verb in WRITES
    if re.match(r"\w+ /v1/(jobs/(\{job_id\}|by-key/\{key\})|runs/\{run_id\}/(cancel|retry))", verb)
)


def test_every_verb_says_which_it_honours():
    assert [verb for verb in POSTS if "Idempotency-Key" not in headers_of(verb)] == []
    assert sorted(verb for verb in WRITES if "If-Match" in headers_of(verb)) == ON_JOBS
    assert len(POSTS) >= 30
    assert len(ON_JOBS) >= 20


class World:
    """A server with whatever verbs are about. `path` makes an address of one in the document."""

    def __init__(self, api: httpx.AsyncClient, node: TinyNode) -> None:
        self.api, self.node = api, node
        self.names: dict[str, Any] = {"key": "nightly", "version": 1}

    async def prepare(self) -> None:
        job = (await self.api.post("/v1/jobs", json=JOB)).json()
        self.names |= {"job_id": job["id"], "job_version": job["version"]}
        self.names["node_id"] = (await self.api.get("/v1/nodes")).json()["items"][0]["id"]

    async def run(self, *, ended: bool) -> None:
        run = (await self.api.post(f"/v1/jobs/{self.names['job_id']}/run")).json()["id"]
        if ended:
            await self.node.work(FAILED)
        self.names["run_id"] = run

    async def change(self) -> None:
        """So that there is a version to go back to."""
        changed = await self.api.patch(f"/v1/jobs/{self.names['job_id']}", json={"name": "changed"})
        self.names["job_version"] = changed.json()["version"]

    async def operation(self) -> None:
        started = await self.api.post("/v1/operations", json={"verb": "pause", "filter": {}})
        self.names["operation_id"] = started.json()["id"]

    async def paused_operation(self) -> None:
        await self.operation()
        await self.api.post(f"/v1/operations/{self.names['operation_id']}/pause")

    async def remove(self) -> None:
        await self.api.delete(f"/v1/jobs/{self.names['job_id']}")

    async def skip(self) -> None:
        at = f"/v1/jobs/{self.names['job_id']}"
        slot = (await self.api.get(f"{at}/upcoming")).json()["fires"][0]
        self.names["slot"] = slot

    async def skipped(self) -> None:
        await self.skip()
        answer = await self.api.post(f"/v1/jobs/{self.names['job_id']}/skip", json={"slot": self.names["slot"]})
        self.names["job_version"] = answer.json()["version"]

    async def pause(self) -> None:
        paused = await self.api.post(f"/v1/jobs/{self.names['job_id']}/pause")
        self.names["job_version"] = paused.json()["version"]

    def path(self, verb: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda found: str(self.names[found[1]]), verb.partition(" ")[2])


Prepare = Callable[[World], Awaitable[None]]
Body = Callable[[World], Any]


async def nothing(world: World) -> None: ...


async def failed_run(world: World) -> None:
    await world.run(ended=True)


async def waiting_run(world: World) -> None:
    await world.run(ended=False)


def slot(world: World) -> Any:
    return {"slot": world.names["slot"]}


EXAMPLES: dict[str, tuple[Prepare, Any, Any]] = {
    "POST /timers": (nothing, TIMER, {**TIMER, "seconds": 31}),
    "POST /v1/jobs": (nothing, {**JOB, "key": "new"}, {**JOB, "key": "other"}),
    "POST /v1/jobs/batch": (nothing, [{**JOB, "key": "new"}], [{**JOB, "key": "other"}]),
    "POST /v1/jobs/sync": (nothing, {"source": "f", "jobs": []}, {"source": "g", "jobs": []}),
    "POST …/run": (nothing, {"params": {"a": 1}}, {"params": {"a": 2}}),
    "POST …/pause": (nothing, {"note": "a"}, {"note": "b"}),
    "POST …/resume": (World.pause, {}, None),
    "POST …/backfill": (
        nothing,
        {"start": "2023-11-10T00:00:00Z", "end": "2023-11-12T00:00:00Z"},
        {"start": "2023-11-10T00:00:00Z", "end": "2023-11-13T00:00:00Z"},
    ),
    "POST …/versions/{version}/restore": (World.change, {}, None),
    "POST …/skip": (World.skip, slot, {"slot": LATER}),
    "POST …/unskip": (World.skipped, slot, {"slot": LATER}),
    "POST …/undelete": (World.remove, {}, None),
    "POST /v1/runs/{run_id}/cancel": (waiting_run, {}, None),
    "POST /v1/runs/{run_id}/retry": (failed_run, {"params": {"a": 1}}, {"params": {"a": 2}}),
    "POST /v1/operations": (nothing, {"verb": "pause", "filter": {}}, {"verb": "resume", "filter": {}}),
    "POST /v1/operations/{operation_id}/abort": (World.operation, {}, None),
    "POST /v1/operations/{operation_id}/pause": (World.operation, {}, None),
    "POST /v1/operations/{operation_id}/resume": (World.paused_operation, {}, None),
    "POST /v1/dead/redrive": (failed_run, {}, {"limit": 5}),
    "POST /v1/dead/discard": (failed_run, {"filter": {}}, {"filter": {}, "note": "n"}),
    "POST /v1/nodes/{node_id}/drain": (nothing, {}, None),
    "POST /v1/pause": (nothing, {"note": "a"}, {"note": "b"}),
    "POST /v1/resume": (nothing, {}, None),
    "POST /v1/alerts/test": (nothing, {"channel": "ops"}, {"channel": "dev"}),
    "POST /v1/scripts": (nothing, {"code": "print(1)"}, {"code": "print(2)"}),
    "POST /v1/keys": (nothing, {"name": "ci", "scope": "write"}, {"name": "ci", "scope": "read"}),
}
"""What is done first, a body, and another one; None: there is only one that is valid."""
RECORDS = ("/v1/jobs", "/v1/runs", "/v1/audit", "/v1/operations", "/v1/dead", "/v1/keys", "/v1/scripts", "/v1/nodes")


def example(verb: str) -> tuple[Prepare, Any, Any]:
    return EXAMPLES[re.sub(r"/v1/jobs/(\{job_id\}|by-key/\{key\})/", "…/", verb)]


@pytest.fixture
async def world(sqlite_url, fake_clock, tmp_path):
    told = f"cat >> {tmp_path}/messages"
    channels = {name: ChannelSetting(command=("sh", "-c", told)) for name in ("ops", "dev")}
    async with serving(sqlite_url, fake_clock, channels=channels) as app:
        node = TinyNode(app.context.service.store)
        await node.register()
        await app.context.service.store.register(node_info("other"))
        first = await app.context.service.create_key(ApiKeySpec(name="root", scope="admin"))
        async with client_of(app, first.key) as api:
            found = World(api, node)
            await found.prepare()
            found.names["messages"] = tmp_path / "messages"
            yield found


async def state(world: World) -> dict[str, Any]:
    """All that a verb may have changed."""
    found: dict[str, Any] = {path: (await world.api.get(path)).json() for path in RECORDS}
    found["freeze"] = (await world.api.get("/v1/stats")).json()["freeze"]
    messages = world.names["messages"]
    found["messages"] = messages.read_text() if messages.exists() else ""
    return found


@pytest.mark.parametrize("verb", POSTS)
async def test_a_repeat_answers_the_same_and_changes_nothing(world, verb):
    prepare, body, other = example(verb)
    await prepare(world)
    body = body(world) if callable(body) else body
    method, path, key = "POST", world.path(verb), {"idempotency-key": "3f1c"}
    first = await world.api.request(method, path, json=body, headers=key)
    assert first.status_code < 300, first.text
    after = await state(world)
    again = await world.api.request(method, path, json=body, headers=key)
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    for name in ("location", "etag"):
        assert again.headers.get(name) == first.headers.get(name), name
    assert await state(world) == after
    if other is not None:
        refused = problem(await world.api.request(method, path, json=other, headers=key), 422)
        assert paths(refused) == ["Idempotency-Key"]
        assert await state(world) == after
    for wrong in ("", "x" * 201):
        refused = await world.api.request(method, path, json=body, headers={"idempotency-key": wrong})
        assert paths(problem(refused, 422)) == ["Idempotency-Key"]
    assert await state(world) == after


@pytest.mark.parametrize("verb", [verb for verb in ON_JOBS if verb.startswith("POST ")])
async def test_a_verb_on_a_job_is_carried_out_only_at_that_version(world, verb):
    prepare, body, _ = example(verb)
    await prepare(world)
    body = body(world) if callable(body) else body
    path, version = world.path(verb), world.names["job_version"]
    before = await state(world)
    for tags in (f'"{version + 1}"', '"7", "8"', f'W/"{version}"', '"x"'):
        problem(await world.api.post(path, json=body, headers={"if-match": tags}), 412)
    for tags in ("x", '"1', "", '"1" "2"'):
        refused = problem(await world.api.post(path, json=body, headers={"if-match": tags}), 422)
        assert paths(refused) == ["If-Match"], tags
    assert await state(world) == before
    several = {"if-match": f'"99", "{version}"', "idempotency-key": "3f1c"}
    first = await world.api.post(path, json=body, headers=several)
    assert first.status_code < 300, first.text
    again = await world.api.post(path, json=body, headers=several)
    assert (again.status_code, again.json()) == (first.status_code, first.json()), "though the version is another now"


@pytest.mark.parametrize("verb", sorted(set(WRITES) - set(ON_JOBS)))
async def test_a_condition_on_what_has_no_version_is_refused(world, verb):
    """Carried out all the same, it would do what its sender wanted to rule out."""
    world.names |= {"script_id": f"sha256:{'0' * 64}", "key_id": 1, "token": "t", "signal": "start"}
    world.names |= {"operation_id": 1, "run_id": "1-1"}
    method, path = verb.partition(" ")[0], world.path(verb)
    prepare: Prepare = nothing
    body: Any = None
    if verb.startswith("POST ") and verb not in READS | REPORTS:
        prepare, body, _ = example(verb)
    await prepare(world)
    path = world.path(verb)
    content = None if body is None else json.dumps(body)
    before = await state(world)
    refused = await world.api.request(method, path, content=content, headers={"if-match": '"1"'})
    assert "If-Match" in problem(refused, 412)["detail"]
    refused = await world.api.request(method, path, content=content, headers={"if-match": "1 or 2"})
    assert paths(problem(refused, 422)) == ["If-Match"]
    assert await state(world) == before
    if body is not None:
        answer = await world.api.request(method, path, content=content, headers={"if-match": "*"})
        assert answer.status_code < 300, "it exists: that is all that * asks"


async def test_the_fast_path_does_not_pass_over_a_condition(api):
    for _ in range(3):  # from the second on under a head that is known
        assert (await api.post("/timers", json=TIMER)).status_code == 201
        problem(await api.post("/timers", json=TIMER, headers={"if-match": '"1"'}), 412)


async def test_a_repeated_key_is_the_same_key_for_its_maker_alone(world):
    body, once = {"name": "ci", "scope": "admin"}, {"idempotency-key": "3f1c"}
    made = (await world.api.post("/v1/keys", json=body, headers=once)).json()
    again = (await world.api.post("/v1/keys", json=body, headers=once)).json()
    assert again == made
    bearer = {"authorization": f"Bearer {made['key']}"}
    assert (await world.api.get("/v1/jobs", headers=bearer)).status_code == 200
    refused = await world.api.post("/v1/keys", json=body, headers={**once, **bearer})
    assert paths(problem(refused, 422)) == ["Idempotency-Key"]
    assert made["key"] != (await world.api.post("/v1/keys", json=body)).json()["key"]


async def test_verbs_without_a_body_refuse_fields(world):
    for path in ("/v1/resume", f"/v1/nodes/{world.names['node_id']}/drain"):
        assert paths(problem(await world.api.post(path, json={"note": "x"}), 422)) == ["note"]
