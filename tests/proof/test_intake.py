"""`python -m proof.intake`, small: a real broker is restarted and real nodes are killed while messages create jobs."""

from __future__ import annotations

import pytest

from proof.intake.play import play


@pytest.mark.timeout(300)
async def test_each_message_makes_one_job(capsys: pytest.CaptureFixture[str]) -> None:
    played = await play("redis", 300, 100.0, quiet=1.0)
    with capsys.disabled():
        print(f"\n{played.told()}")
    assert (played.jobs, played.missing, played.doubled, played.foreign) == (297, 0, 0, 0)
    assert (played.bad, played.lost_letters) == (3, 0)
    assert (played.restarts, played.kills) == (2, 2)
