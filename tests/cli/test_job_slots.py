"""`onthedot jobs explain` and `jobs backfill`, and what `jobs show` says of a schedule, against a real server."""

from __future__ import annotations

import pytest


@pytest.fixture
def hourly(online, key):
    """A job that has slots in the past, none of which was run."""
    made = online(
        "jobs", "add", "--cron", "0 * * * *", "--start", "2030-01-01T00:00:00Z", "--end", "2031-01-01T00:00:00Z",
        "--count", "500", "--key", key, "--command", "say", "--json",
    )  # fmt: skip
    assert made.code == 0, made.err
    return made.json


def test_show_tells_the_bounds_of_the_schedule_and_its_meaning(online, hourly):
    shown = dict(line.split(None, 1) for line in online("jobs", "show", hourly["key"]).out.splitlines())
    assert shown["meaning"] == "At the start of every hour"
    assert shown["start"] == "2030-01-01T00:00:00Z"
    assert shown["end"] == "2031-01-01T00:00:00Z"
    assert shown["count"] == "500"


def test_explain_says_why(online, hourly):
    told = online("jobs", "explain", hourly["key"], "--at", "2030-01-01T05:00:00Z")
    assert told.code == 0, told.err
    assert "it will fire" in told.out
    answer = online("jobs", "explain", hourly["key"], "--at", "2030-01-01T05:30:00Z", "--json").json
    assert not answer["slot"]
    assert answer["next"] == "2030-01-01T06:00:00.000Z"
    assert online("jobs", "explain", hourly["key"]).code == 0, "without --at it is about now"
    wrong = online("jobs", "explain", hourly["key"], "--at", "yesterday")
    assert wrong.code == 1
    assert "yesterday" in wrong.err


def test_explain_a_range_and_the_calendar(online, hourly):
    span = ("--since", "2030-01-01T05:00:00Z", "--until", "2030-01-01T06:30:00Z")
    told = online("jobs", "explain", hourly["key"], *span)
    assert told.code == 0, told.err
    assert told.out.count("planned") == 2
    assert [
        each["slot"][11:16] for each in online("jobs", "explain", hourly["key"], *span, "--json").json["items"]
    ] == [
        "06:00",
        "05:00",
    ]
    assert online("jobs", "explain", hourly["key"], *span, "--at", "2030-01-01T06:30:00Z").code == 2
    days = online("jobs", "calendar", hourly["key"], "--since", "2030-01-20T00:00:00Z", "--json").json["items"]
    assert [(day["date"], day["planned"]) for day in days[:3]] == [
        ("2030-01-20", 24),
        ("2030-01-21", 20),
        ("2030-01-22", 0),
    ]
    assert "2030-01-21" in online("jobs", "calendar", hourly["key"], "--since", "2030-01-20T00:00:00Z").out


def test_chain_lists_the_neighbours(online, hourly):
    assert online("jobs", "chain", hourly["key"]).out == "It is in no chain.\n"
    assert online("jobs", "chain", hourly["key"], "--json").json == {"follows": [], "followers": []}


def test_backfill_counts_first_and_then_runs(online, key):
    made = online("jobs", "add", "--every", "1h", "--start", "2020-01-01T00:00:00Z", "--key", key, "--command", "say")
    assert made.code == 0, made.err
    span = ("2020-03-01T00:00:00Z", "2020-03-01T02:00:00Z")
    slots = online("jobs", "backfill", key, *span, "--dry-run", "--json").json["slots"]
    assert slots == [f"2020-03-01T0{hour}:00:00.000Z" for hour in range(3)]
    listed = online("jobs", "backfill", key, *span, "--dry-run")
    assert listed.out.splitlines() == [*slots, "3 slots would be backfilled."]
    assert online("runs", "list", key, "--json").json == [], "a dry run starts nothing"
    filled = online("jobs", "backfill", key, *span)
    assert filled.out.startswith("Created 3 runs")
    again = online("jobs", "backfill", key, *span)
    assert again.out == "No slots to backfill in this range.\n"
    assert len(online("jobs", "backfill", key, *span, "--force", "--json").json["runs"]) == 3


def test_a_wrong_range_is_refused(online, hourly):
    wrong = online("jobs", "backfill", hourly["key"], "2026-03-02T00:00:00Z", "2026-03-01T00:00:00Z")
    assert wrong.code == 1
    assert "end" in wrong.err


def test_a_slot_is_skipped_and_taken_back(online, hourly):
    slot, job = "2030-01-01T02:00:00Z", hourly["key"]
    assert online("jobs", "skip", job, slot).out.startswith(f"Job {job} skips {slot}; next run in ")
    listed = online("jobs", "upcoming", job, "-n", "3").out.splitlines()
    assert [line.split()[0] for line in listed[1:]] == [f"2030-01-01T0{hour}:00:00.000Z" for hour in range(4)]
    assert "skipped by someone without a key" in listed[3]
    assert "skipped by someone without a key" in online("jobs", "explain", job, "--at", slot).out
    wrong = online("jobs", "skip", job, "2030-01-01T02:30:00Z")
    assert wrong.code == 1
    assert "2030-01-01T03:00:00.000Z" in wrong.err
    assert online("jobs", "unskip", job, slot).code == 0
    assert online("jobs", "upcoming", job, "-n", "3", "--json").json["skipped"] == []
