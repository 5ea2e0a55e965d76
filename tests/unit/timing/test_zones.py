"""Zones: which names exist, and where their clocks change, against the zone files themselves."""

from __future__ import annotations

import re
import struct
import zoneinfo
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from onthedot.model.duration import DAY, HOUR
from onthedot.timing import zones
from onthedot.timing.zones import EARLIEST, LATEST, close_names, from_local, is_zone, stretch_at, zone_data
from tests.unit.timing.changes import CHANGES, ms
from tests.unit.timing.zone_files import zone_file

ODD_ZONES = sorted({zone for zone, _ in CHANGES} | {"Asia/Gaza", "America/Recife", "Pacific/Kwajalein", "Africa/Cairo"})


def changes_in_file(zone: str) -> list[tuple[int, int, int]]:
    """(second, old offset, new offset), read from the compiled zone file (RFC 9636) by nobody's code but this."""
    data = zone_file(zone).read_bytes()

    def header(at: int) -> tuple[int, ...]:
        return struct.unpack(">6l", data[at + 20 : at + 44])

    ut, std, leap, times, types, chars = header(0)
    at = 44 + times * 5 + types * 6 + chars + leap * 8 + std + ut
    _, _, _, times, types, _ = header(at)
    at += 44
    instants = struct.unpack(f">{times}q", data[at : at + 8 * times])
    kinds = data[at + 8 * times : at + 9 * times]
    table = at + 9 * times
    offsets = [struct.unpack(">l", data[table + 6 * i : table + 6 * i + 4])[0] for i in range(types)]
    steps = list(zip(instants, (offsets[kind] for kind in kinds), strict=True))
    return [(t, old, new) for (_, old), (t, new) in pairwise(steps) if old != new]


def test_no_zone_changes_twice_within_the_probing_step() -> None:
    names = [name for name in zoneinfo.available_timezones() if is_zone(name)]
    assert len(names) > 400
    gaps = [b[0] - a[0] for name in names for a, b in pairwise(changes_in_file(name))]
    assert min(gaps) * 1000 > 3 * DAY


@pytest.mark.parametrize("zone", ODD_ZONES)
def test_stretches_are_those_of_the_zone_file(zone: str) -> None:
    expected = [change for change in changes_in_file(zone) if 0 < change[0] < 2_145_916_800]  # 1970 to 2037
    found, stretch = [], stretch_at(zone, 0)
    while stretch.end < 2_145_916_800_000:
        following = stretch_at(zone, stretch.end)
        assert following.start == stretch.end
        assert following.before == stretch.offset
        if following.offset != stretch.offset:
            found.append((following.start // 1000, stretch.offset // 1000, following.offset // 1000))
        stretch = following
    assert found[: len(expected)] == expected


@pytest.fixture
def another_system(tmp_path: Path) -> Iterator[Path]:
    """One whose zone files are wrong, or newer: there Berlin keeps Tokyo's time, and there is a base on Mars."""
    for name in ("Europe/Berlin", "Mars/Base"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(zone_file("Asia/Tokyo").read_bytes())
    caches = (zones.zone, zones.zone_names, zones._stretches)
    zoneinfo.reset_tzpath([tmp_path])
    for kept in caches:
        kept.cache_clear()
    yield tmp_path
    zoneinfo.reset_tzpath()
    zoneinfo.ZoneInfo.clear_cache()
    for kept in caches:
        kept.cache_clear()


@pytest.mark.usefixtures("another_system")
def test_nodes_agree_whatever_their_systems_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONTZPATH", raising=False)
    assert stretch_at("Europe/Berlin", ms("2026-07-01T00:00:00Z")).offset == 2 * HOUR
    assert not is_zone("Mars/Base")
    assert re.fullmatch(r"20\d\d[a-z]", zone_data())


def test_who_names_a_place_for_zones_decides(another_system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONTZPATH", str(another_system))
    zoneinfo.ZoneInfo.clear_cache()
    assert stretch_at("Europe/Berlin", ms("2026-07-01T00:00:00Z")).offset == 9 * HOUR
    assert is_zone("Mars/Base")
    assert zone_data() == str(another_system)


@pytest.mark.parametrize("t", [EARLIEST, EARLIEST + 1, 0, LATEST - 1])
def test_the_ends_of_time_have_a_stretch(t: int) -> None:
    for zone in ("Pacific/Kiritimati", "Europe/Berlin", "Etc/GMT+12"):
        stretch = stretch_at(zone, t)
        assert stretch.start <= t < stretch.end


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/Argentina/San_Luis", "Etc/GMT-14", "GB", "EST5EDT"])
def test_names(name: str) -> None:
    assert is_zone(name)


NOT_NAMES = [
    *(
        "",
        "localtime",
        "Factory",
        "posixrules",
        "../etc/passwd",
        "/etc/localtime",
        "europe/berlin",
        "Europe/Berlin ",
        "utc",
    ),
    *(
        "Europe",
        "Europe/",
        "Mars/Base",
        "+02:00",
        "UTC+2",
        "posix/UTC",
        "right/UTC",
        "leapseconds",
        "zone.tab",
        "a\x00b",
    ),
]


@pytest.mark.parametrize("name", NOT_NAMES)
def test_no_names(name: str) -> None:
    assert not is_zone(name)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("europe/berlin", "Europe/Berlin"),
        ("Berlin", "Europe/Berlin"),
        ("Europe/Belrin", "Europe/Berlin"),
        ("New York", "America/New_York"),
        ("utc", "UTC"),
    ],
)
def test_the_nearest_name_is_offered_first(given: str, meant: str) -> None:
    assert close_names(given)[0] == meant


def test_nothing_is_offered_for_noise() -> None:
    assert close_names("qqqqqqqqqqqqqqqqqqqqqq") == []
    assert close_names("") == []


@pytest.mark.parametrize(
    ("zone", "local", "instant"),
    [
        ("Europe/Berlin", "2026-03-29T01:59:59", "2026-03-29T00:59:59Z"),
        ("Europe/Berlin", "2026-03-29T02:00:00", "2026-03-29T01:00:00Z"),  # gap: the first valid instant
        ("Europe/Berlin", "2026-03-29T02:59:59", "2026-03-29T01:00:00Z"),
        ("Europe/Berlin", "2026-03-29T03:00:00", "2026-03-29T01:00:00Z"),
        ("Europe/Berlin", "2026-03-29T03:00:01", "2026-03-29T01:00:01Z"),
        ("Europe/Berlin", "2026-10-25T02:30:00", "2026-10-25T00:30:00Z"),  # fold: the first pass
        ("Europe/Berlin", "2026-10-25T03:00:00", "2026-10-25T02:00:00Z"),
        ("Pacific/Apia", "2011-12-30T12:00:00", "2011-12-30T10:00:00Z"),
        ("America/Sao_Paulo", "2018-11-04T00:00:00", "2018-11-04T03:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-04T02:15:00", "2026-10-03T15:30:00Z"),
        ("Antarctica/Troll", "2026-03-29T02:00:00", "2026-03-29T01:00:00Z"),
        ("Asia/Kathmandu", "2026-01-01T00:00:00", "2025-12-31T18:15:00Z"),
        ("UTC", "2026-01-01T00:00:00", "2026-01-01T00:00:00Z"),
    ],
)
def test_local_time(zone: str, local: str, instant: str) -> None:
    assert from_local(zone, datetime.fromisoformat(local)) == ms(instant)


def test_local_times_at_the_ends_of_time_are_refused_not_raised() -> None:
    for text in ("0001-01-01", "9999-01-01", "9999-12-31T23:59:59.999999"):
        moment = datetime.fromisoformat(text)
        for zone in ("Pacific/Kiritimati", "Etc/GMT+12", "Europe/Berlin"):
            assert from_local(zone, moment) is None
