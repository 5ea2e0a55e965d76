"""Nothing that a request brings holds the loop: the corpus of `python -m proof.hostile`, its megabytes made smaller."""

from __future__ import annotations

import pytest

from proof.hostile.corpus import corpus
from proof.hostile.play import play, serving

# The corpus itself asks for 20 ms (`python -m proof.hostile`, on a machine that does nothing else). Here others may use
# the processor, and what they take while a worker thread computes can't be told from what we take.
NOISE = 0.1


@pytest.mark.alone
@pytest.mark.timeout(240)
async def test_no_request_holds_the_loop() -> None:
    async with serving() as node:
        played = [one async for one in play(node, corpus(0.1))]
    for one in played:
        print(one)
    assert len(played) > 100
    assert [str(one) for one in played if one.status >= 500] == []
    assert [str(one) for one in played if one.held > NOISE] == []
