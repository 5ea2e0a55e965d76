"""The command line in this process, against a real server in another."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onthedot.cli import main
from tests.services.ports import free_port
from tests.services.process import NodeProcess


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Result]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """`cli("jobs", "list")` in a directory and an environment of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("ONTHEDOT_URL", "ONTHEDOT_KEY", "ONTHEDOT_STORE", "EDITOR", "VISUAL", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object, stdin: str | None = None) -> Result:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        capsys.readouterr()
        code = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 1
        seen = capsys.readouterr()
        return Result(code, seen.out, seen.err)

    return run


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """One server for all the tests of this process; each test uses names of its own."""
    directory = tmp_path_factory.mktemp("cli-node")
    (directory / "chores.py").write_text(
        "def greet(name='you'):\n    print(f'hello {name}')\n    return name\n\n"
        "def fail():\n    raise ValueError('as told')\n"
    )
    (directory / "onthedot.toml").write_text(
        'functions = ["chores"]\n[commands.say]\nargv = ["echo", "said"]\n[commands.wait]\nargv = ["sleep", "600"]\n'
        '[commands.talk]\nargv = ["sh", "-c", "echo begun; exec sleep 600"]\n'
    )
    process = asyncio.run(NodeProcess.serve(directory=directory, port=free_port()))
    yield process
    process.kill()


@pytest.fixture
def online(cli: Cli, node: NodeProcess, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("ONTHEDOT_URL", node.url)
    return cli


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """A job key that no other test uses."""
    return "".join(c if c.isalnum() else "-" for c in request.node.name)[:150]
