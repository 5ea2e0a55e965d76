"""The numbers that the engine is tuned by, and how they fit together.

Seconds unless the name says otherwise. Each says why it is what it is, with what was measured. Those that hang on each
other are computed from each other here; tests/engine/test_tuning.py holds the rest of the relations. What a user may
set is in `onthedot.settings`.
"""

from __future__ import annotations

__all__ = [
    "BATCH",
    "BEAT_EVERY",
    "BEAT_RETRY",
    "BEAT_TIMEOUT",
    "BEGIN_VALID",
    "CLAIM_AGAIN",
    "CLAIM_AGAIN_AHEAD",
    "CLAIM_PORTION",
    "CLOSE_ONE_OFFS_AFTER",
    "CLOSE_ONE_OFFS_PORTION",
    "DEADLINE_PASSES",
    "DESTINATIONS_ASKED",
    "DESTINATIONS_EVERY",
    "DESTINATIONS_KNOWN",
    "DESTINATIONS_MOST",
    "DESTINATIONS_SEEN",
    "DESTINATIONS_TOLD",
    "DESTINATION_KEPT",
    "EARLY_BY_MS",
    "EARLY_FROM_MS",
    "HELD_LASTS",
    "INSIDE_TOGETHER",
    "INSIDE_WAIT",
    "INSTANT",
    "LABELS_EVERY",
    "LABELS_GAP",
    "LABELS_SEEN",
    "LABEL_SETS_KEPT",
    "LABEL_SETS_OFFERED",
    "LEASE_MARGIN",
    "LEASE_POLL",
    "LEFTOVERS_EVERY",
    "LIVE_LOG_EVERY",
    "LIVE_LOG_PORTION",
    "LOOK_GAP",
    "NO_SLOT_MS",
    "OPERATIONS_EVERY",
    "OPERATION_REST",
    "ORDERS_EVERY",
    "ORDERS_MISSED",
    "ORDERS_WAY",
    "OUTSIDE_WAIT",
    "PAUSE_WHEN_SHORT",
    "PEER_GAP",
    "PLACE_SOON_MS",
    "RECONCILE_EVERY",
    "RECOVER_EVERY",
    "SHARES_SIFTED",
    "SLOT_SOON",
    "STARTS_PER_TURN",
    "STOP_AGAIN",
    "WATCH_EVERY",
    "WRITE_GAP",
    "WRITE_NOW",
    "beat_every",
    "lease_trusted",
    "orders_valid",
    "peer_gap",
]

INSTANT = 1e-6
"""Floating point: a sleep may end a hair before the sum it was computed from."""

# Claiming: when to look into the store, and how much to take.

LOOK_GAP = 0.01
"""Hints and expected instants make a node look at once, but no closer together than this: a stream of new timers would
otherwise be claimed one by one."""
CLAIM_AGAIN = 0.05
"""After a claim that filled its limit, look again within this time, even if few slots came free."""
CLAIM_AGAIN_AHEAD = 4 * CLAIM_AGAIN
"""… for a target that takes calls ahead of its slots: it is not waiting for the next claim."""
HELD_LASTS = 2 * CLAIM_AGAIN
"""Unless half of the time until the last of them is at least this: then a portion has to come free first. At 500 a
second a node holds the thousand that it may, and claimed what had just come free, 40 times a second (ADR 0015)."""
CLAIM_PORTION = 64
"""Runs whose claim takes the loop for a millisecond: what is due meanwhile waits for it."""
STARTS_PER_TURN = 100
"""Monitors that begin in one turn of the loop: half a millisecond's worth, so that nobody on this loop waits for longer
because of them."""
RECONCILE_EVERY = 5.0
"""A node compares what it holds with its rows so often: the answer to a claim may have been lost."""

# Slots: who waits for one, and how long.

NO_SLOT_MS = 100
"""A held run that finds no slot for so long after its instant is given back: another node may have one."""
PLACE_SOON_MS = 10 * NO_SLOT_MS
"""… or no room at its destination, if that gets through all who wait for it within this time, as it went of late: only
in a second look they go back."""
SLOT_SOON = NO_SLOT_MS / 2000
"""What the slots get through in this time may be claimed beyond them. Half of the time that a held run waits for a slot
before it is given back, so that runs twice as slow as expected still find one."""
PAUSE_WHEN_SHORT = 0.25
"""No claims for so long after this machine had no room for a run: what went back would come again at once."""
SHARES_SIFTED = 64
"""More runs than could start are claimed, after some were turned away because their job has its share of the workers:
whose run is due next is seen only behind the others of that job."""
RECOVER_EVERY = 1.0
"""After a shortage a pool that was made smaller grows again by a quarter each time; and only another shortage after
this time makes it smaller once more: hundreds of runs meet the same one together. Longer than the pause, or it would
be made smaller again by what was claimed before it."""

# Destinations: how many are known, and when those are looked for that runs wait for.

DESTINATIONS_EVERY = 1.0
"""Between two looks for destinations that runs wait for in the store."""
DESTINATIONS_SEEN = 64
"""Of them each look finds, and the next one goes on after the last: a hop through an index each."""
DESTINATIONS_ASKED = 16
"""Of them a claim asks for runs: a transaction each."""
LABELS_EVERY = 1.0
"""Between two looks for the labels that runs ask for in the store."""
LABELS_GAP = 0.1
"""… and at least, however many hints come."""
LABELS_SEEN = 256
"""Requirements that each look finds, and the next one goes on after the last: a hop through an index each."""
LABEL_SETS_OFFERED = 64
"""Sets of labels that a node offers at a time: a range of each index in every claim."""
LABEL_SETS_KEPT = 60.0
"""Seconds for which a set is offered that no run asks for any more: the next one of its job often comes soon."""
DESTINATION_KEPT = 8
"""One part in so many of a destination's room is left to those that wait for it already."""
DESTINATIONS_KNOWN = 1024
"""From so many on, those that have no open call and no failure are forgotten."""
DESTINATIONS_MOST = 8192
"""So many are known at most, beside those with open calls: some 3 MB."""
DESTINATIONS_TOLD = 32
"""Of them a node tells with its beat, for people."""

# Handing over ahead: targets that keep time themselves.

EARLY_BY_MS = 15
EARLY_FROM_MS = 98
"""Between these before its instant a run is handed to a target that keeps time itself: early enough for whatever this
loop is busy with, and 83 ms of runs at a time, whose results wait for one another for as long (ADR 0018)."""

# Recording: results that wait for others.

BATCH = 1000
"""Results in one transaction at most."""
WRITE_GAP = 0.004
"""Between two writes, unless many wait. At 1,000 runs a second each could else be a transaction of its own.
What is sent and not yet written is sent again if the process is killed: at 100 a second, coming at random, this adds
less than one run in ten kills (100/s × 0.33 that follow so closely × 2 ms)."""
WRITE_NOW = 100
"""So many results do not wait for the gap."""
CLOSE_ONE_OFFS_AFTER = 0.25
"""Without a result for so long, the one-off jobs that the last ones ended are closed. A steady stream leaves it to the
duty, which does it for all of them at once every few seconds."""
CLOSE_ONE_OFFS_PORTION = 1000
"""Jobs that are closed at a time, in about 10 ms: a result that comes meanwhile waits for no longer than that."""
OUTSIDE_WAIT = 0.005
"""A result of what is called outside (a webhook, a worker process, a command) waits so long for one other. At 60 a
second, at random, that is 0.6 ms on average, or one run in 27 kills -9 that is repeated for it; 12 ms were one in six,
when a kill at a named point cost 1.7 runs (docs/reliability.md) and a repeat is what users mind most."""
INSIDE_WAIT = 0.075
"""A result of a function of this very process waits so long for others, INSIDE_TOGETHER with it at most. At 100 a
second, evenly, that is 35 ms on average: three or four functions run again if this process, of which they are part, is
killed. With five in 45 ms a firing cost 787 and 699 µs of both where PgQueuer's, which waits for 100 ms, cost 774 and
705. Shorter than what is handed over at a time, or the last of them would be waited for in vain."""
INSIDE_TOGETHER = 8

# Running.

BEGIN_VALID = 1.0
"""After the question whether an at-most-once run may begin, its answer holds for so long. What we promise: nothing
starts later than a second after a pause or a delete was acknowledged; a node that was frozen with the answer in its
socket asks again."""
DEADLINE_PASSES = 3
"""Rounds of the loop between a deadline and what it does: an answer that lies in the socket already, because the loop
was busy or a timer came before the sockets were looked at, has come in time. It takes one round to be read, one to be
told to who waits for it, and one to spare."""
LEFTOVERS_EVERY = 60.0
"""Between two looks for what is left outside of tries that are over."""
OPERATIONS_EVERY = 2.0
"""Between two looks for bulk operations that another node left; a hint tells of new ones."""
OPERATION_REST = 0.5
"""Of the time that a portion of a bulk operation took, how much passes before the next: it belongs to firings."""
LIVE_LOG_EVERY = 0.7
"""Between two portions of live logs: who follows a log sees a line about a second after it was printed."""
LIVE_LOG_PORTION = 1024 * 1024
"""Characters of one portion. More runs than fit into it take turns."""

# Membership: beats, the lease, orders.

BEAT_EVERY = 1.0
"""Between two beats, or a fifth of the lease if that is less."""
BEAT_RETRY = (0.1, 0.5)
"""Of that, after a beat without an answer: a lease has room for several."""
BEAT_TIMEOUT = 1.5
"""Of that: a call that hangs longer is given up, or one silent connection would cost the whole lease."""
LEASE_MARGIN = 1.0
"""A node starts nothing in the last second of its lease, as it counts it from sending the beat."""
STOP_AGAIN = LEASE_MARGIN / 2
"""For what was told to stop at the end of the lease; then it is told again, and not asked any more. Both fit into the
margin."""
LEASE_POLL = 0.25
"""Between two looks whether a lease that ended is good again."""
PEER_GAP = 2.0
"""Between two own beats that came through: after a longer gap the watch over the others starts anew. Two beats in a row
may fail."""
WATCH_EVERY = 1.0
"""Between two looks at how the others' beats stand, which needs no store."""
ORDERS_EVERY = 0.55
"""Between two looks for orders. The answer to a beat is one too, and as this is a little more than half of the time
between two beats, each is followed by one look. Half of what we promise: nothing starts later than a second after a
cancel, an edit or a pause was acknowledged."""
ORDERS_MISSED = 2.0
"""Several looks for orders in a row may fail before a node stops starting runs."""
ORDERS_WAY = 0.25
"""What a question may take on its way."""


def beat_every(lease: float) -> float:
    """A lease has room for five beats."""
    return min(BEAT_EVERY, lease / 5)


def lease_trusted(lease: float) -> float:
    """For how long after sending a beat a node starts runs."""
    return max(lease - LEASE_MARGIN, lease / 2)


def peer_gap(lease: float) -> float:
    return min(PEER_GAP, 0.4 * lease)


def orders_valid(lookahead: float) -> float:
    """After the question what was read of orders holds for so long: as long as a run may have been held then."""
    return max(lookahead, ORDERS_MISSED) + ORDERS_WAY
