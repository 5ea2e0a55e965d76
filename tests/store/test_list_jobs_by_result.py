"""Lists of jobs by how their runs ended: last status, failing, late, never ran, ended; and the last runs of many."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from onthedot.errors import Invalid
from onthedot.store import JobFilter, Store
from onthedot.store.jobs import list_statements
from tests.store.conftest import START, Times
from tests.store.given import fetch
from tests.store.hands import OK, REFUSED, Hands, every, spec
from tests.store.test_list_jobs import ids, walk

MINUTE = 60_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


async def rounds(hands: Hands, times: Times, outcomes: dict[int, Any], **more: Any) -> None:
    """A minute goes by, and each job's run ends as said."""
    await times.advance(MINUTE)
    for run in (await hands.claim()).runs:
        await hands.finish(run, outcome=outcomes.get(run.job_id, OK), **more)


async def test_failing_until_it_went_well_again(hands: Hands, times: Times) -> None:
    good, bad, new = [await hands.job(every(MINUTE)) for _ in range(3)]
    await hands.sql(f"UPDATE runs SET ready_at = {START + 10 * MINUTE}, due_at = ready_at WHERE job_id = {new}")
    await rounds(hands, times, {bad: REFUSED})
    assert await ids(hands.store, failing=True) == [bad]
    assert await ids(hands.store, last_status="FAILED") == [bad]
    assert await ids(hands.store, last_status="DONE") == [good]
    assert await ids(hands.store, failing=False) == [new, good]
    assert await ids(hands.store, never_ran=True) == [new]
    assert await ids(hands.store, never_ran=False) == [bad, good]
    await rounds(hands, times, {good: REFUSED})
    assert await ids(hands.store, failing=True) == [good]
    assert await ids(hands.store, last_status="DONE") == [bad]
    assert await ids(hands.store, failing=True, never_ran=True) == []


async def test_what_is_over_is_forgotten(hands: Hands, times: Times) -> None:
    bad, mended = [await hands.job(every(MINUTE)) for _ in range(2)]
    await rounds(hands, times, {bad: REFUSED, mended: REFUSED})
    await rounds(hands, times, {bad: REFUSED})
    assert await hands.store.forget_noticed() == 0  # noticed just now
    await times.advance(2 * MINUTE)
    assert await hands.store.forget_noticed() == 1
    assert [row["job_id"] for row in await fetch(hands.store, "SELECT job_id FROM noticed_jobs")] == [bad]
    await hands.store.delete_job(1, bad)
    assert await ids(hands.store, failing=True) == []
    assert await hands.store.forget_noticed() == 1


async def test_one_offs(hands: Hands, times: Times) -> None:
    good, bad = [await hands.job() for _ in range(2)]
    later = await hands.job(every(3 * MINUTE))
    assert await ids(hands.store, never_ran=True) == [later, bad, good]
    await rounds(hands, times, {bad: REFUSED})
    assert await ids(hands.store, failing=True) == [bad]
    assert await ids(hands.store, ended=True) == [bad, good]
    assert await ids(hands.store, ended=True, last_status="DONE") == [good]
    assert await ids(hands.store, ended=False) == [later]
    assert await ids(hands.store, ended=False, status="ended") == []
    assert await ids(hands.store, ended=True, status="active") == []
    assert await ids(hands.store, never_ran=True) == [later]


async def test_late_by_its_last_or_its_next_run(hands: Hands, times: Times) -> None:
    prompt, slow = [await hands.job(every(MINUTE)) for _ in range(2)]
    await rounds(hands, times, {}, lateness_ms=3)
    assert await ids(hands.store, late=True) == []
    await times.advance(MINUTE)
    for run in (await hands.claim()).runs:
        await hands.finish(run, lateness_ms=1001 if run.job_id == slow else 1000)
    assert await ids(hands.store, late=True) == [slow]
    assert await ids(hands.store, late=False) == [prompt]
    await times.advance(MINUTE + 1000)
    assert await ids(hands.store, late=True) == [slow]
    await times.advance(1)  # now the next runs of both are overdue
    assert await walk(hands.store, late=True, limit=1) == [slow, prompt]


async def test_newest_run_was_not_carried_out(hands: Hands, times: Times) -> None:
    job = await hands.job(every(MINUTE))
    other = await hands.job(every(MINUTE))
    await rounds(hands, times, {})
    pending = (await hands.runs(job_id=job, status="PENDING"))[0]
    await hands.store.cancel_run(1, pending.id)
    assert await ids(hands.store, last_status="CANCELLED") == [job]
    assert await ids(hands.store, last_status="SKIPPED") == []
    assert await ids(hands.store, last_status="DONE") == [other, job]  # of those carried out
    with pytest.raises(Invalid, match="last_status"):
        await ids(hands.store, last_status="RUNNING")


@pytest.mark.parametrize(
    "filters",
    [
        {"last_status": "DONE"},
        {"failing": True},
        {"tag": "t", "failing": False},
        {"owner": "o", "status": "active", "never_ran": False},
        {"never_ran": True},
        {"tag": "t", "status": "paused"},
        {"late": True},
    ],
    ids=str,
)
async def test_a_page_that_looked_far_enough_is_short_and_goes_on(
    hands: Hands, times: Times, monkeypatch: pytest.MonkeyPatch, filters: dict[str, Any]
) -> None:
    for nth in range(12):
        made = spec(every(MINUTE if nth % 3 else 60 * MINUTE))
        (job,) = await hands.create(tagged(made, nth))
        if nth % 4 == 1:
            await hands.store.pause_job(1, job.id)
    for lateness in (1, 5000):
        await times.advance(MINUTE)
        for run in (await hands.claim()).runs:
            await hands.finish(run, outcome=REFUSED if run.job_id % 2 else OK, lateness_ms=lateness)
    whole = await ids(hands.store, **filters)
    assert whole, "a filter that finds nothing shows nothing"
    monkeypatch.setattr(list_statements, "SCANNED", 2)
    assert await walk(hands.store, limit=3, **filters) == whole
    assert await walk(hands.store, limit=1, **filters) == whole
    page = await hands.store.list_jobs(1, JobFilter(limit=50, **filters))
    assert page.next is not None
    assert len(page.items) <= 2


def tagged(made: Any, nth: int) -> Any:
    return msgspec.structs.replace(made, tags=["t"] if nth % 2 else [], owner="o" if nth % 3 else None)


async def test_last_runs_of_many_jobs(hands: Hands, times: Times) -> None:
    often, never = await hands.job(every(MINUTE)), await hands.job(every(24 * 60 * MINUTE))
    for _ in range(21):
        await rounds(hands, times, {})
    await rounds(hands, times, {often: REFUSED}, duration_ms=7, lateness_ms=2)
    found = await hands.store.recent_runs(1, [often, never, 999])
    assert found[never] == found[999] == []
    assert len(found[often]) == 20
    last, before = found[often][:2]
    assert (last.status, last.reason, last.duration_ms, last.lateness_ms) == ("FAILED", "may not", 7, 2)
    assert (before.status, before.reason) == ("DONE", None)
    assert last.scheduled_for > before.scheduled_for
    assert (await hands.store.recent_runs(2, [often]))[often] == []
    with pytest.raises(Invalid, match="job_ids"):
        await hands.store.recent_runs(1, range(101))
