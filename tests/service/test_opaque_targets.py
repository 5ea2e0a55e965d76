"""A job of a kind that this node does not know can be looked after, but not made or changed."""

from __future__ import annotations

import pytest

from onthedot.errors import Invalid, NotAvailable
from onthedot.model.job import JobView
from onthedot.model.targets import OpaqueTarget, WebhookTarget, registry
from onthedot.service import Service
from onthedot.store import JobFilter, NewJob, Store
from tests.service.conftest import TENANT, spec

STORED = {"type": "teleport", "to": "Mars"}


@pytest.fixture
async def job(store: Store) -> JobView:
    """As a node that knows the kind would make it."""
    new = NewJob(tenant=TENANT, spec=spec(key="far", target=OpaqueTarget(STORED, "teleport:mars", 1)))
    (made,) = await store.create_jobs([new])
    assert isinstance(made, JobView)
    return made


async def test_it_is_shown_paused_resumed_run_and_deleted(service: Service, job: JobView):
    assert (await service.get_job_by_key(TENANT, "far")).target.type == "teleport"
    assert [each.id for each in (await service.list_jobs(TENANT, JobFilter())).items] == [job.id]
    assert (await service.pause_job(TENANT, job.id)).state == "paused"
    assert (await service.resume_job(TENANT, job.id)).state == "active"
    assert (await service.run_job(TENANT, job.id)).status == "PENDING"
    await service.delete_job(TENANT, job.id)


async def test_it_is_not_changed(service: Service, job: JobView):
    for patch in ({"name": "x"}, {"target": {"to": "Venus"}}):
        with pytest.raises(Invalid) as caught:
            await service.patch_job(TENANT, job.id, patch)
        (problem,) = caught.value.problems
        assert (problem.path, problem.message, problem.given) == ("target.type", "unknown target type", "teleport")
        assert "webhook, function, command" in str(problem.accepted)
    assert (await service.get_job(TENANT, job.id)).version == job.version


async def test_a_kind_of_the_contract_is_not_available(service: Service, store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "PLANNED", ("fax",))
    (made,) = await store.create_jobs(
        [NewJob(tenant=TENANT, spec=spec(target=OpaqueTarget({"type": "fax", "number": "1"}, "fax", 1)))]
    )
    assert isinstance(made, JobView)
    with pytest.raises(NotAvailable, match="'fax' is not supported in this version"):
        await service.patch_job(TENANT, made.id, {"name": "x"})


async def test_it_may_become_a_job_of_a_kind_that_is_known(service: Service, job: JobView):
    changed = await service.replace_job(TENANT, job.id, spec(key="far"))
    assert isinstance(changed.target, WebhookTarget)
