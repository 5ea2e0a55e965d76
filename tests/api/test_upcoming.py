"""What is to come, over HTTP: next firings of all jobs, and starts per minute."""

from __future__ import annotations

from tests.api.conftest import JOB, paths, problem


async def make(api, key: str, **schedule: object) -> None:
    assert (await api.post("/v1/jobs", json={**JOB, "key": key, "schedule": schedule})).status_code == 201


async def test_each_job_once_in_order_of_time(api):
    await make(api, "often", every="1s")
    await make(api, "hourly", cron="0 * * * *")
    await make(api, "once", **{"in": "30m"})
    await make(api, "counted", every="10m", count=3)
    await make(api, "later", cron="0 3 1 1 *")
    asked = "/v1/upcoming?until=2023-11-15T02:13:20Z"
    found = (await api.get(asked)).json()
    assert [(each["key"], each["more"]) for each in found["items"]] == [
        ("often", 14_398),
        ("counted", None),
        ("once", 0),
        ("hourly", 3),
    ]
    assert [each["more_at_most"] for each in found["items"]] == [None, 2, None, None]
    often = found["items"][0]
    assert (often["at"], often["schedule"]) == ("2023-11-14T22:13:21.000Z", "Every second")
    assert "127.0.0.1:5003" in often["target"]

    pages, url = [], "/v1/upcoming?limit=2"
    while url:
        answer = (await api.get(url)).json()
        pages.append([each["key"] for each in answer["items"]])
        url = answer["next"]
    assert pages == [["often", "counted"], ["once", "hourly"]]
    assert paths(problem(await api.get("/v1/upcoming?until=2030-01-01T00:00:00Z"), 422)) == ["until"]


async def test_how_often_a_job_fires_after_its_next_run(api):
    await make(api, "interval", every="5s")
    await make(api, "steady", every="5s", start="2020-01-01T00:00:00Z")
    await make(api, "ends", every="5s", end="2023-11-14T22:14:20Z")
    await make(api, "cron", cron="*/2 * * * * *", tz="Europe/Berlin")
    await make(api, "each-second", cron="* * * * * *")
    await make(api, "counted", cron="* * * * * *", count=5000)
    await make(api, "last", every="1m", count=1)

    async def told(until: str) -> dict[str, tuple[int | None, int | None]]:
        items = (await api.get(f"/v1/upcoming?until={until}")).json()["items"]
        return {each["key"]: (each["more"], each["more_at_most"]) for each in items}

    assert await told("2023-11-15T22:13:20Z") == {
        "interval": (17_278, None),
        "steady": (17_278, None),
        "ends": (11, None),
        "cron": (43_198, None),
        "each-second": (86_398, None),
        "counted": (None, 4999),
        "last": (0, None),
    }
    month = await told("2023-12-14T22:13:20Z")
    assert month["interval"] == (518_398, None)
    assert month["each-second"] == (None, None), "more than 100,000"
    assert month["counted"] == (None, 4999)


async def test_starts_per_minute(api):
    for n in range(3):
        await make(api, f"three-{n}", cron="0 3 * * *")
    await make(api, "often", every="20s")
    await make(api, "quarter", cron="*/15 * * * *", tz="Europe/Berlin")
    await make(api, "once", at="2023-11-15T03:00:30Z")
    found = (await api.get("/v1/forecast?hours=6")).json()
    assert (found["since"], found["jobs"], found["complete"]) == ("2023-11-14T22:13:00.000Z", 6, True)
    assert len(found["starts"]) == 360
    assert found["starts"][:3] == [1, 3, 4], "of the minute that has begun, what is to come"
    busiest = found["busiest"][0]
    assert (busiest["at"], busiest["starts"]) == ("2023-11-15T03:00:00.000Z", 3 + 3 + 1 + 1)
    assert busiest["jobs"][0] == {"job_id": 4, "key": "often", "name": None, "starts": 3}
    assert sum(found["starts"]) == 3 + 1 + 24 + (360 * 3 - 2)
    assert paths(problem(await api.get("/v1/forecast?hours=99"), 422)) == ["hours"]
