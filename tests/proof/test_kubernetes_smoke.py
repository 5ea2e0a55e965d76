"""`python -m proof.kubernetes`, small: the API server is restarted and real nodes are killed while Jobs run."""

from __future__ import annotations

import pytest

from proof.kubernetes.play import play


@pytest.mark.timeout(300)
async def test_no_job_is_lost_and_none_is_started_twice(capsys: pytest.CaptureFixture[str]) -> None:
    played = await play(10, 5.0)
    with capsys.disabled():
        print(f"\n{played.told()}")
    assert (played.done, played.lost, played.foreign, played.wrong, played.twice) == (10, 0, 0, 0, 0)
    assert (played.jobs, played.restarts, played.kills) == (10, 2, 2)
