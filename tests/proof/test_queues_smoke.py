"""`python -m proof.queues`, small: real brokers are restarted and real nodes killed while messages are published."""

from __future__ import annotations

import pytest

from proof.queues.play import play
from tests.services.brokers import RUNNING
from tests.services.debian import ProgramMissing
from tests.services.missing import missing


@pytest.mark.timeout(400)
@pytest.mark.parametrize("broker", RUNNING)
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
