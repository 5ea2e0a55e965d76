"""Every branch of `plan.claim`: catch-up, the cursor after it, expiry, count."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import Bug, Swap, code

__all__ = ["BUGS"]

_AWAY = ("outage", "power_cut")
_CLAIM = "onthedot.plan.claim"

BUGS = (
    code(
        "claim: all fires one",
        "catch_up all fires only the newest missed slot",
        f"{_CLAIM}:_chosen",
        'policy.catch_up_limit if policy.catch_up == "all" else 1',
        "1",
        faults=_AWAY,
    ),
    code(
        "claim: latest fires all",
        "catch_up latest and skip fire every missed slot",
        f"{_CLAIM}:_chosen",
        'policy.catch_up_limit if policy.catch_up == "all" else 1',
        "policy.catch_up_limit",
        faults=_AWAY,
    ),
    code(
        "claim: no limit of all",
        "catch_up_limit is ignored",
        f"{_CLAIM}:_chosen",
        'policy.catch_up_limit if policy.catch_up == "all" else 1',
        '10_000 if policy.catch_up == "all" else 1',
        faults=_AWAY,
    ),
    code(
        "claim: oldest first",
        "the oldest missed slot fires instead of the newest",
        f"{_CLAIM}:_chosen",
        "slot: int | None = arrived.last",
        "slot: int | None = arrived.first",
        faults=_AWAY,
    ),
    Bug(
        name="claim: skip fires late",
        what="catch_up skip fires slots that are more than a minute late",
        edits=(Swap("onthedot.plan.claim:LATE", {"latest": 86_400_000, "skip": None, "all": None}),),
        tests=("tests/unit/plan/test_claim.py",),
        unseen="slots of the simulation are so close that the newest is never a minute late",
    ),
    Bug(
        name="claim: skip fires nothing",
        what="catch_up skip gives up whatever is late at all",
        edits=(Swap("onthedot.plan.claim:LATE", {"latest": 86_400_000, "skip": 0, "all": None}),),
        faults=("brief_outage", "kill"),
    ),
    Bug(
        name="claim: latest gives up",
        what="catch_up latest gives up what is three seconds late",
        edits=(Swap("onthedot.plan.claim:LATE", {"latest": 3000, "skip": 60_000, "all": None}),),
        faults=_AWAY,
    ),
    code(
        "claim: expires_in of a slot ignored",
        "a recurring job's slot fires after its expires_in",
        f"{_CLAIM}:_too_late",
        "or (policy.expires_in is not None and late > policy.expires_in)",
        "",
        tests=("tests/unit/plan/test_claim.py",),
        unseen="it is asked again right before the send",
    ),
    code(
        "claim: expires_in of a one-off ignored",
        "a one-off fires however late it is",
        f"{_CLAIM}:expired",
        "policy.expires_in is not None and now - due > policy.expires_in",
        "False",
        faults=_AWAY,
        focus=Focus(policy={"expires_in": 3000}),
    ),
    code(
        "claim: expired at once",
        "whatever may expire is taken for expired",
        f"{_CLAIM}:expired",
        "policy.expires_in is not None and now - due > policy.expires_in",
        "policy.expires_in is not None",
        tests=("tests/unit/plan/test_claim.py",),
        unseen="the model does not say of a run that it had not expired yet",
    ),
    code(
        "claim: wrong reason for coalesced",
        "slots that a newer one stands for are recorded as late",
        f"{_CLAIM}:_given_up",
        'reason="late" if policy.catch_up == "all" else "coalesced"',
        'reason="late"',
        faults=_AWAY,
    ),
    code(
        "claim: wrong reason for late",
        "slots beyond the limit of catch_up all are recorded as coalesced",
        f"{_CLAIM}:_given_up",
        'reason="late" if policy.catch_up == "all" else "coalesced"',
        'reason="coalesced"',
        faults=_AWAY,
    ),
    code(
        "claim: range counts what fires",
        "the range of slots given up counts those that fire, too",
        f"{_CLAIM}:_less",
        "return arrived.slots - chosen",
        "return arrived.slots",
        faults=_AWAY,
    ),
    code(
        "claim: successor of the cursor's slot",
        "after a gap the job goes on with slots that were decided already",
        f"{_CLAIM}:on_claim",
        "times.next_after(arrived.last)",
        "times.next_after(slot)",
        faults=_AWAY,
    ),
    code(
        "claim: successor jumps",
        "each slot's successor is the one after the next",
        f"{_CLAIM}:on_claim",
        "times.next_after(arrived.last)",
        "times.next_after(times.next_after(arrived.last) or arrived.last)",
    ),
    code(
        "claim: count does not end",
        "a job goes on after its count",
        f"{_CLAIM}:on_claim",
        "ended = remaining(job.spec.schedule.count, used) == 0",
        "ended = False",
        focus=Focus(schedule={"count": 5}),
    ),
    code(
        "claim: missed slots do not count",
        "count counts claims, not slots",
        f"{_CLAIM}:on_claim",
        "used = job.slots_used + arrived.used",
        "used = job.slots_used + 1",
        faults=_AWAY,
        focus=Focus(schedule={"count": 12}),
    ),
    code(
        "claim: floor stays behind",
        "what was claimed last is not written down",
        f"{_CLAIM}:on_claim",
        "claimed_slot=newest(job.claimed_slot, arrived.last)",
        "claimed_slot=job.claimed_slot",
        tests=("tests/store/test_floors.py",),
        unseen="what a row covers already is passed over, too",
    ),
    code(
        "claim: backlog forgotten",
        "of several missed slots only one becomes a run",
        f"{_CLAIM}:on_claim",
        "backlog=chosen[1:]",
        "backlog=[]",
        faults=_AWAY,
    ),
    code(
        "claim: fires none of the missed",
        "a gap is given up whole",
        f"{_CLAIM}:on_claim",
        "chosen = _chosen(job, times, arrived, now)",
        "chosen = _chosen(job, times, arrived, now) if arrived.first == arrived.last else []",
        faults=_AWAY,
    ),
)
