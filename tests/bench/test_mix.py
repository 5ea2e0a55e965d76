"""How the highest rate is found that the API holds."""

from __future__ import annotations

from bench.ours.mix import Step, following


def step(late_ms: list[float], *, took: float = 1.0, errors: int = 0) -> Step:
    return Step(rate=100, seconds=1, late_ms=late_ms, took=took, errors=["503"] * errors)


def test_rates_double_until_one_is_too_much_then_the_middle_is_tried():
    assert following(100, None) == 200
    assert following(800, 1600) == 1200
    assert following(1500, 1600) is None, "known within a tenth"


def test_a_search_ends_close_below_what_holds():
    """Against a server that holds 1,730 a second."""
    good, asked = 100, 0
    bad: int | None = None
    while (rate := following(good, bad)) is not None:
        good, bad = (rate, bad) if rate <= 1730 else (good, rate)
        asked += 1
    assert 1730 / 1.1 <= good <= 1730
    assert asked < 12


def test_what_holds():
    assert step([10.0] * 100).holds
    assert not step([10.0] * 97 + [60.0] * 3).holds, "p99 is over 50 ms"
    assert not step([10.0] * 99).holds, "one was never answered"
    assert not step([10.0] * 100, took=2.0).holds, "it fell behind"
    assert not step([10.0] * 100, errors=1).holds
