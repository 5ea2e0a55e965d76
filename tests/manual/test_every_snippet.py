"""The blocks of the manual for a shell, typed as they stand by a reader: `make test-manual`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import shell_text
from tests.docs.test_every_block import PAGES
from tests.manual.groups import ALONE, BEFORE, ECHO, GIVEN, NIGHTLY, SERVE, TYPED, meant
from tests.manual.reader import Network, Reader, Stuck, can_make_networks, network


@pytest.fixture(scope="module")
def own_network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    if not can_make_networks():
        pytest.skip("the ports of the manual need a network of their own, which only root can make")
    with network(tmp_path_factory.mktemp("network")) as made:
        yield made


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", TYPED)
def test_every_block_is_typed(page: str, own_network: Network, tmp_path: Path) -> None:
    own_network.empty_databases()
    (tmp_path / "jobs.yaml").write_text(json.dumps({"jobs": [{"key": "nightly-report", **NIGHTLY}]}))
    (tmp_path / "report.py").write_text("print(1)\n")
    for folder in ("secrets", "backups"):
        (tmp_path / folder).mkdir()
    for block in PAGES[page]:
        if block.file:
            (tmp_path / block.file).write_text(block.text)
    reader, wrong = Reader(tmp_path, own_network), []
    try:
        reader.type(GIVEN.get(page, ECHO + SERVE if page not in ALONE else ""))
        for block in TYPED[page]:
            try:
                reader.type(BEFORE.get((page, block.first), ""))
                reader.type(meant(shell_text(block)))
            except Stuck as stuck:
                wrong.append(f"{block.place}: {stuck}")
    finally:
        reader.close()
    print(f"\n{page}: {len(TYPED[page])} blocks typed")
    assert not wrong, "\n".join(wrong)
