"""What is asked for by somebody who is gone by then is not written, on both databases."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

import pytest

from onthedot.errors import Abandoned
from onthedot.model.actor import ChangeActor
from onthedot.model.job import JobView
from onthedot.model.key import ApiKeySpec
from onthedot.store import NewJob, Store
from onthedot.store.abandoned_requests import ASKER
from tests.store.conftest import START
from tests.store.given import HOURLY, create, fetch, spec
from tests.store.hands import node_info

SIMPLE: dict[str, Any] = {"schedule": {"in": "1h"}}


class Leaves:
    """Is there for so many looks, then gone."""

    def __init__(self, after: int) -> None:
        self.left = after
        self.name: str | None = None
        self.actor: ChangeActor | None = None

    def check(self, *, late: bool = True) -> None:
        self.left -= 1
        if self.left < 0:
            raise Abandoned("gone")


VERBS: dict[str, Callable[[Store, JobView], Awaitable[Any]]] = {
    "update": lambda store, job: store.update_job(1, job.id, lambda _: spec(name="x")),
    "put": lambda store, _: store.put_job(1, "new", lambda _: spec(key="new")),
    "pause": lambda store, job: store.pause_job(1, job.id),
    "delete": lambda store, job: store.delete_job(1, job.id),
    "run": lambda store, job: store.run_job(1, job.id),
    "backfill": lambda store, job: store.backfill_job(1, job.id, start=START - 9_000_000, end=START),
    "cancel": lambda store, job: store.cancel_run(1, f"{job.id}-{START + 2_800_000}"),
    "sync": lambda store, _: store.sync_jobs(1, "file", [spec(key="k")], prune=False),
    "key": lambda store, _: store.create_key(ApiKeySpec(name="k", scope="read"), "hash", "otd_"),
    "pause all": lambda store, _: store.freeze(1, "a note"),
    "drain": lambda store, _: store.drain("n1"),
}


async def everything(store: Store) -> list[Any]:
    tables = ("jobs", "runs", "history", "api_keys", "tenants", "idempotency", "freezes", "nodes")
    return [await fetch(store, f"SELECT * FROM {table} ORDER BY 1") for table in tables]


@pytest.mark.parametrize("looks", [0, 1])
@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_of_somebody_who_is_gone_writes_nothing(store, times, verb, looks):
    """Gone when it begins, or gone by the time that it would be committed."""
    job = await create(store, schedule=HOURLY)
    assert (await fetch(store, "SELECT slot FROM runs"))[0]["slot"] == START + 2_800_000
    await store.register(node_info("n1"))
    before = await everything(store)
    ASKER.set(Leaves(looks))
    with pytest.raises(Abandoned):
        await VERBS[verb](store, job)
    assert await everything(store) == before
    ASKER.set(Leaves(2))
    await VERBS[verb](store, job)
    assert await everything(store) != before


@pytest.mark.parametrize("looks", [0, 1])
async def test_all_stays_paused_when_who_wanted_to_resume_it_is_gone(store, times, looks):
    await store.freeze(1, "a note")
    ASKER.set(Leaves(looks))
    with pytest.raises(Abandoned):
        await store.unfreeze(1)
    assert await store.current_freeze() is not None


@pytest.mark.parametrize("fields", [SIMPLE, {**SIMPLE, "key": "a"}], ids=["simple", "with a key"])
async def test_of_a_group_only_those_are_written_who_are_still_there(store, times, fields):
    gone, there = Leaves(0), Leaves(1)
    items = [
        NewJob(tenant=1, spec=spec(name="gone", **fields), asker=gone),
        NewJob(tenant=1, spec=spec(name="there", schedule={"in": "1h"}), asker=there),
        NewJob(tenant=1, spec=spec(name="nobody asked", schedule={"in": "1h"})),
    ]
    answers = await store.create_jobs(items)
    assert [type(answer) for answer in answers] == [Abandoned, JobView, JobView]
    assert [row["name"] for row in await fetch(store, "SELECT name FROM jobs ORDER BY id")] == ["there", "nobody asked"]
    assert len(await fetch(store, "SELECT id FROM runs")) == 2


@pytest.mark.parametrize("fields", [SIMPLE, {**SIMPLE, "key": "a"}], ids=["simple", "with a key"])
@pytest.mark.parametrize("others", [0, 2])
async def test_a_create_that_arrives_after_its_deadline_is_not_written(store, times, fields, others):
    """By the database's clock: the statement itself may have been on its way for long."""

    def items(until: int) -> list[NewJob]:
        late = NewJob(tenant=1, spec=spec(**fields), asker=Leaves(9), until=until)
        return [late, *[NewJob(tenant=1, spec=spec(**SIMPLE), asker=Leaves(9), until=until)] * others]

    assert {type(answer) for answer in await store.create_jobs(items(START - 1))} == {Abandoned}
    assert await fetch(store, "SELECT id FROM jobs") == await fetch(store, "SELECT id FROM runs") == []
    for item in items(START):
        (made,) = await store.create_jobs([item])
        assert isinstance(made, JobView)


def test_whose_request_it_is_ends_with_it():
    copy_context().run(ASKER.set, Leaves(0))
    assert ASKER.get() is None
