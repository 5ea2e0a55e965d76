"""The pages docs/from-*.md, typed as they stand: files written, the node started as they say, commands run."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from onthedot.cli import main
from tests.services.ports import free_port
from tests.services.process import NodeProcess

DOCS = Path(__file__).parents[2] / "docs"
MARKED = re.compile(r"<!-- (run|file|serve): (\S+) -->\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {page.name: MARKED.findall(page.read_text()) for page in sorted(DOCS.glob("from-*.md"))}


def test_every_block_is_marked():
    assert set(PAGES) == {
        f"from-{source}.md"
        for source in ("crontab", "apscheduler", "celery-beat", "kubernetes-cronjob", "cloud-scheduler")
    }
    for name, marked in PAGES.items():
        assert (DOCS / name).read_text().count("\n```") == 2 * len(marked), f"{name}: a block that no test runs"


class Typed:
    """Types the blocks of a page in its directory, and keeps what was printed."""

    def __init__(self, page: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.blocks = PAGES[page]
        self.directory = directory
        self.out: dict[str, str] = {}
        self._capsys = capsys
        for kind, name, text in self.blocks:
            if kind == "file":
                (directory / name).write_text(text)

    def served(self) -> list[str]:
        (line,) = [text for kind, _, text in self.blocks if kind == "serve"]
        return shlex.split(line)[2:]

    def run(self, *names: str) -> None:
        for kind, name, text in self.blocks:
            if kind == "run" and name in names:
                self._capsys.readouterr()
                for line in text.splitlines():
                    with pytest.raises(SystemExit) as ended:
                        main(shlex.split(line)[1:])
                    printed = self._capsys.readouterr()
                    assert ended.value.code in (0, None), f"{line}: {printed.err}"
                    self.out[name] = self.out.get(name, "") + printed.out
        assert set(names) <= set(self.out)

    def all_done(self) -> None:
        """Blocks that stand on the first page in the same words are run there only."""
        left = [(kind, name, text) for kind, name, text in self.blocks if kind == "run" and name not in self.out]
        assert [each for each in left if each not in PAGES["from-crontab.md"]] == []


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    nodes: list[NodeProcess] = []

    def start(directory: Path, words: list[str]) -> None:
        node = asyncio.run(NodeProcess.serve(*words, directory=directory, port=free_port()))
        nodes.append(node)
        monkeypatch.setenv("ONTHEDOT_URL", node.url)

    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("shop_jobs", "shop_beat"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield start
    for node in nodes:
        node.kill()


def test_from_crontab(tmp_path, capsys, start, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Typed("from-crontab.md", tmp_path, capsys)
    page.run("import")
    start(tmp_path, page.served())
    page.run("pause", "try", "compare", "switch")
    assert {name for kind, name, _ in page.blocks if kind == "run"} == set(page.out)
    assert "Everything is paused" in page.out["pause"]
    assert "echo-2" in page.out["compare"]
    assert page.out["switch"].startswith("Everything is resumed.\n")
    assert "DONE" in page.out["switch"]


def test_from_apscheduler(tmp_path, capsys, start, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Typed("from-apscheduler.md", tmp_path, capsys)
    page.run("import")
    start(tmp_path, page.served())
    page.run("pause", "try")
    page.all_done()
    assert re.search(r"report .* (PENDING|EXECUTING|DONE)", page.out["try"])


def test_pages_whose_jobs_run_elsewhere(tmp_path, capsys, start, monkeypatch):
    """One node with the settings of all three pages; what they call is not there, and need not be."""
    pages, settings = [], ""
    for name in ("from-celery-beat.md", "from-kubernetes-cronjob.md", "from-cloud-scheduler.md"):
        directory = tmp_path / name
        directory.mkdir()
        monkeypatch.chdir(directory)
        pages.append(Typed(name, directory, capsys))
        pages[-1].run("import")
        settings += (directory / "onthedot.toml").read_text() + "\n"
    (tmp_path / "onthedot.toml").write_text(settings)
    start(tmp_path, pages[0].served())
    for page in pages:
        assert page.served() == []
        monkeypatch.chdir(page.directory)
        (page.directory / "jobs.yaml").rename(page.directory / f"{page.directory.stem}.yaml")
        page.blocks = [
            (kind, name, text.replace("jobs.yaml", f"{page.directory.stem}.yaml")) for kind, name, text in page.blocks
        ]
        page.run("pause")
    pages[2].run("webhook")
    for page in pages:
        page.all_done()
    assert [page.out["pause"].splitlines()[-1] for page in pages] == [
        "2 of 2 jobs changed.",
        "1 of 1 jobs changed.",
        "1 of 1 jobs changed.",
    ]
