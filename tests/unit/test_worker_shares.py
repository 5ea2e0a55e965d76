"""How many workers one job and one tenant may have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from onthedot.plan.worker_shares import kept_free, room_of_job, room_of_tenant

workers = st.integers(1, 64)


@given(workers, st.lists(st.integers(0, 4), max_size=300))
def test_no_job_ever_has_all_workers_and_none_idles_for_nothing(count: int, wanted: list[int]) -> None:
    """Jobs 0 to 4 want workers in any order, and nobody gives one back."""
    have = dict.fromkeys(range(5), 0)
    for job in wanted:
        busy = sum(have.values())
        if busy < count and room_of_job(count, busy, have[job]) > 0:
            have[job] += 1
    most = max(1, count - kept_free(count))
    assert max(have.values()) <= most
    assert sum(have.values()) <= count
    asked = set(wanted)
    if len(wanted) >= 300 and len(asked) == 1:
        assert max(have.values()) == most, "alone it has all that it may ever have"


@given(workers, st.data())
def test_half_of_them_it_has_whoever_has_the_others(count: int, data: st.DataObject) -> None:
    own = data.draw(st.integers(0, (count + 1) // 2 - 1))
    busy = data.draw(st.integers(own, count))
    assert room_of_job(count, busy, own) > 0


@given(st.integers(2, 64), st.data())
def test_another_job_always_finds_a_worker_beside_one_that_takes_all_it_can(count: int, data: st.DataObject) -> None:
    own = 0
    while room_of_job(count, own, own) > 0:
        own += 1
    assert own < count
    assert room_of_job(count, own, 0) > 0
    assert count - own >= kept_free(count) >= 1


@given(workers)
def test_a_tenant_leaves_some_to_others(count: int) -> None:
    own = 0
    while room_of_tenant(count, own) > 0:
        own += 1
    assert own == count - kept_free(count) >= 1
