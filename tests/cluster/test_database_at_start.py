"""What a node does with a database that is not there, not safe, newer than itself, or behind a pooler."""

from __future__ import annotations

import asyncio
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator

import asyncpg
import pytest

from onthedot.errors import StoreError, StoreUnavailable
from onthedot.launcher.wait_for_store import prepared_when_there
from onthedot.model.level import LEVEL
from onthedot.settings import Settings
from tests.cluster.nodes import alive, lateness, post, runs_heard
from tests.cluster.walking import ask
from tests.services.debian import ProgramMissing
from tests.services.missing import missing
from tests.services.pgbouncer import running_pgbouncer
from tests.services.small_disk import NoSmallDisk, filled, small_disk
from tests.services.waiting import until


async def execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


def refusal(url: str) -> tuple[int, str]:
    try:
        urllib.request.urlopen(url, timeout=5)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["retry-after"]
    except OSError:
        return 0, ""
    raise AssertionError(f"{url} was answered")


async def test_it_waits_for_a_database_that_is_away(postgres_server, postgres_url, cluster, free_port):
    """The address answers nobody at first; then a database is there, and the node starts by itself."""
    port = free_port()
    node = cluster.start("--store", postgres_url.replace(str(postgres_server.port), str(port)))
    await until(lambda: "store unavailable; waiting for it" in node.output(), "it says what it waits for")

    async def answers() -> bool:
        status, alive_ = await ask(node, "GET", "/healthz")
        return status == 200 and alive_["status"] == "ok"

    await until(answers, "it is alive")
    status, ready = await ask(node, "GET", "/readyz")
    assert (status, ready["status"], ready["store"]) == (503, "not ready", "can't be reached")
    assert await asyncio.to_thread(refusal, f"{node.url}/v1/jobs") == (503, "1")
    assert node.exit_code is None

    forwarding = await asyncio.start_server(
        lambda reader, writer: _forward(reader, writer, postgres_server.port), "127.0.0.1", port
    )
    await node.ready()
    assert len(await alive(node)) == 1
    assert await node.stop() == 0
    assert "Traceback" not in node.output()
    forwarding.close()
    await forwarding.wait_closed()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer), return_exceptions=True)


async def test_a_signal_ends_the_waiting(cluster, free_port):
    node = cluster.start("--store", f"postgresql://postgres@127.0.0.1:{free_port()}/none")
    await until(lambda: "store unavailable; waiting for it" in node.output(), "it waits")
    node.signal(signal.SIGTERM)
    assert await node.exited() == 0
    assert "Traceback" not in node.output()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("/test_", "/nowhere_"), 'database "nowhere_'),
        (("postgres@", "stranger@"), 'role "stranger" does not exist'),
        (("", "?synchronous_commit=off"), "synchronous_commit off"),
    ],
)
async def test_what_waiting_can_not_mend_ends_the_start(postgres_url, wrong, said):
    url = postgres_url.replace(*wrong) if wrong[0] else postgres_url + wrong[1]
    with pytest.raises(StoreError, match=said) as caught:
        await prepared_when_there(Settings(store=url), None, stop=asyncio.Event())
    assert not isinstance(caught.value, StoreUnavailable)


async def test_two_versions_on_one_database(postgres_url, cluster, receiver):
    """A newer release came before: its migration leaves room for us, its jobs we leave alone."""
    await execute(
        postgres_url,
        "INSERT INTO meta (number, name, breaking, applied_at) VALUES (9000, 'from the future', false, 0)",
    )
    node = cluster.start("--store", postgres_url)
    await node.ready()
    old = await post(node, "/v1/jobs", {"schedule": {"in": "1h"}, "target": {"type": "webhook", "url": receiver.url}})
    new = await post(node, "/v1/jobs", {"schedule": {"in": "1h"}, "target": {"type": "webhook", "url": receiver.url}})
    # what a newer node would have written: a spec with a word that this one does not know, due now
    await execute(
        postgres_url,
        f'UPDATE jobs SET level = {LEVEL + 1}, spec = replace(spec, \'"target":\', \'"hologram":true,"target":\')'
        f" WHERE id = {new['id']}",
        f"UPDATE runs SET level = {LEVEL + 1}, due_at = due_at - 3600000, ready_at = due_at - 3600000"
        f" WHERE job_id = {new['id']}",
        f"UPDATE runs SET due_at = due_at - 3600000, ready_at = due_at - 3600000 WHERE job_id = {old['id']}",
    )
    (heard,) = await receiver.wait_for(1, timeout=20)
    assert heard.headers["x-onthedot-job"] == str(old["id"])
    status, listed = await ask(node, "GET", "/v1/jobs")
    assert status == 200, listed
    assert {job["id"] for job in listed["items"]} >= {new["id"]}
    status, page = await ask(node, "GET", f"/v1/runs?job_id={new['id']}&status=PENDING")
    assert [run["status"] for run in page["items"]] == ["PENDING"]
    assert receiver.count == 1

    await execute(
        postgres_url, "INSERT INTO meta (number, name, breaking, applied_at) VALUES (9001, 'and away', true, 0)"
    )
    late = cluster.start("--store", postgres_url)
    assert await late.exited() == 1
    assert "migrated by a newer version of On the Dot (9000 from the future, 9001 and away)" in late.output()
    assert "upgrade this node" in late.output()
    assert await node.stop() == 0


@pytest.fixture
def pooled_url(postgres_server, postgres_url: str) -> Iterator[str]:
    try:
        with running_pgbouncer(postgres_server.port, pool=4) as port:
            yield postgres_url.replace(str(postgres_server.port), str(port)) + "?pooler=transaction"
    except ProgramMissing as why:
        missing(why)


async def test_behind_a_real_pgbouncer(pooled_url, cluster, receiver):
    """Two nodes share four server connections, transaction by transaction; nobody listens, so the nodes poll."""
    nodes = [cluster.start("--store", pooled_url, env={"ONTHEDOT_POLL_INTERVAL": "300ms"}) for _ in range(2)]
    for node in nodes:
        await node.ready()
    assert len(await alive(nodes[0])) == 2
    target = {"type": "webhook", "url": receiver.url}
    await post(nodes[0], "/v1/jobs", {"key": "each", "schedule": {"cron": "* * * * * *"}, "target": target})
    batch = [{"schedule": {"in": f"{1 + number * 20}ms"}, "target": target} for number in range(40)]
    for node in nodes:
        await post(node, "/v1/jobs/batch", batch, expect=200)
    await until(lambda: receiver.count >= 83, "all have fired, the recurring one several times")
    heard = runs_heard(receiver)
    assert set(heard.values()) == {1}
    assert min(lateness(receiver)) >= 0
    for node in nodes:
        assert await node.stop() == 0
        assert "Traceback" not in node.output()
        assert "prepared statement" not in node.output()


@pytest.mark.small_disk
async def test_sqlite_on_a_full_disk(cluster, receiver):
    try:
        with small_disk(8) as disk:
            node = cluster.start("--store", f"sqlite:///{disk / 'onthedot.db'}")
            await node.ready()
            kept = await post(node, "/v1/jobs", _webhook(receiver.url, "2s"))
            async with filled(disk):

                async def refused() -> bool:
                    spec = {**_webhook(receiver.url, "1h"), "params": {"ballast": "x" * 100_000}}
                    status, answer = await ask(node, "POST", "/v1/jobs", spec)
                    assert status in (201, 503), answer
                    return status == 503

                await until(refused, "a write is refused")

                async def not_ready() -> bool:
                    return (await ask(node, "GET", "/readyz"))[0] == 503

                await until(not_ready, "readyz says no")
            await node.ready()
            (heard,) = await receiver.wait_for(1, timeout=20)
            assert heard.headers["x-onthedot-job"] == str(kept["id"])
            await post(node, "/v1/jobs", _webhook(receiver.url, "1ms"))
            await receiver.wait_for(2, timeout=20)
            assert set(runs_heard(receiver).values()) == {1}
            assert await node.stop() == 0
            assert "Traceback" not in node.output()
    except NoSmallDisk as why:
        missing(why)


def _webhook(url: str, delay: str) -> dict[str, object]:
    return {"schedule": {"in": delay}, "target": {"type": "webhook", "url": url}}
