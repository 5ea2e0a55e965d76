"""When and for which pools to claim: a decision, and the time of the next look as its result."""

from __future__ import annotations

import pytest

from onthedot.engine.claiming.capacity import Capacity
from onthedot.engine.claiming.claim_policy import ClaimPolicy
from onthedot.engine.look_times import NextLook
from onthedot.engine.tuning import CLAIM_AGAIN, CLAIM_AGAIN_AHEAD, CLAIM_PORTION, HELD_LASTS
from onthedot.store import Claim
from tests.engine.making import claimed

NOW = 1_000_000
OFFERS = ["webhook", "function:reports"]


def made(webhook: int = 4, *, ahead: int = 0) -> tuple[Capacity, ClaimPolicy]:
    slots = Capacity(
        OFFERS, capacities={"webhook": webhook, "function": 2}, default=1, hold_most=1000, ahead=lambda name: ahead
    )
    return slots, ClaimPolicy(slots)


def brought(n: int, due_in: int = 0, next_ready: int | None = None) -> Claim:
    return Claim(now=NOW, runs=[claimed(f"{k}-1", due_at=NOW + due_in) for k in range(n)], next_ready=next_ready)


def names(policy: ClaimPolicy) -> list[str]:
    return [pool.name for pool in policy.pools()]


def test_a_look_is_for_every_pool_and_once():
    _, policy = made()
    assert names(policy) == []
    policy.look(OFFERS)
    assert names(policy) == ["webhook", "function"]
    assert names(policy) == []


def test_a_look_takes_what_can_be_run_now():
    _, policy = made()
    policy.look(["webhook"])
    assert names(policy) == ["webhook"]


def test_nothing_pending_is_no_reason_to_look_before_the_poll():
    _, policy = made()
    assert policy.claimed("webhook", 4, brought(2)) == NextLook()
    assert names(policy) == []


def test_what_is_pending_is_looked_for_when_it_is_ready():
    _, policy = made()
    assert policy.claimed("webhook", 4, brought(2, next_ready=NOW + 700)) == NextLook(at_ms=NOW + 700)


@pytest.mark.parametrize(("ahead", "within"), [(0, CLAIM_AGAIN), (3, CLAIM_AGAIN_AHEAD)])
def test_a_claim_that_filled_its_limit_is_followed_by_another(ahead, within):
    _, policy = made(ahead=ahead)
    assert policy.claimed("webhook", 4, brought(4)) == NextLook(within=within)
    assert names(policy) == ["webhook"]


def test_unless_what_it_brought_lasts_for_a_while():
    slots, policy = made(webhook=1000)
    pool = slots.of("webhook")
    for _ in range(1000):
        pool.hold()
    lasts = int(2 * HELD_LASTS * 1000)
    assert policy.claimed("webhook", 1000, brought(1000, due_in=lasts)) == NextLook(within=HELD_LASTS)
    for _ in range(CLAIM_PORTION - 1):
        assert not pool.let_go()
    assert names(policy) == []
    assert pool.let_go()
    assert names(policy) == ["webhook"]


def test_what_others_are_at_is_looked_for_soon_and_not_at_once():
    _, policy = made()
    assert policy.claimed("webhook", 4, brought(0, next_ready=NOW)) == NextLook(within=CLAIM_AGAIN)
    assert names(policy) == []


def test_a_pool_that_had_no_room_for_a_look_is_asked_for_once_it_has():
    slots, policy = made(webhook=1)
    pool = slots.of("webhook")
    pool.hold()
    pool.hold()
    policy.look(OFFERS)
    assert names(policy) == ["function"]
    assert names(policy) == []
    pool.let_go()
    assert names(policy) == ["webhook"]
    assert names(policy) == []
