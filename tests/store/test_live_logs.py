"""What a run prints while it runs, readable by everybody."""

from __future__ import annotations

import pytest

from onthedot.errors import NotFound
from onthedot.store import LiveLog, Store
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, OK, Hands, at, every

MINUTE = 60_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


def live(run, text: str, **other) -> LiveLog:
    return LiveLog(**{"run_id": run.id, "tenant": 1, "token": run.token, "text": text, **other})


async def test_it_is_read_while_the_run_runs_and_only_by_its_tenant(hands: Hands):
    await hands.job(at(START + 1))
    run = await hands.one()
    assert await hands.store.run_logs(1, run.id) is None
    await hands.store.put_live_logs([live(run, "one\n")])
    await hands.store.put_live_logs([live(run, "one\ntwo\n")])
    assert await hands.store.run_logs(1, run.id) == "one\ntwo\n"
    with pytest.raises(NotFound):
        await hands.store.run_logs(2, run.id)


async def test_what_earlier_attempts_printed_stands_before_it(hands: Hands, times: Times):
    await hands.job(at(START + 1))
    first = await hands.one()
    await hands.store.put_live_logs([live(first, "first\n")])
    await hands.finish(first, outcome=FAILED, log="first\n")
    assert await hands.store.run_logs(1, first.id) == "first\n", "not twice, though nobody has dropped the live one yet"
    await times.advance(MINUTE)
    second = await hands.one()
    await hands.store.put_live_logs([live(second, "second\n")])
    await hands.store.put_live_logs([live(first, "from an old node\n")])
    assert await hands.store.run_logs(1, second.id) == "first\nsecond\n"
    await hands.finish(second, outcome=OK, log="second\n")
    assert await hands.store.run_logs(1, second.id) == "first\nsecond\n"


async def test_a_late_drop_of_an_old_attempt_leaves_the_new_one(hands: Hands, times: Times):
    await hands.job(at(START + 1))
    first = await hands.one()
    await hands.finish(first, outcome=FAILED)
    await times.advance(MINUTE)
    second = await hands.one()
    await hands.store.put_live_logs([live(second, "second\n")])
    await hands.store.drop_live_logs([(first.id, first.token)])
    assert await hands.store.run_logs(1, second.id) == "second\n"
    await hands.store.drop_live_logs([(second.id, second.token)])
    assert await hands.store.run_logs(1, second.id) is None


async def test_maintenance_removes_what_a_dead_node_left(hands: Hands, times: Times):
    await hands.job(every(MINUTE))
    await times.advance(MINUTE)
    run = await hands.one()
    await hands.store.put_live_logs([live(run, "alive\n")])
    await times.advance(3 * MINUTE)
    assert await hands.store.prune(START - MINUTE) == 0, "it runs"
    await hands.finish(run, outcome=OK)
    assert await hands.store.prune(START - MINUTE) == 1
