"""Numbers over time, over HTTP."""

from __future__ import annotations

from onthedot.clock import FakeClock
from tests.api.conftest import JOB, paths, problem
from tests.api.executor import FAILED, TinyNode


async def test_runs_per_minute_with_the_empty_ones(app, api, fake_clock: FakeClock):
    store = app.context.service.store
    await store.roll_up()
    node = TinyNode(store)
    await node.register()
    job = (await api.post("/v1/jobs", json=JOB)).json()
    await api.post(f"/v1/jobs/{job['id']}/run")
    await node.work(FAILED)
    fake_clock.step_wall(120_000)
    await store.roll_up()
    series = (
        await api.get("/v1/stats/series?step=minute&since=2023-11-14T22:10:30Z&until=2023-11-14T22:14:00Z")
    ).json()
    assert [point["failed"] for point in series["items"]] == [0, 0, 0, 1]
    assert (series["since"], series["counted_until"]) == ("2023-11-14T22:10:00.000Z", "2023-11-14T22:15:00.000Z")
    assert series["items"][3]["at"] == "2023-11-14T22:13:00.000Z"
    assert len((await api.get("/v1/stats/series?step=day")).json()["items"]) == 30

    (point,) = (await api.get("/v1/jobs/by-key/nightly/series")).json()["items"]
    assert (point["status"], point["run_id"].split("-")[0]) == ("FAILED", str(job["id"]))


async def test_what_is_refused(api):
    assert paths(problem(await api.get("/v1/stats/series?step=week"), 422)) == ["step"]
    problem(await api.get("/v1/stats/series?since=2023-01-01T00:00:00Z&until=2023-01-09T00:00:00Z"), 422)
    problem(await api.get("/v1/stats/series?since=2023-01-09T00:00:00Z&until=2023-01-01T00:00:00Z"), 422)
    problem(await api.get("/v1/jobs/99/series"), 404)


async def test_the_proof(app, api, fake_clock: FakeClock):
    assert (await api.get("/v1/proof")).json()["ok"] is None
    store = app.context.service.store
    await api.post("/v1/jobs", json={**JOB, "schedule": {"every": "1m"}})
    while not await store.prove():
        pass
    proof = (await api.get("/v1/proof")).json()
    assert (proof["ok"], proof["jobs"], proof["blind"], proof["complete"]) == (True, 1, [], True)
    fake_clock.step_wall(3_600_000)
    await fake_clock.advance(60)
    late = (await api.get("/v1/proof")).json()
    assert (late["ok"], len(late["blind"])) == (False, 1), "nobody has looked for an hour"
