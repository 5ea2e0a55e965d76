"""Instants at which clocks changed in some zone, each for another reason to get it wrong."""

from __future__ import annotations

from onthedot.model.instant import parse_rfc3339

CHANGES = [
    ("Europe/Berlin", "2026-03-29T01:00:00Z"),  # 02:00 → 03:00
    ("Europe/Berlin", "2026-10-25T01:00:00Z"),  # 03:00 → 02:00
    ("America/New_York", "2026-03-08T07:00:00Z"),
    ("America/New_York", "2026-11-01T06:00:00Z"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),  # half an hour
    ("Australia/Lord_Howe", "2026-10-03T15:30:00Z"),
    ("Asia/Kathmandu", "1985-12-31T18:30:00Z"),  # 15 minutes, at midnight
    ("Africa/Casablanca", "2026-02-15T02:00:00Z"),  # Ramadan: back, and forth again a month later
    ("Africa/Casablanca", "2026-03-22T02:00:00Z"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00Z"),  # no midnight that day
    ("America/Sao_Paulo", "2018-02-18T02:00:00Z"),  # the last hour of a day twice
    ("Pacific/Apia", "2011-12-30T10:00:00Z"),  # a whole day skipped
    ("Antarctica/Troll", "2026-03-29T01:00:00Z"),  # two hours
    ("Antarctica/Troll", "2026-10-25T01:00:00Z"),
    ("Europe/Dublin", "2026-03-29T01:00:00Z"),  # "summer" is standard time there: negative daylight saving
    ("Europe/Dublin", "2026-10-25T01:00:00Z"),
    ("Asia/Kolkata", "2026-03-29T01:00:00Z"),  # nothing happens
    ("UTC", "2026-03-29T01:00:00Z"),
]


def ms(text: str) -> int:
    instant = parse_rfc3339(text)
    assert instant is not None
    return instant
