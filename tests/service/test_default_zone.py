"""DEFAULT_TZ: the zone of schedules that name none, from the moment they are written."""

from __future__ import annotations

import pytest

from onthedot.clock import FakeClock
from onthedot.errors import SettingsError
from onthedot.model.change_plan import PlanRequest
from onthedot.model.decoding import convert
from onthedot.model.job import JobSpec, JobView
from onthedot.model.schedule import Schedule
from onthedot.service import Service
from onthedot.settings import Settings, load_settings
from onthedot.store import Store
from tests.service.conftest import TENANT, URL, Agreeable

BERLIN = "Europe/Berlin"
NIGHTLY = {"cron": "0 3 * * *"}
AT_THREE_THERE, AT_THREE_UTC = "T02:00:00.000Z", "T03:00:00.000Z"  # in winter


def job(**more: object) -> JobSpec:
    return convert({"schedule": NIGHTLY, "target": {"type": "webhook", "url": URL}, **more}, JobSpec)


@pytest.fixture
def services(store: Store, fake_clock: FakeClock) -> dict[str, Service]:
    """The same installation, before and after the setting was changed."""
    return {zone: Service(store, Agreeable(), fake_clock, Settings(default_tz=zone)) for zone in (BERLIN, "UTC")}


def fires_at(view: JobView) -> str:
    assert view.next_run is not None
    return view.next_run[10:]


@pytest.fixture(autouse=True)
def winter(fake_clock: FakeClock) -> None:
    fake_clock.step_wall(1_765_000_000_000 - fake_clock.now_ms())  # 2025-12-06


async def test_it_is_stored_with_the_job(services: dict[str, Service]):
    berlin, utc = services[BERLIN], services["UTC"]
    made = await berlin.create_job(TENANT, job(key="made"))
    assert (made.schedule.tz, fires_at(made)) == (BERLIN, AT_THREE_THERE)
    (batched,) = await berlin.create_many(TENANT, [job()])
    put, _ = await berlin.put_job_by_key(TENANT, "put", job())
    assert isinstance(batched, JobView)
    assert fires_at(batched) == fires_at(put) == AT_THREE_THERE
    named = await berlin.create_job(TENANT, job(schedule={**NIGHTLY, "tz": "UTC"}))
    assert (named.schedule.tz, fires_at(named)) == ("UTC", AT_THREE_UTC), "who says UTC means it"
    for view in (made, batched, put):
        assert fires_at(await utc.patch_job(TENANT, view.id, {"tags": ["x"]})) == AT_THREE_THERE


async def test_a_job_from_before_the_setting_stays_in_utc(services: dict[str, Service]):
    berlin, utc = services[BERLIN], services["UTC"]
    made = await utc.create_job(TENANT, job(key="old"))
    assert fires_at(made) == AT_THREE_UTC
    patched = await berlin.patch_job(TENANT, made.id, {"tags": ["x"]})
    replaced = await berlin.replace_job(TENANT, made.id, job(key="old"))
    assert (fires_at(patched), fires_at(replaced)) == (AT_THREE_UTC, AT_THREE_UTC)
    moved = await berlin.patch_job(TENANT, made.id, {"schedule": {"tz": BERLIN}})
    assert fires_at(moved) == AT_THREE_THERE
    restored = await berlin.restore_version(TENANT, made.id, made.version)
    assert fires_at(restored) == AT_THREE_UTC


@pytest.mark.parametrize(("first", "then", "fires"), [(BERLIN, "UTC", AT_THREE_THERE), ("UTC", BERLIN, AT_THREE_UTC)])
async def test_the_same_file_again_changes_nothing(services: dict[str, Service], first: str, then: str, fires: str):
    await services[first].sync(TENANT, "file", [job(key="a")])
    report = await services[then].sync(TENANT, "file", [job(key="a")])
    assert (report.unchanged, report.updated) == (["a"], [])
    assert fires_at(await services[then].get_job_by_key(TENANT, "a")) == fires
    plan = await services[then].plan_changes(TENANT, PlanRequest(jobs=[job(key="a")]), busy=False)
    assert [each.change for each in plan.jobs] == ["unchanged"]
    await services[then].sync(TENANT, "file", [job(key="a", schedule={"cron": "0 4 * * *"})])
    assert (await services[then].get_job_by_key(TENANT, "a")).schedule.tz == then, "a new schedule has the new default"


async def test_local_times_and_previews_are_in_it(services: dict[str, Service]):
    once = await services[BERLIN].create_job(TENANT, job(schedule={"at": "2026-07-01T09:00:00"}))
    assert once.next_run == "2026-07-01T07:00:00.000Z"
    seen = await services[BERLIN].preview(Schedule(cron="0 3 * * *"), count=1)
    assert seen.fires[0].endswith(AT_THREE_THERE)
    seen = await services[BERLIN].preview(Schedule(cron="0 3 * * *", tz="UTC"), count=1)
    assert seen.fires[0].endswith(AT_THREE_UTC)


def test_only_zones_are_taken():
    assert load_settings(environ={"ONTHEDOT_DEFAULT_TZ": BERLIN}).default_tz == BERLIN
    for wrong in ("Berlin", "+01:00", "../UTC", "europe/berlin"):
        with pytest.raises(SettingsError, match="DEFAULT_TZ"):
            load_settings(environ={"ONTHEDOT_DEFAULT_TZ": wrong})
