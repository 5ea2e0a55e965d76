"""Pauses that say why and until when: kept, shown, and over by themselves, by the database's clock."""

from __future__ import annotations

import pytest

from onthedot.errors import Invalid
from onthedot.model.instant import format_instant
from onthedot.model.job import JobPause
from onthedot.store import Store
from tests.store.conftest import START, Times
from tests.store.given import HOURLY, change, create, cursor_of, history_of

MINUTE = 60_000
EACH_MINUTE = {"every": "1m", "start": format_instant(START)}


async def test_a_pause_keeps_its_note_and_its_end(store: Store, times: Times) -> None:
    job = await create(store, schedule=HOURLY)
    assert job.pause is None
    paused = await store.pause_job(1, job.id, note="moving", until=START + MINUTE)
    since, until = format_instant(START), format_instant(START + MINUTE)
    assert paused.pause == JobPause(since=since, note="moving", until=until)
    await times.advance(1000)
    assert await store.pause_job(1, job.id) == paused, "a pause that says nothing changes nothing"
    again = await store.pause_job(1, job.id, note="still moving")
    assert again.pause == JobPause(since=since, note="still moving", until=None)
    assert again.version == paused.version + 1
    renamed = await change(store, job, schedule=HOURLY, name="x", paused=True)
    assert renamed.pause == again.pause
    assert (await store.resume_job(1, job.id)).pause is None
    assert (await store.pause_job(1, job.id)).pause == JobPause(since=format_instant(times.now), note=None, until=None)


async def test_an_end_that_is_past_is_refused(store: Store, times: Times) -> None:
    job = await create(store)
    with pytest.raises(Invalid, match="until: is in the past"):
        await store.pause_job(1, job.id, until=START)
    assert (await store.get_job(1, job.id)).state == "active"


async def test_it_goes_on_by_itself_as_of_that_instant(store: Store, times: Times) -> None:
    """The slots before it were not fired for the pause; those after it are the job's, however late somebody looks."""
    job = await create(store, schedule=EACH_MINUTE)
    await store.pause_job(1, job.id, until=START + 3 * MINUTE + 1000)
    assert await store.resume_due() == 3 * MINUTE + 1000
    await times.advance(5 * MINUTE + 2000)
    assert await store.resume_due() is None
    resumed = await store.get_job(1, job.id)
    assert (resumed.state, resumed.paused, resumed.pause) == ("active", False, None)
    (gap,) = await history_of(store, job)
    assert (gap["slot"], gap["until_slot"], gap["reason"]) == (START + MINUTE, START + 3 * MINUTE, "paused")
    assert (await cursor_of(store, job))["slot"] == START + 4 * MINUTE


async def test_the_first_to_go_on_is_told(store: Store, times: Times) -> None:
    for seconds in (30, 10, 20):
        await store.pause_job(1, (await create(store)).id, until=START + seconds * 1000)
    for left in (10_000, 10_000, 10_000):
        assert await store.resume_due() == left
        await times.advance(left)
    assert await store.resume_due() is None


async def test_who_resumes_or_deletes_or_pauses_for_longer_is_left_alone(store: Store, times: Times) -> None:
    resumed, deleted, longer = [await create(store) for _ in range(3)]
    for job in (resumed, deleted, longer):
        await store.pause_job(1, job.id, until=START + 1000)
    await store.resume_job(1, resumed.id)
    await store.delete_job(1, deleted.id)
    await store.pause_job(1, longer.id, note="longer", until=START + 5000)
    await times.advance(2000)
    assert await store.resume_due() == 3000
    assert (await store.get_job(1, longer.id)).state == "paused"
    assert (await store.get_job(1, resumed.id)).version == 3
