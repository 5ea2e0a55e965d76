from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.model.instant import NEVER, format_instant, parse_local, parse_rfc3339

FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("1970-01-01t00:00:01z", 1000),
        ("1970-01-01 00:00:01+00:00", 1000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00Z", 0),
        ("1969-12-31T23:59:59.9999Z", -1),  # the part of a millisecond is dropped downwards
        ("2025-11-15T19:22:47.890Z", 1_763_234_567_890),
        ("2026-03-29T02:30:00.123456789+02:00", 1_774_744_200_123),
    ],
)
def test_reads(text: str, ms: int) -> None:
    assert parse_rfc3339(text) == ms


NO_INSTANTS = [
    *(
        "",
        "x",
        "2026",
        "2026-01",
        "20260101T000000Z",
        "10000-01-01T00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-02-30T00:00:00Z",
    ),
    *("2026-01-01T24:00:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00", "2026-01-01", "2026-01-01T00:00:00+25:00"),
    *("2026-01-01T00:00:00 Z", " 2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z\n", "٢٠٢٦-01-01T00:00:00Z"),
    "2026-01-01T00:00:00.Z",
]


@pytest.mark.parametrize("text", NO_INSTANTS)
def test_refuses(text: str) -> None:
    assert parse_rfc3339(text) is None


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("2022-11-21", datetime.fromisoformat("2022-11-21T00:00")),
        ("2022-11-21T02:30", datetime.fromisoformat("2022-11-21T02:30")),
        ("2022-11-21 02:30:01.5", datetime.fromisoformat("2022-11-21T02:30:01.500000")),
    ],
)
def test_local_times_have_no_offset(text: str, local: datetime) -> None:
    assert parse_local(text) == (local, False)


def test_a_written_offset_is_seen() -> None:
    moment, has_offset = parse_local("2022-11-21T02:30:00-05:00")
    assert has_offset
    assert moment is not None
    assert moment.utcoffset() == timedelta(hours=-5)


@given(st.integers(FIRST, LAST))
def test_what_is_written_reads_back(ms: int) -> None:
    text = format_instant(ms)
    assert len(text) == len("2025-11-15T19:22:47.890Z")
    assert parse_rfc3339(text) == ms


@given(st.datetimes(timezones=st.just(UTC)))
def test_agrees_with_datetime(moment: datetime) -> None:
    expected = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert parse_rfc3339(moment.isoformat()) == expected


@given(st.integers())
def test_no_number_is_too_large_to_print(ms: int) -> None:
    assert format_instant(ms).endswith("Z")


def test_never_prints_as_the_last_instant() -> None:
    assert format_instant(NEVER) == "9999-12-31T23:59:59.999Z"
    assert format_instant(-NEVER) == "0001-01-01T00:00:00.000Z"


@given(st.text() | st.text("0123456789-:TZ+. "))
def test_any_text_is_read_or_refused(text: str) -> None:
    local, has_offset = parse_local(text)
    assert local is not None or not has_offset
    assert parse_rfc3339(text) is None or has_offset
