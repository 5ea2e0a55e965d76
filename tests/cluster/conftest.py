from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from onthedot.echo import EchoServer
from tests.cluster.nodes import Cluster
from tests.cluster.walking import Echo
from tests.services.small_disk import MAY_MOUNT

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"


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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that mount a disk are run once: here by who may mount, in a namespace of their own by anybody else."""
    gone = [item for item in items if item.path.parent == HERE and _is_run_elsewhere(item)]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if item not in gone]


def _is_run_elsewhere(item: pytest.Item) -> bool:
    if item.path.name == "test_full_disks.py":
        return MAY_MOUNT
    return item.get_closest_marker("small_disk") is not None and not MAY_MOUNT
