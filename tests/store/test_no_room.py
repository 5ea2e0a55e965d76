"""Without descriptors a zone's rules can't be read: no fault of the schedule, so no job is quarantined for it."""

from __future__ import annotations

import errno

import pytest

from onthedot.errors import NoRoom
from onthedot.model.schedule import Schedule
from onthedot.store import Store
from onthedot.timing import zones
from tests.store.conftest import Times
from tests.store.hands import Hands, spec

SECOND = 1000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


@pytest.fixture
def exhausted(monkeypatch: pytest.MonkeyPatch):
    """From when it is called on, until the test undoes it."""

    def begin() -> None:
        def none_left(name: str) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

        zones.zone.cache_clear()
        zones._stretches.cache_clear()
        monkeypatch.setattr(zones, "_read", none_left)

    return begin


@pytest.mark.parametrize("overlap", ["allow", "skip"])
async def test_the_claim_fails_and_the_job_goes_on_later(hands: Hands, times: Times, exhausted, monkeypatch, overlap):
    (job,) = await hands.create(spec(Schedule(cron="* * * * * *", tz="Asia/Kolkata"), overlap=overlap))
    await times.advance(5 * SECOND)
    exhausted()
    with pytest.raises(NoRoom, match="can't load the time zone Asia/Kolkata: Too many open files"):
        await hands.claim()
    assert (await hands.store.get_job(1, job.id)).state == "active"
    monkeypatch.undo()
    assert [run.job_id for run in (await hands.claim()).runs] == [job.id]


def test_a_zone_that_is_not_there_is_another_thing(monkeypatch):
    def missing(name: str) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file")

    monkeypatch.setattr(zones, "_read", missing)
    with pytest.raises(FileNotFoundError):
        zones.zone("Mars/Olympus")
