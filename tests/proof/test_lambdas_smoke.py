"""`python -m proof.lambdas`, small: moto is restarted and real nodes are killed while functions are called."""

from __future__ import annotations

import pytest

from proof.lambdas.play import play


@pytest.mark.timeout(300)
async def test_no_call_is_lost_and_repeats_have_the_same_id(capsys: pytest.CaptureFixture[str]) -> None:
    played = await play(40, 10.0)
    with capsys.disabled():
        print(f"\n{played.told()}")
    assert (played.done, played.lost, played.foreign, played.wrong) == (40, 0, 0, 0)
    assert played.calls >= 40
