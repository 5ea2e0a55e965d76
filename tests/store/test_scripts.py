"""Which scripts a tenant has."""

from __future__ import annotations

import pytest

from onthedot.errors import Conflict, Invalid, NotFound
from onthedot.model.script import script_id
from onthedot.model.targets import ScriptTarget
from onthedot.store import Store
from tests.store.conftest import START, Times
from tests.store.hands import Hands, at, every, spec

IDS = sorted(script_id(bytes([number])) for number in range(5))


@pytest.fixture(autouse=True)
def _standing_clock(times: Times) -> None:
    """Rows have the time of the test."""


async def test_a_script_is_added_once_and_keeps_its_name(store: Store):
    first, is_new = await store.add_script(1, IDS[0], "a.py", 12)
    assert (first.id, first.name, first.size, is_new) == (IDS[0], "a.py", 12, True)
    assert await store.add_script(1, IDS[0], "b.py", 12) == (first, False)
    assert await store.find_script(1, IDS[0]) == first


async def test_tenants_do_not_see_each_others(store: Store):
    await store.add_script(1, IDS[0], None, 1)
    assert await store.find_script(2, IDS[0]) is None
    assert (await store.list_scripts(2)).items == []
    assert await store.missing_scripts(2, [IDS[0]]) == {IDS[0]}
    with pytest.raises(NotFound):
        await store.delete_script(2, "script", IDS[0])
    assert await store.find_script(1, IDS[0]) is not None


async def test_what_is_missing(store: Store):
    await store.add_script(1, IDS[0], None, 1)
    assert await store.missing_scripts(1, IDS[:3]) == set(IDS[1:3])
    assert await store.missing_scripts(1, []) == set()


async def test_pages(store: Store):
    for script in IDS:
        await store.add_script(1, script, None, 1)
    found: list[str] = []
    cursor = None
    for _ in range(3):
        page = await store.list_scripts(1, limit=2, cursor=cursor)
        found += [script.id for script in page.items]
        cursor = page.next
    assert (found, cursor) == (IDS, None)
    with pytest.raises(Invalid, match="cursor"):
        await store.list_scripts(2, cursor=(await store.list_scripts(1, limit=1)).next)


async def test_one_that_is_used_is_not_deleted(store: Store):
    await store.add_script(1, IDS[0], None, 1)
    await store.add_script(1, IDS[1], None, 1)
    target = ScriptTarget(script=IDS[0])
    (job,) = await Hands(store).create(spec(every(60_000), key="nightly", target=target))
    assert await store.jobs_of_script(1, "script", IDS[0]) == ["job nightly"]
    assert await store.jobs_of_script(1, "script", IDS[1]) == []
    with pytest.raises(Conflict, match="used by job nightly"):
        await store.delete_script(1, "script", IDS[0])
    await store.delete_script(1, "script", IDS[1])
    await store.delete_job(1, job.id)
    await store.delete_script(1, "script", IDS[0])
    assert (await store.list_scripts(1)).items == []


async def test_a_job_that_has_ended_does_not_keep_its_script(store: Store, times: Times):
    await store.add_script(1, IDS[0], None, 1)
    hands = Hands(store)
    await hands.create(spec(at(START + 1000), target=ScriptTarget(script=IDS[0])))
    with pytest.raises(Conflict):
        await store.delete_script(1, "script", IDS[0])
    (run,) = (await hands.claim(1, offers=["script:python"])).runs
    await hands.finish(run)
    await store.close_one_offs()
    await store.delete_script(1, "script", IDS[0])


async def test_only_some_of_many_jobs_are_named(store: Store):
    await store.add_script(1, IDS[0], None, 1)
    await Hands(store).create(*(spec(every(60_000), key=f"k{n}", target=ScriptTarget(script=IDS[0])) for n in range(9)))
    with pytest.raises(Conflict, match="job k0, job k1, job k2, job k3, job k4, other jobs"):
        await store.delete_script(1, "script", IDS[0])
