"""docs/worker-pools.md and docs/concurrency.md, typed as they stand: what they show happens. Only addresses differ."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cluster.nodes import Cluster, alive
from tests.cluster.typed import TypedPage, doctor, run_with
from tests.cluster.walking import Echo, ask
from tests.services.process import NodeProcess
from tests.services.waiting import until

pytestmark = pytest.mark.timeout(180)
SHOWN = "http://127.0.0.1:5003/"


async def test_worker_pools(postgres_url: str, cluster: Cluster, echo: Echo, tmp_path: Path):
    page = TypedPage("worker-pools.md", tmp_path)
    first, _, receiver = page.block("onthedot echo").partition("\n")
    shown, words = "postgresql://scheduler@127.0.0.1/onthedot", first.split()
    assert (words[:3], words[3], receiver.strip()) == (["onthedot", "serve", "--store"], shown, "onthedot echo")
    node = cluster.start("--store", postgres_url)
    await node.ready()
    add, listing = page.block("--key train").replace(SHOWN, echo.url).splitlines()
    await page.type(add, node)

    async def waits() -> bool:
        return "waiting for label gpu since" in " ".join((await page.type(listing, node)).split())

    await until(waits, "it waits and says so")
    assert "no live node has the label gpu" in await doctor_says(page, postgres_url, node)
    _, _, labels = page.block("--labels gpu,eu").partition("--port 8001 ")
    second = cluster.start("--store", postgres_url, *labels.split())
    await second.ready()
    await until(echo.arrivals, "the receiver hears it")
    run = await run_with(node, "train", "DONE")
    assert (run["attempt"], run["node"] in await alive(node)) == (1, True)
    assert "gpu,eu" in await page.type("onthedot nodes", node)
    (edit,) = re.findall(r"`(onthedot jobs edit train --set 'requires=\[\"eu\"\]')`", page.text)
    await page.type(edit, node)
    assert (await ask(node, "GET", "/v1/jobs/by-key/train"))[1]["requires"] == ["eu"]


async def doctor_says(page: TypedPage, store: str, node: NodeProcess) -> str:
    page.settings(f'store = "{store}"\n')
    said = await doctor(page, node, code=1)
    (page.directory / "onthedot.toml").unlink()
    return said


async def test_concurrency_limits(sqlite_url: str, cluster: Cluster, tmp_path: Path, free_port):
    page = TypedPage("concurrency.md", tmp_path)
    serve, receive = (line.removesuffix(" &").split() for line in page.block("--delay 2s").splitlines())
    assert serve == ["onthedot", "serve"]
    node = cluster.start("--store", sqlite_url)
    await node.ready()
    port = free_port()
    receiver = NodeProcess(
        *(str(port) if word == "5003" else word for word in receive[1:]), "--json", directory=tmp_path, port=port
    )
    try:
        await until(lambda: "listening on" in receiver.output(), "it listens")
        url = f"http://127.0.0.1:{port}/"
        await page.type(page.block("for n in 1 2 3").replace(SHOWN, url), node)
        await the_group_is_shown(page, node)
        await the_limit_is_changed(page, node)
        await page.type(page.block("--key import").replace(SHOWN, url), node)

        async def two_at_once() -> bool:
            _, job = await ask(node, "GET", "/v1/jobs/by-key/import")
            _, runs = await ask(node, "GET", f"/v1/jobs/{job['id']}/runs?status=EXECUTING")
            assert len(runs["items"]) <= 2
            _, waiting = await ask(node, "GET", f"/v1/jobs/{job['id']}/runs?status=PENDING")
            return len(runs["items"]) == 2 and any(run["waiting_for"] == "max_running" for run in waiting["items"])

        await until(two_at_once, "two run and the next one waits", 60)
    finally:
        receiver.kill()


async def the_group_is_shown(page: TypedPage, node: NodeProcess) -> None:
    listing, runs = page.block("onthedot groups").splitlines()
    head = page.block("GROUP  LIMIT", "").partition("\n")[0].split()

    async def waits() -> bool:
        shown = (await page.type(listing, node)).splitlines()
        return shown[0].split() == head and shown[1].split()[:4] in (["db", "1", "1", "1"], ["db", "1", "1", "2"])

    await until(waits, "one runs and others wait", 60)
    assert "waiting for group db" in " ".join((await page.type(runs, node)).split())


async def the_limit_is_changed(page: TypedPage, node: NodeProcess) -> None:
    await page.type(page.block("--set policy.concurrency.limit=3").partition("\n")[0], node)
    (group,) = json.loads(await page.type("onthedot groups --json", node))
    assert (group["limit"], group["highest_limit"]) == (1, 3)
    await page.type(page.block("--unset policy.concurrency").partition("\n")[2], node)
    _, job = await ask(node, "GET", "/v1/jobs/by-key/report-1")
    assert job["policy"].get("concurrency") is None
