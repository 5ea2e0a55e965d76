"""A minute of chaos on real processes. The counts are promises; lateness is only printed: the machine may be busy."""

from __future__ import annotations

import secrets

import pytest

from proof.chaos.run import play
from proof.chaos.sizes import SIZES
from proof.report import told


@pytest.mark.alone
@pytest.mark.timeout(240)
async def test_nothing_is_lost_early_or_repeated_whatever_dies(capsys: pytest.CaptureFixture[str]) -> None:
    seed = secrets.randbelow(1_000_000)
    result, story = await play(seed, SIZES["smoke"])
    with capsys.disabled():
        print("\n" + told(result))
    assert not result.violations, f"`make chaos SIZE=smoke SEED={seed}`: {result.violations[:10]}"
    figures = result.figures
    assert (figures.lost, figures.phantom, figures.early) == (0, 0, 0)
    assert (figures.unexplained_repeats, figures.at_most_once) == (0, 0)
    assert figures.scheduled > 500
    assert len(figures.kinds) >= 8
    assert len(story.sends) > 300
