"""A jobs file is applied as a whole, or not at all."""

from __future__ import annotations

import pytest

from onthedot.errors import Invalid
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from onthedot.store import JobFilter
from tests.service.conftest import TENANT, spec


async def keys(service) -> set[str]:
    return {job.key for job in (await service.list_jobs(TENANT, JobFilter())).items}


async def test_the_same_file_again_changes_nothing(service):
    specs = [spec(key="a"), spec(key="b")]
    assert (await service.sync(TENANT, "jobs.json", specs)).created == ["a", "b"]
    again = await service.sync(TENANT, "jobs.json", specs, prune=True)
    assert (again.created, again.updated, again.removed, again.unchanged) == ([], [], [], ["a", "b"])


async def test_what_is_no_longer_in_it_goes_only_when_told(service):
    await service.sync(TENANT, "jobs.json", [spec(key="a"), spec(key="b")])
    assert (await service.sync(TENANT, "jobs.json", [spec(key="a")])).removed == []
    assert await keys(service) == {"a", "b"}
    assert (await service.sync(TENANT, "jobs.json", [spec(key="a")], prune=True)).removed == ["b"]
    assert await keys(service) == {"a"}


async def test_jobs_of_others_are_not_touched(service):
    await service.create_job(TENANT, spec(key="mine"))
    await service.sync(TENANT, "other.json", [spec(key="other")])
    await service.sync(TENANT, "jobs.json", [spec(key="a")], prune=True)
    assert await keys(service) == {"mine", "other", "a"}


async def test_one_wrong_job_and_nothing_is_applied(service, hints):
    wrong = spec(key="c", target=WebhookTarget(url="http://forbidden.x/"))
    also = spec(key="d", schedule=Schedule(cron="61 * * * *"))
    with pytest.raises(Invalid) as caught:
        await service.sync(TENANT, "jobs.json", [spec(key="a"), wrong, also])
    assert [problem.path for problem in caught.value.problems] == ["jobs[1].target.url", "jobs[2].schedule.cron"]
    assert await keys(service) == set()
    assert hints == []


async def test_a_dry_run_only_tells(service, hints):
    report = await service.sync(TENANT, "jobs.json", [spec(key="a")], dry_run=True)
    assert report.created == ["a"]
    assert await keys(service) == set()
    assert hints == []


async def test_a_past_time_is_refused_when_new_and_kept_when_known(service, fake_clock):
    specs = [spec(key="a", schedule=Schedule(at="2023-11-14T22:13:30Z"))]
    await service.sync(TENANT, "jobs.json", specs)
    await fake_clock.advance(60)
    assert (await service.sync(TENANT, "jobs.json", specs)).unchanged == ["a"]
    with pytest.raises(Invalid, match="past"):
        await service.sync(TENANT, "jobs.json", [*specs, spec(key="b", schedule=Schedule(at="2023-11-14T22:13:30Z"))])


async def test_what_changed_is_hinted_at(service, hints):
    await service.sync(TENANT, "jobs.json", [spec(key="a")])
    assert hints == ["due", "orders"]
