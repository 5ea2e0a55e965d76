"""The tutorial and the pages of jobs files and clients, typed as they stand, against a real server and receiver."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster.walking import ask, shell
from tests.services.process import NodeProcess
from tests.services.waiting import until

DOCS = Path(__file__).parents[2] / "docs"
MARKED = re.compile(r"<!-- (run|file): (\S+) -->\n```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
async def node(cluster, tmp_path) -> NodeProcess:
    started: NodeProcess = cluster.start("--store", f"sqlite:///{tmp_path}/jobs.db")
    await started.ready()
    return started


class Page:
    """The blocks of a page, with the addresses of this test in place of those that a user has."""

    def __init__(self, name: str, node: NodeProcess, echo: str, directory: Path) -> None:
        self._blocks = {
            name: (kind, code.replace("http://127.0.0.1:8000", node.url).replace("http://127.0.0.1:5003", echo))
            for _, name, kind, code in MARKED.findall((DOCS / name).read_text())
        }
        self._node, self._directory = node, directory

    def write(self, name: str) -> None:
        (self._directory / name).write_text(self._blocks.pop(name)[1])

    async def run(self, name: str) -> str:
        kind, code = self._blocks.pop(name)
        script = code if kind == "sh" else f"python - <<'END'\n{code}END\n"
        out, code_ = await shell(self._node, f"set -e\n{script}", self._directory)
        assert code_ == 0, out
        return out

    def all_done(self) -> None:
        assert self._blocks == {}, "a block of the page that no test runs"


@pytest.mark.timeout(240)  # twenty-five commands, each a process of its own
async def test_the_tutorial(node, echo, tmp_path):
    page = Page("tutorial.md", node, echo.url.rstrip("/"), tmp_path)
    await page.run("timer")
    await until(lambda: any(heard["path"] == "/hello" for heard in echo.arrivals()), "the timer is heard")
    assert "report" in await page.run("job")
    assert "02:30:00 CE" in await page.run("preview")
    assert "Job report is paused." in await page.run("change")
    await page.run("fail")

    async def dead() -> bool:
        return bool((await ask(node, "GET", "/v1/dead"))[1]["items"])

    await until(dead, "a dead letter")
    assert "broken" in await page.run("dead")
    await page.run("revive")
    await until(lambda: any(heard["path"] == "/works" for heard in echo.arrivals()), "the job is revived")
    page.write("jobs.yaml")
    assert "0 of 2 jobs changed." in await page.run("file")
    await page.run("look")
    page.all_done()


async def test_jobs_files(node, tmp_path):
    page = Page("jobs-file.md", node, "http://127.0.0.1:9", tmp_path)
    for name in ("short.json", "full.yaml", "full.toml", "commands.yaml"):
        page.write(name)
    page.all_done()
    out, code = await shell(node, "onthedot jobs apply full.yaml && onthedot jobs apply full.toml --dry-run", tmp_path)
    assert code == 0, out
    (tmp_path / "jobs.yaml").write_text(
        'source: t\njobs:\n  - key: a\n    schedule: {cron: "0 25 * * *"}\n    target: {type: webhook, url: "http://a/"}\n'
    )
    out, code = await shell(node, "onthedot jobs apply jobs.yaml", tmp_path)
    assert code == 1
    for line in out.strip().splitlines():
        assert line in (DOCS / "jobs-file.md").read_text()


async def test_the_client(node, tmp_path):
    page = Page("client.md", node, "http://127.0.0.1:9", tmp_path)
    assert "PENDING" in await page.run("client")
    assert "jobs" in await page.run("async-client")
    page.all_done()
