"""The service under many callers at once, on real stores of both kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from onthedot.clock import SystemClock
from onthedot.errors import Conflict, OnTheDotError, VersionMismatch
from onthedot.model.job import JobView
from onthedot.model.timer import TimerSpec
from onthedot.service import Service
from onthedot.settings import Settings
from onthedot.store import JobFilter, open_store
from tests.service.conftest import TENANT, URL, Agreeable, spec


@pytest.fixture
async def services(store_url) -> AsyncIterator[list[Service]]:
    """Two nodes' services; on SQLite there is one store, so both work on that."""
    stores = [await open_store(store_url)]
    if not store_url.startswith("sqlite"):
        stores.append(await open_store(store_url))
    made = [Service(stores[n % len(stores)], Agreeable(), SystemClock(), Settings()) for n in range(2)]
    yield made
    for service in made:
        await service.close()
    for store in stores:
        await store.close()


async def settled(*calls) -> list[Any]:
    return await asyncio.gather(*calls, return_exceptions=True)


async def test_a_hundred_creates_at_once_are_all_there(services):
    made = await settled(*(services[n % 2].create_job(TENANT, spec(key=f"job-{n}")) for n in range(100)))
    assert all(isinstance(job, JobView) for job in made)
    assert len({job.id for job in made if isinstance(job, JobView)}) == 100
    page = await services[0].list_jobs(TENANT, JobFilter(limit=500))
    assert {job.key for job in page.items} == {f"job-{n}" for n in range(100)}


async def test_of_many_who_want_a_key_one_gets_it(services):
    made = await settled(*(services[n % 2].create_job(TENANT, spec(key="one", name=str(n))) for n in range(20)))
    winners = [job for job in made if isinstance(job, JobView)]
    assert len(winners) == 1
    assert all(isinstance(job, Conflict) for job in made if job not in winners)
    assert (await services[1].get_job_by_key(TENANT, "one")).id == winners[0].id


async def test_one_request_sent_many_times_at_once_makes_one_job(services):
    made = await settled(*(services[n % 2].create_job(TENANT, spec(), "once") for n in range(20)))
    assert len({job.id for job in made if isinstance(job, JobView)}) == 1
    assert not [error for error in made if isinstance(error, BaseException)]


async def test_one_timer_sent_many_times_at_once_is_one_timer(services):
    timer = TimerSpec(seconds=100, url=URL)
    made = await asyncio.gather(*(services[n % 2].create_timer(TENANT, timer, "once") for n in range(20)))
    assert len({view.id for view in made}) == 1
    assert {view.time_left for view in made} <= {99, 100}


async def test_of_many_conditional_changes_one_wins_each_round(services):
    job = await services[0].create_job(TENANT, spec())
    for version in range(1, 4):
        changes = await settled(
            *(services[n % 2].patch_job(TENANT, job.id, {"name": f"{version}-{n}"}, version) for n in range(6))
        )
        assert sum(isinstance(change, JobView) for change in changes) == 1
        assert sum(isinstance(change, VersionMismatch) for change in changes) == 5
    assert (await services[0].get_job(TENANT, job.id)).version == 4


async def test_unconditional_changes_all_count(services):
    job = await services[0].create_job(TENANT, spec())
    await asyncio.gather(*(services[n % 2].patch_job(TENANT, job.id, {"params": {f"p{n}": n}}) for n in range(12)))
    assert (await services[0].get_job(TENANT, job.id)).params == {f"p{n}": n for n in range(12)}


async def test_many_puts_by_one_key_leave_one_job(services):
    made = await settled(*(services[n % 2].put_job_by_key(TENANT, "k", spec(name=str(n % 3))) for n in range(12)))
    assert not [error for error in made if isinstance(error, OnTheDotError)]
    page = await services[0].list_jobs(TENANT, JobFilter())
    assert [job.key for job in page.items] == ["k"]


async def test_two_nodes_that_load_the_same_file_do_not_collide(services):
    specs = [spec(key=f"f{n}") for n in range(30)]
    reports = await asyncio.gather(*(service.sync(TENANT, "jobs.json", specs, prune=True) for service in services))
    assert sorted(len(report.created) for report in reports) == [0, 30]
    assert sorted(len(report.unchanged) for report in reports) == [0, 30]


async def test_run_now_sent_many_times_is_one_run(services):
    job = await services[0].create_job(TENANT, spec())
    runs = await asyncio.gather(*(services[n % 2].run_job(TENANT, job.id, "now") for n in range(10)))
    assert len({run.id for run in runs}) == 1


async def test_time_is_the_database_s(services):
    there = await services[0].store.now()
    assert abs(await services[0].time.now() - there) < 1000
