"""The database goes away, crashes, hangs up, falls silent, loses an answer, has no room left: the node stays, says so,
comes back by itself; nothing is lost and nothing is written twice."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from onthedot.echo import EchoServer
from tests.cluster.door import Door
from tests.cluster.nodes import Cluster, post, runs_heard
from tests.cluster.walking import ask
from tests.services.missing import missing
from tests.services.ports import free_port
from tests.services.postgres import PostgresServer, running_postgres
from tests.services.process import NodeProcess
from tests.services.small_disk import NoSmallDisk, filled, small_disk
from tests.services.waiting import until

NAME = "troubled"


@dataclass
class Scene:
    """One PostgreSQL that may be hurt, the way to it, and one node; they serve all tests of this file."""

    server: PostgresServer
    door: Door
    node: NodeProcess
    disk: Path | None
    watched: int  # METRICS_PORT of the node

    async def fetch(self, sql: str) -> Any:
        connection = await asyncpg.connect(self.server.url(NAME), timeout=10)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    try:
        with small_disk(400) as disk:
            yield from _scene(tmp_path_factory.mktemp("trouble"), disk)
    except NoSmallDisk:
        yield from _scene(tmp_path_factory.mktemp("trouble"), None)


def _scene(directory: Path, disk: Path | None) -> Iterator[Scene]:
    with running_postgres(disk) as server:
        server.create_database(NAME)
        door = Door(server.port)
        cluster = Cluster(directory)
        try:
            watched = free_port()
            node = cluster.start(
                "--store",
                f"postgresql://postgres@127.0.0.1:{door.port}/{NAME}?timeout=1",
                env={"ONTHEDOT_METRICS_PORT": str(watched)},
            )
            yield Scene(server, door, node, disk, watched)
        finally:
            cluster.kill()
            door.close()


async def answer_of(node: NodeProcess, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """The status, and the headers with the body under ""."""

    def send() -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(node.url + path, data=data, method=method, headers=headers)
        request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:
                return answer.status, {"": answer.read(), **{k.lower(): v for k, v in answer.headers.items()}}
        except urllib.error.HTTPError as error:
            with error:
                return error.code, {"": error.read(), **{k.lower(): v for k, v in error.headers.items()}}

    return await asyncio.to_thread(send)


def webhook(url: str, delay: str) -> dict[str, object]:
    return {"schedule": {"in": delay}, "target": {"type": "webhook", "url": url}}


@asynccontextmanager
async def trouble_survived(scene: Scene, receiver: EchoServer) -> AsyncIterator[None]:
    """Around any trouble: what was acknowledged before fires once, and so does what is made afterwards."""
    await scene.node.ready()
    pid = scene.node.pid
    before = [await post(scene.node, "/v1/jobs", webhook(receiver.url, f"{ms}ms")) for ms in (1, 700, 1500)]
    yield
    await scene.node.ready()
    after = await post(scene.node, "/v1/jobs", webhook(receiver.url, "1ms"))
    wanted = {str(job["id"]) for job in [*before, after]}
    await until(
        lambda: {arrival.headers["x-onthedot-job"] for arrival in receiver.received} >= wanted, "all have fired"
    )
    await until(lambda: _settled(scene, wanted), "all are in the ledger")
    heard = runs_heard(receiver)
    assert set(heard.values()) == {1}, heard
    assert scene.node.exit_code is None
    assert scene.node.pid == pid
    assert "Traceback" not in scene.node.output()


async def _settled(scene: Scene, jobs: set[str]) -> bool:
    listed = ",".join(jobs)
    done = await scene.fetch(f"SELECT count(*) FROM history WHERE status = 'done' AND job_id IN ({listed})")
    return bool(done == len(jobs))


async def says_away(scene: Scene) -> None:
    """Alive, not ready, and 503 with Retry-After for whoever asks; but not for whoever watches it."""
    node = scene.node

    async def not_ready() -> bool:
        return (await answer_of(node, "GET", "/readyz"))[0] == 503

    await until(not_ready, "readyz says no")
    assert (await answer_of(node, "GET", "/healthz"))[0] == 200
    for method, path, body in (
        ("GET", "/v1/jobs", None),
        ("POST", "/v1/jobs", webhook("http://127.0.0.1:9/", "1h")),
        ("POST", "/timers", {"hours": 1, "url": "http://127.0.0.1:9/"}),
    ):
        status, answer = await answer_of(node, method, path, body)
        assert status == 503, (method, path, answer)
        assert int(answer["retry-after"]) >= 1
        assert json.loads(answer[""])["type"] == "urn:onthedot:problem:store-unavailable"
    for url in (node.url, f"http://127.0.0.1:{scene.watched}"):
        text = (await asyncio.to_thread(urllib.request.urlopen, f"{url}/metrics", timeout=15)).read().decode()
        assert "onthedot_store_up 0.0" in text.splitlines()
        assert "onthedot_runs_fired_total" in text


async def test_an_outage(scene: Scene, receiver: EchoServer):
    async with trouble_survived(scene, receiver):
        await asyncio.to_thread(scene.server.stop)
        await says_away(scene)
        await asyncio.to_thread(scene.server.start)


async def test_a_crash(scene: Scene, receiver: EchoServer):
    async with trouble_survived(scene, receiver):
        await asyncio.to_thread(scene.server.restart, immediate=True)


async def test_connections_ended_by_the_server(scene: Scene, receiver: EchoServer):
    ended = 0
    async with trouble_survived(scene, receiver):
        for _ in range(5):
            ended += await scene.fetch(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                f" WHERE datname = '{NAME}' AND pid <> pg_backend_pid()"
            )
            await ask(scene.node, "GET", "/v1/nodes")
    assert ended > 0


async def test_a_way_that_refuses(scene: Scene, receiver: EchoServer):
    async with trouble_survived(scene, receiver):
        assert scene.door.order("refuse") > 0
        await says_away(scene)
        scene.door.order("heal")


async def test_a_way_that_is_silent(scene: Scene, receiver: EchoServer):
    """No reset, no answer: only deadlines notice."""
    async with trouble_survived(scene, receiver):
        scene.door.order("silence", ways=["up", "down"])
        await says_away(scene)
        scene.door.order("heal")


@pytest.mark.parametrize("fault", ["cut", "swallow"])
async def test_no_write_is_doubled(scene: Scene, receiver: EchoServer, fault: str):
    """Connections are cut in the middle of transactions, or right after COMMIT arrived: a client that repeats its
    request under the same Idempotency-Key until it is answered has made one job."""
    async with trouble_survived(scene, receiver):
        jobs = await scene.fetch("SELECT count(*) FROM jobs")
        refusals, lost = 0, scene.door.order("count")
        for number in range(6):
            spec = webhook(receiver.url, "1h")
            repeats = 0
            while True:
                asking = asyncio.create_task(
                    answer_of(scene.node, "POST", "/v1/jobs", spec, **{"Idempotency-Key": f"{fault}-{number}"})
                )
                if repeats == 0:
                    scene.door.order("swallow", commits=1000) if fault == "swallow" else scene.door.order("cut")
                status, answer = await asking
                scene.door.order("heal")
                if status == 201:
                    break
                assert status == 503, answer
                assert answer["retry-after"]
                repeats += 1
                refusals += 1
        assert await scene.fetch("SELECT count(*) FROM jobs") == jobs + 6
        if fault == "swallow":
            assert refusals > 0
            assert scene.door.order("count") > lost


async def test_a_lost_answer_without_a_key_makes_one_job_at_most(scene: Scene, receiver: EchoServer):
    """The node itself never repeats an insert whose fate it does not know."""
    async with trouble_survived(scene, receiver):
        jobs = await scene.fetch("SELECT count(*) FROM jobs")
        scene.door.order("swallow", commits=1000)
        status, _ = await answer_of(scene.node, "POST", "/v1/jobs", webhook(receiver.url, "1h"))
        scene.door.order("heal")
        assert status == 503
        assert await scene.fetch("SELECT count(*) FROM jobs") == jobs + 1


async def test_statements_that_take_too_long(scene: Scene, receiver: EchoServer):
    """The server cancels them by its own rule; somebody holds the tables."""
    async with trouble_survived(scene, receiver):
        await scene.fetch(f"ALTER DATABASE {NAME} SET statement_timeout = '200ms'")
        scene.door.order("cut")  # new connections, with the new rule
        holder = await asyncpg.connect(scene.server.url(NAME), server_settings={"statement_timeout": "0"})
        async with holder.transaction():
            await holder.execute("LOCK TABLE jobs, runs, nodes IN ACCESS EXCLUSIVE MODE")
            await says_away(scene)
        await holder.close()
        await scene.fetch(f"ALTER DATABASE {NAME} RESET statement_timeout")
        scene.door.order("cut")


async def test_a_former_primary(scene: Scene, receiver: EchoServer):
    """A failover left us on a database that may only be read: it counts as away until we reach one that writes."""
    async with trouble_survived(scene, receiver):
        await scene.fetch(f"ALTER DATABASE {NAME} SET default_transaction_read_only = on")
        scene.door.order("cut")

        async def not_ready() -> bool:
            return (await answer_of(scene.node, "GET", "/readyz"))[0] == 503

        await until(not_ready, "readyz says no")
        status, answer = await answer_of(scene.node, "POST", "/v1/jobs", webhook(receiver.url, "1h"))
        assert (status, answer.get("retry-after")) == (503, "1")
        writing = await asyncpg.connect(
            scene.server.url(NAME), server_settings={"default_transaction_read_only": "off"}
        )
        await writing.execute(f"ALTER DATABASE {NAME} RESET default_transaction_read_only")
        await writing.close()
        scene.door.order("cut")


@pytest.mark.small_disk
async def test_a_full_disk(scene: Scene, receiver: EchoServer):
    if scene.disk is None:
        missing("a disk that can be filled needs the right to mount")
    async with trouble_survived(scene, receiver):
        async with filled(scene.disk):
            # what fits into the log's open segment is still kept; fill that too
            async def refused() -> bool:
                spec = {**webhook(receiver.url, "1h"), "params": {"ballast": "x" * 200_000}}
                batch = [spec] * 4
                status, answer = await answer_of(scene.node, "POST", "/v1/jobs/batch", batch)
                if status == 200:
                    assert {item["status"] for item in json.loads(answer[""])} <= {201, 503}
                    return any(item["status"] == 503 for item in json.loads(answer[""]))
                assert status == 503, answer
                assert answer["retry-after"]
                return True

            await until(refused, "a write is refused")
        if scene.server.process is not None and scene.server.process.poll() is not None:
            await asyncio.to_thread(scene.server.start)  # it stops itself when it can't write its log
