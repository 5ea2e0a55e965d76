"""Dead letters on both stores: their cause, filters, groups, and how they are closed."""

from __future__ import annotations

import pytest

from onthedot.model.bulk import BulkFilter, BulkRequest
from onthedot.model.run import Outcome
from onthedot.store import LetterFilter, Store
from tests.store.conftest import START, Times
from tests.store.given import execute, fetch, spec
from tests.store.hands import Hands

BUSY = Outcome(kind="error", error="the receiver returned 503", detail={"status_code": 503})
GONE = Outcome(kind="error", error="ValueError: order 4711 is gone")
FROM = "HTTP 503 from https://example.com"
VALUE = "ValueError: order N is gone"


@pytest.fixture
async def hands(store: Store, times: Times) -> Hands:
    """Three dead letters, the first and the last with the same cause, ten seconds apart."""
    hands = Hands(store)
    for n, outcome in enumerate((BUSY, GONE, BUSY)):
        target = {"type": "webhook", "url": f"https://example.com/{n}"}
        await hands.create(spec(key=f"j{n}", schedule={"in": "1s"}, target=target))
        await times.advance(10_000)
        await hands.finish(await hands.one(), outcome=outcome)
    return hands


async def test_they_are_found_by_cause_and_time_and_grouped(hands: Hands, store: Store) -> None:
    letters = (await store.list_dead(1)).items
    assert [(each.key, each.cause) for each in letters] == [("j2", FROM), ("j1", VALUE), ("j0", FROM)]
    first = await store.list_dead(1, LetterFilter(cause=FROM), limit=1)
    rest = await store.list_dead(1, LetterFilter(cause=FROM), limit=1, cursor=first.next)
    assert [each.key for each in (*first.items, *rest.items)] == ["j2", "j0"]
    early = LetterFilter(until=START + 20_000)
    assert [each.key for each in (await store.list_dead(1, early)).items] == ["j1", "j0"]
    between = LetterFilter(since=START + 20_000, until=START + 20_000)
    assert [each.key for each in (await store.list_dead(1, between)).items] == ["j1"]
    groups = await store.group_dead(1)
    assert [(each.cause, each.count, each.jobs) for each in groups.items] == [(FROM, 2, 2), (VALUE, 1, 1)]
    assert [each.job_id for each in groups.items] == [None, letters[1].job_id], "of the one job, if it is one"
    hours = await store.group_dead(1, window=10_000)
    assert [each.job_id for each in hours.items] == [each.job_id for each in letters]
    assert (groups.items[0].first_at, groups.items[0].last_at) == (letters[2].finished_at, letters[0].finished_at)
    assert groups.exact
    assert (await store.group_dead(2)).items == []


async def test_what_is_discarded_leaves_the_list_with_a_note_and_the_ledger_as_it_is(
    hands: Hands, store: Store, times: Times
) -> None:
    before = await fetch(store, "SELECT * FROM history ORDER BY id")
    (other,) = (await store.list_dead(1, LetterFilter(cause=VALUE))).items
    closed = await store.discard(1, LetterFilter(cause=FROM), note="the customer left", actor="ann")
    assert [each.id for each in (await store.list_dead(1)).items] == [other.id]
    noted = (await store.list_discarded(1)).items
    assert {each.id for each in noted} == set(closed)
    assert {(each.cause, each.discarded.note, each.discarded.by) for each in noted if each.discarded} == {
        (FROM, "the customer left", "ann")
    }
    assert await fetch(store, "SELECT * FROM history ORDER BY id") == before
    assert await store.redrive(1, LetterFilter(ids=closed)) == []
    assert await store.discard(2, LetterFilter(), note=None, actor=None) == []
    request = BulkRequest(verb="discard", filter=BulkFilter(cause=VALUE), params={"note": "old"})
    await store.start_operation(1, request, actor="bob")
    worked = await store.work_off_operation("n1")
    assert worked is not None
    assert (worked.operation.state, worked.operation.done) == ("done", 1)
    newest = (await store.list_discarded(1)).items
    assert {(each.discarded.note, each.discarded.by) for each in newest if each.id == other.id and each.discarded} == {
        ("old", "bob")
    }
    await execute(store, f"UPDATE discarded_letters SET slot = {START - 1}")
    await store.prune(START)
    assert (await store.list_discarded(1)).items == []


async def test_those_of_one_cause_are_driven_again(hands: Hands, store: Store) -> None:
    assert len(await store.redrive(1, LetterFilter(cause=FROM, since=START + 30_000))) == 1
    assert [each.key for each in (await store.list_dead(1)).items] == ["j1", "j0"]


async def test_a_deleted_job_that_comes_back_has_its_causes(hands: Hands, store: Store) -> None:
    (letter,) = (await store.list_dead(1, LetterFilter(cause=VALUE))).items
    await store.delete_job(1, letter.job_id)
    await store.undelete_job(1, letter.job_id)
    assert [each.cause for each in (await store.list_dead(1, LetterFilter(job_id=letter.job_id))).items] == [VALUE]


async def test_a_run_is_tried_again_with_other_params(hands: Hands, store: Store) -> None:
    (letter,) = (await store.list_dead(1, LetterFilter(cause=VALUE))).items
    again = await store.retry_run(1, letter.id, params={"order": 5})
    assert again.params == {"order": 5}
    run = await hands.one()
    assert (run.id, run.params) == (again.id, {"order": 5})
    await hands.finish(run, outcome=GONE)
    third = await store.retry_run(1, again.id)
    assert third.params == {"order": 5}, "what it had"
    replaced = await store.retry_run(1, again.id, params={})
    assert replaced.params == {}
