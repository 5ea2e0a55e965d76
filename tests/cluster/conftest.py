from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from onthedot.echo import EchoServer
from tests.cluster.nodes import Cluster
from tests.cluster.walking import Echo

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
async def echo(tmp_path: Path, free_port: Callable[[], int]) -> AsyncIterator[Echo]:
    receiver = Echo(tmp_path, free_port())
    await receiver.ready()
    yield receiver
    receiver.process.kill()


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """The sample jobs that `make run` starts with, in a folder of their own."""
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "examples" / "jobs.json"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    nodes = Cluster(tmp_path)
    yield nodes
    nodes.kill()


@pytest.fixture
async def receiver() -> AsyncIterator[EchoServer]:
    async with EchoServer() as server:
        yield server
