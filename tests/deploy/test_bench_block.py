"""`make bench ONLY=bulk` of docs/bulk.md on a machine that has nothing of ours: it installs what it needs, and
measures. With MODE=tiny in the environment, a hundredth of the jobs. `make test-deploy`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.fresh_machine import FreshMachine
from tests.docs.blocks import blocks_of


@pytest.mark.timeout(900)
def test_the_benchmark_of_bulk_operations(tmp_path: Path) -> None:
    (typed,) = (block.text for block in blocks_of("docs/bulk.md") if block.text.startswith("make bench"))
    machine = FreshMachine(tmp_path)
    try:
        said = machine.run("export MODE=tiny", typed)
    finally:
        machine.close()
    assert "Bulk pause of 1,000 jobs" in said
