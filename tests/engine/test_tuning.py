"""Numbers that must fit together: who changes one of them learns here which others hang on it."""

from __future__ import annotations

import pytest

from onthedot.engine import tuning as t
from onthedot.engine.settings import EngineSettings

PROMISED = 1.0
"""Seconds: nothing starts later than this after a cancel, an edit or a pause was acknowledged."""
SETTINGS = EngineSettings()
LEASES = [0.5, 1.0, 2.0, SETTINGS.lease / 1000, 60.0]


def test_claims_follow_each_other_by_what_they_brought():
    assert t.LOOK_GAP < t.CLAIM_AGAIN < t.HELD_LASTS < t.CLAIM_AGAIN_AHEAD < SETTINGS.poll_interval / 1000


def test_what_is_claimed_beyond_the_slots_finds_one_before_it_is_given_back():
    assert t.SLOT_SOON * 1000 * 2 <= t.NO_SLOT_MS
    assert t.CLAIM_AGAIN * 1000 < t.NO_SLOT_MS


def test_a_claim_s_portion_begins_in_one_turn_of_the_loop():
    assert t.CLAIM_PORTION <= t.STARTS_PER_TURN


def test_a_shortage_is_not_counted_twice_for_what_was_claimed_before_it():
    assert t.PAUSE_WHEN_SHORT + t.NO_SLOT_MS / 1000 < t.RECOVER_EVERY


def test_runs_are_handed_over_before_their_instant_and_within_the_lookahead():
    assert 0 < t.EARLY_BY_MS < t.EARLY_FROM_MS < SETTINGS.lookahead
    assert t.EARLY_FROM_MS < t.ORDERS_WAY * 1000, "what is handed over can hardly be recalled"


def test_results_wait_for_what_was_handed_over_together_and_no_longer():
    assert t.WRITE_GAP < t.OUTSIDE_WAIT < t.INSIDE_WAIT <= (t.EARLY_FROM_MS - t.EARLY_BY_MS) / 1000
    assert 2 <= t.INSIDE_TOGETHER < t.WRITE_NOW < t.BATCH


def test_one_off_jobs_are_settled_only_when_no_batch_is_under_way():
    assert t.INSIDE_WAIT < t.CLOSE_ONE_OFFS_AFTER < PROMISED
    assert t.CLOSE_ONE_OFFS_PORTION <= t.BATCH


def test_orders_are_read_twice_in_the_time_that_is_promised():
    assert t.ORDERS_EVERY + t.ORDERS_WAY < PROMISED
    assert t.BEAT_EVERY / 2 < t.ORDERS_EVERY < t.BEAT_EVERY, "each beat is followed by one look"
    assert t.BEGIN_VALID <= PROMISED


def test_several_looks_for_orders_may_fail():
    assert t.ORDERS_MISSED >= 3 * t.ORDERS_EVERY
    for lookahead in (0.0, 0.1, SETTINGS.lookahead / 1000, 60.0):
        assert t.orders_valid(lookahead) > max(lookahead, 3 * t.ORDERS_EVERY)


@pytest.mark.parametrize("lease", LEASES)
def test_a_node_stops_before_others_may_take_its_runs(lease):
    trusted = t.lease_trusted(lease)
    assert lease / 2 <= trusted < lease
    if lease >= 2 * t.LEASE_MARGIN:
        assert lease - trusted >= t.LEASE_MARGIN
    assert t.STOP_AGAIN + t.LEASE_POLL < t.LEASE_MARGIN


@pytest.mark.parametrize("lease", LEASES)
def test_a_lost_beat_costs_neither_the_lease_nor_the_watch(lease):
    every = t.beat_every(lease)
    hung = t.BEAT_TIMEOUT * every  # such a beat is given up, and the next comes right after
    assert hung + every <= t.lease_trusted(lease)
    assert hung < t.peer_gap(lease) < lease, "one beat that hung is no gap; a gap ends before a lease does"
    assert t.BEAT_RETRY[1] * every < every


def test_the_others_are_watched_as_often_as_they_beat():
    assert t.WATCH_EVERY <= t.BEAT_EVERY


def test_rows_are_compared_once_a_lease():
    assert t.beat_every(SETTINGS.lease / 1000) <= t.RECONCILE_EVERY <= SETTINGS.lease / 1000


def test_a_line_of_a_live_log_is_seen_within_a_second():
    assert t.LIVE_LOG_EVERY + t.ORDERS_WAY < 1.0


def test_an_answer_in_the_socket_is_read_before_a_deadline_strikes():
    assert t.DEADLINE_PASSES >= 2, "one round to read it, one to tell who waits for it"
