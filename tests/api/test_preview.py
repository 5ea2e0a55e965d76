"""What a schedule will do."""

from __future__ import annotations

import pytest

from tests.api.conftest import paths, problem


async def test_the_next_fire_times_with_words_and_remarks(api):
    asked = {"schedule": {"cron": "0 3 * * *", "tz": "Europe/Berlin"}, "after": "2026-03-27T00:00:00Z", "count": 3}
    answer = await api.post("/v1/preview", json=asked)
    assert answer.status_code == 200, answer.text
    assert answer.json()["fires"] == [
        "2026-03-27T02:00:00.000Z",
        "2026-03-28T02:00:00.000Z",
        "2026-03-29T01:00:00.000Z",
    ]
    assert "03:00" in answer.json()["description"]
    assert isinstance(answer.json()["remarks"], list)


async def test_ten_from_now_unless_told_otherwise(api):
    answer = await api.post("/v1/preview", json={"schedule": {"every": "1m"}})
    assert len(answer.json()["fires"]) == 10
    assert answer.json()["fires"][0] == "2023-11-14T22:14:20.000Z"


async def test_a_schedule_that_ends_gives_what_there_is(api):
    asked = {"schedule": {"every": "1m", "count": 2}, "count": 5}
    assert len((await api.post("/v1/preview", json=asked)).json()["fires"]) == 2


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, ["schedule"]),
        ({"schedule": {}}, ["schedule"]),
        ({"schedule": {"cron": "61 * * * *"}}, ["schedule.cron"]),
        ({"schedule": {"cron": "0 0 30 2 *"}}, ["schedule.cron"]),
        ({"schedule": {"every": "1m"}, "count": 0}, ["count"]),
        ({"schedule": {"every": "1m"}, "count": 1001}, ["count"]),
        ({"schedule": {"every": "1m"}, "after": "then"}, ["after"]),
        ({"schedule": {"every": "1m"}, "before": "now"}, ["before"]),
        ({"schedule": {"rrule": "FREQ=DAILY"}}, ["schedule.rrule"]),
    ],
)
async def test_a_wrong_question_says_what_is_wrong(api, body, wrong):
    found = paths(problem(await api.post("/v1/preview", json=body), 422))
    assert [path for path in found if not any(path.startswith(expected) for expected in wrong)] == []
    assert found


@pytest.mark.parametrize("after", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "1582-10-10T00:00:00Z"])
@pytest.mark.parametrize(
    "schedule",
    [{"cron": "0 3 * * *", "tz": "Europe/Berlin"}, {"cron": "*/7 * * * * *"}, {"every": "13h"}, {"in": "1s"}],
)
async def test_the_ends_of_time_are_answered_too(api, after, schedule):
    answer = await api.post("/v1/preview", json={"schedule": schedule, "after": after, "count": 1000})
    assert answer.status_code in (200, 422), answer.text
