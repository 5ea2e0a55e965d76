from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.model.duration import ACCEPTED_DURATIONS, DAY, HOUR, MINUTE, SECOND, Duration

LONGEST = 100 * 366 * DAY


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        (90, 90_000),
        (0, 0),
        (1.5, 1500),
        (0.001, 1),
        ("90", 90_000),
        ("200ms", 200),
        ("1.5s", 1500),
        ("90s", 90_000),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        ("2d", 172_800_000),
        ("1d2h3m4s5ms", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 5),
        ("PT90S", 90_000),
        ("PT1M30S", 90_000),
        ("P1D", DAY),
        ("P1W", 7 * DAY),
        ("P1DT12H", DAY + 12 * HOUR),
        ("PT0.5S", 500),
        (" 5m ", 300_000),
        ("0s", 0),
        (Duration(7), 7),
    ],
)
def test_as_people_write_them(written: object, ms: int) -> None:
    assert Duration.parse(written) == ms


@pytest.mark.parametrize(
    "written",
    ["", " ", "x", "5 m", "m", "1m1h", "1h1h", ".5s", "5.s", "1e3", "1e3s", "P", "PT", "P1DT", "PT1", "P1M",
     "1h 30m", "5M", "٣s", "5s\n5s", "--5s", "+5s", "9" * 5000, "9" * 5000 + "s", None, True, False, [], {}, b"5s",
     float("nan"), float("inf"), -float("inf")],
)  # fmt: skip
def test_what_is_no_duration(written: object) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        Duration.parse(written)


@pytest.mark.parametrize("written", [-1, -0.5, "-5s", "-PT5S", "-1"])
def test_negative(written: object) -> None:
    with pytest.raises(ValueError, match="can't be negative"):
        Duration.parse(written)


@pytest.mark.parametrize("written", [10**400, 1e300, "99999999d", "9" * 90 + "s"])
def test_too_long(written: object) -> None:
    with pytest.raises(ValueError, match="longer than 100 years"):
        Duration.parse(written)


@pytest.mark.parametrize("written", [0.0001, "0.5ms", "1.0005s", "PT0.0001S"])
def test_less_than_a_millisecond(written: object) -> None:
    with pytest.raises(ValueError, match="whole number of milliseconds"):
        Duration.parse(written)


def test_the_message_says_what_is_accepted() -> None:
    with pytest.raises(ValueError) as caught:
        Duration.parse("soon")
    assert ACCEPTED_DURATIONS in str(caught.value)


@given(st.integers(0, LONGEST))
def test_what_it_prints_reads_back(ms: int) -> None:
    duration = Duration(ms)
    assert Duration.parse(str(duration)) == duration
    assert f"{duration}" == str(duration)
    assert repr(duration) == f"Duration('{duration}')"


@given(st.integers(0, LONGEST // 1000))
def test_numbers_are_seconds(seconds: int) -> None:
    assert Duration.parse(seconds) == Duration.parse(str(seconds)) == Duration.parse(f"PT{seconds}S") == seconds * 1000
    assert Duration.parse(seconds).seconds == seconds


@given(st.integers(0, 50_000), st.integers(0, 999))
def test_fractions_are_exact(seconds: int, ms: int) -> None:
    assert Duration.parse(f"{seconds}.{ms:03}s") == seconds * 1000 + ms
    assert Duration.parse(float(f"{seconds}.{ms:03}")) == seconds * 1000 + ms


@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.binary(), st.text("0123456789.PTWDHMSdhms-")))
def test_any_input_is_read_or_refused(written: object) -> None:
    try:
        duration = Duration.parse(written)
    except ValueError:
        return
    assert 0 <= duration <= LONGEST


@pytest.mark.parametrize(("ms", "text"), [(0, "0s"), (1, "1ms"), (5_400_000, "1h30m"), (DAY, "1d"), (90_000, "1m30s")])
def test_prints(ms: int, text: str) -> None:
    assert str(Duration(ms)) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [(9_999, "9.999 s"), (10_000, "10 s"), (30_001, "31 s"), (1_280_866, "21 min 21 s"), (0, "0 s"), (38, "38 ms")],
)
def test_sentences_leave_out_what_nobody_reads(ms: int, text: str) -> None:
    assert Duration(ms).in_words() == text


@pytest.mark.parametrize(
    ("ms", "text"), [(15_800, "15.8 s"), (75_250, "1 min 15.25 s"), (DAY + 7_200_000, "1 d 2 h"), (60_000, "1 min")]
)
def test_sentences_say_a_limit_as_it_is(ms: int, text: str) -> None:
    assert Duration(ms).in_words(exact=True) == text
