"""`python -m proof.containers`, small: a real engine is restarted and real nodes are killed while containers run."""

from __future__ import annotations

import pytest

from proof.containers.play import play
from tests.services.debian import ProgramMissing
from tests.services.missing import missing


@pytest.mark.timeout(300)
async def test_no_container_is_lost_and_repeats_are_of_the_same_run(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        played = await play(10, 5.0)
    except ProgramMissing as why:
        missing(why)
    with capsys.disabled():
        print(f"\n{played.told()}")
    assert (played.done, played.lost, played.foreign, played.wrong, played.twice) == (10, 0, 0, 0, 0)
    assert played.containers >= 10
    assert (played.restarts, played.kills) == (2, 2)
