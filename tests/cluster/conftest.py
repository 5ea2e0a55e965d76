from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

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
