"""Each block of the manual for a shell is run: counted by who does it. (All other blocks are read by the product, in
tests/docs/test_every_block.py and tests/embed/test_examples.py.)"""

from __future__ import annotations

from collections import Counter

from tests.docs.blocks import ROOT, shell_text
from tests.docs.test_every_block import PAGES
from tests.manual.groups import (
    ALONE,
    BEFORE,
    BLOCKS,
    BLOCKS_TYPED_BY,
    GIVEN,
    MEANT,
    NOTHING_RUNS,
    TYPED,
    TYPED_BY,
    typed_elsewhere,
)


def test_each_block_is_run_once() -> None:
    """All blocks of the manual for a shell, by who runs them. What is in no group fails here."""
    typed = {block.place for blocks in TYPED.values() for block in blocks}
    elsewhere = {block.place: test for block in BLOCKS if (test := typed_elsewhere(block)) is not None}
    excused = {block.place for block in BLOCKS if (block.page, block.first) in NOTHING_RUNS}
    assert typed | elsewhere.keys() | excused == {block.place for block in BLOCKS}
    assert not typed & elsewhere.keys()
    assert not {test for test in elsewhere.values() if not (ROOT / test).exists()}
    run = len(typed) + len(elsewhere)
    print(f"\n{run} of {len(BLOCKS)} blocks for a shell are run: {len(typed)} typed here")
    for test, count in Counter(elsewhere.values()).most_common():
        print(f"  {count} by {test}")
    for (page, first), why in NOTHING_RUNS.items():
        print(f"  not run: {page}: {first}: {why}")
    assert len(excused) == len(NOTHING_RUNS) == 0


def test_nothing_is_given_in_vain() -> None:
    known = {(block.page, block.first) for block in BLOCKS}
    assert {*BEFORE, *BLOCKS_TYPED_BY, *NOTHING_RUNS} <= known
    assert {*GIVEN, *ALONE, *TYPED_BY} <= set(PAGES)
    texts = "\n".join(shell_text(block) for block in BLOCKS)
    assert [shown for shown in MEANT if shown not in texts] == []
