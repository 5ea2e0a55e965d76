"""From open to closed: the command that banner and page show works for this server, and closes it."""

from __future__ import annotations

import asyncio
import html
import re
import shlex

import pytest

from tests.cluster.walking import ask
from tests.services.process import NodeProcess
from tests.services.waiting import until


async def run_elsewhere(tmp_path, free_port, command: str) -> NodeProcess:
    """In a directory of its own, as a person in another terminal does."""
    words = shlex.split(html.unescape(command))
    assert words[0] == "onthedot"
    directory = tmp_path / f"elsewhere-{len(list(tmp_path.iterdir()))}"
    directory.mkdir()
    process = NodeProcess(*words[1:], directory=directory, port=free_port())
    await process.exited()
    assert not (directory / "onthedot.db").exists(), "no other store was made"
    return process


@pytest.mark.parametrize("shown_by", ["banner", "page", "refusal"])
async def test_the_command_that_is_shown_makes_the_key_and_closes_the_server(
    store_url, cluster, tmp_path, free_port, shown_by
):
    node = cluster.start("--store", store_url)
    await node.ready()
    others = [] if store_url.startswith("sqlite") else [cluster.start("--store", store_url)]
    for other in others:
        await other.ready()
    if shown_by == "banner":
        text = node.output()
    elif shown_by == "page":
        text = (await ask(node, "GET", "/"))[1]
    else:
        status, problem = await ask(node, "GET", "/v1/jobs", headers={"x-forwarded-for": "203.0.113.7"})
        assert status == 403
        text = problem["detail"] + "\n"
    (command,) = set(re.findall(r"onthedot keys create [^<\n]+", text))
    made = await run_elsewhere(tmp_path, free_port, command)
    assert made.exit_code == 0, made.output()
    assert "This is the first key" in made.output()
    key = re.findall(r"otd_[\w-]{40,}", made.output())[0]
    assert (await ask(node, "GET", "/v1/jobs"))[0] == 401, "closed at once"

    async def closed() -> bool:
        return all([(await ask(other, "GET", "/v1/jobs"))[0] == 401 for other in others])

    await until(closed, "the others close too", within=5)
    for each in (node, *others):
        assert (await ask(each, "GET", "/v1/keys", headers={"authorization": f"Bearer {key}"}))[0] == 200

    again = await run_elsewhere(tmp_path, free_port, command)
    assert again.exit_code == 1
    assert "--key" in again.output()
    more = await run_elsewhere(tmp_path, free_port, f"{command} --key {key}")
    assert more.exit_code == 0, more.output()
    assert "This is the first key" not in more.output()


async def test_the_address_and_key_of_the_environment_are_heeded(sqlite_url, cluster, tmp_path, free_port):
    node = cluster.start("--store", sqlite_url)
    await node.ready()
    directory = tmp_path / "other"
    directory.mkdir()

    async def create(**env: str) -> NodeProcess:
        words = ("keys", "create", "--name", "a", "--scope", "admin")
        process = NodeProcess(*words, directory=directory, port=free_port(), env={"ONTHEDOT_URL": node.url, **env})
        await process.exited()
        return process

    first = await create()
    assert first.exit_code == 0, first.output()
    assert (await ask(node, "GET", "/v1/jobs"))[0] == 401
    assert (await create()).exit_code == 1
    key = re.findall(r"otd_[\w-]{40,}", first.output())[0]
    assert (await create(ONTHEDOT_KEY=key)).exit_code == 0
    assert await asyncio.to_thread(lambda: list(directory.glob("*.db"))) == []
