"""docs/results.md, typed as it stands: a receiver that accepts, and tells later what became of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.nodes import Cluster, post
from tests.cluster.typed import TypedPage, html_of, run_of, run_with
from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port
from tests.services.waiting import until

pytestmark = pytest.mark.timeout(120)


class Receiver:
    """Of the page, in a terminal of its own."""

    def __init__(self, printed: Path) -> None:
        self._printed = printed

    async def url(self, number: int) -> str:
        """What it has printed as this one, from 1 on."""

        def lines() -> list[str]:
            found = self._printed.read_text().splitlines()
            return found if len(found) >= number else []

        return str((await until(lines, "the receiver prints a URL"))[number - 1])


@contextmanager
def running(script: Path) -> Iterator[Receiver]:
    printed = script.with_suffix(".out")
    with printed.open("wb") as out:
        process = subprocess.Popen([sys.executable, script.name], cwd=script.parent, stdout=out, start_new_session=True)
    orphan_reaper.runs(-process.pid, signal.SIGKILL)
    try:
        yield Receiver(printed)
    finally:
        process.kill()
        process.wait()
        orphan_reaper.ended(-process.pid)


async def test_the_page(cluster: Cluster, sqlite_url: str, tmp_path: Path):
    page, port = TypedPage("results.md", tmp_path), free_port()
    node = cluster.start("--store", sqlite_url)
    await node.ready()
    write, _, started = page.block("receiver.py <<'END'").partition("python3 receiver.py")
    assert started.strip() == ""
    await page.type(write.replace("5003", str(port)))
    create, _, look = page.block('"key": "import"').replace("5003", str(port)).partition("onthedot runs list")
    with running(tmp_path / "receiver.py") as receiver:
        await page.type(create, node)
        run = await run_with(node, "import", "EXECUTING")
        callback = await receiver.url(1)
        assert "EXECUTING" in await page.type(f"onthedot runs list{look}", node)
        completes = page.block("CALLBACK=").replace("…the URL that the receiver printed…", callback)
        before, done, after = completes.partition('curl -s "$CALLBACK"')
        await page.type(before, node, shell="bash")
        run = await run_of(node, run["id"], "EXECUTING")
        assert (run["waiting"], run["progress"]["percent"]) == ("callback", 40)
        assert run["progress"]["message"] == "1200 of 3000 rows"
        for _ in range(2):  # a callback that is repeated changes nothing
            said = await page.type(f"CALLBACK='{callback}'\n{done}{after}", node, shell="bash")
            assert "DONE" in said.splitlines()[-1]
        run = await run_of(node, run["id"], "DONE")
        assert run["result"] == {"rows": 3000}
        assert '{"rows":3000}' in await page.type(f"onthedot runs show {run['id']}", node)
        assert "3000" in await html_of(node, run["id"])
        again = {
            "schedule": {"in": "1ms"},
            "target": {"type": "webhook", "url": f"http://127.0.0.1:{port}/"},
            "policy": {"completion": "callback"},
        }
        job = await post(node, "/v1/jobs", again)
        code = page.block("client.complete(callback", "python")
        code = f"callback = {await receiver.url(2)!r}\n{code}"
        await run_with(node, job["id"], "EXECUTING")
        await page.type(f"python - <<'END'\n{code}END\n", node)
        assert (await run_with(node, job["id"], "DONE"))["result"] == {"rows": 3000}
