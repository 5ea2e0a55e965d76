"""`python -m proof.queues`, small: a real broker is restarted and real nodes killed while messages are published.

One of the brokers here, the others in the proof itself: they differ in their clients, which have tests of their own."""

from __future__ import annotations

import pytest

from proof.queues.play import play
from tests.services.debian import ProgramMissing
from tests.services.missing import missing


@pytest.mark.timeout(400)
@pytest.mark.parametrize("broker", ["redis"])
async def test_no_message_is_lost_and_repeats_have_the_same_id(broker: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        played = await play(broker, 200, 40.0)
    except ProgramMissing as why:
        missing(why)
    with capsys.disabled():
        print(f"\n{played.told()}")
    assert (played.done, played.lost, played.foreign) == (200, 0, 0)
    assert played.published >= 200
    assert (played.restarts, played.kills) == (2, 2)
