"""`plan.lane`, `plan.slots`, `plan.times`, `plan.shares`: overlap, count, ranges, jitter, shares."""

from __future__ import annotations

from proof.planted.focus import Focus
from proof.planted.plant import Bug, Code, code

__all__ = ["BUGS"]

_AWAY = ("outage", "power_cut")
_LANE = "onthedot.plan.lane:on_lane"
_SLOTS = "onthedot.plan.slots"
_TIMES = "onthedot.plan.times"

BUGS = (
    code(
        "lane: skip runs",
        "overlap skip does not skip",
        _LANE,
        'return "skip"\n    if overlap == "replace"',
        'return "run"\n    if overlap == "replace"',
        focus=Focus(policy={"overlap": "skip"}, mood="slow"),
    ),
    code(
        "lane: skip waits",
        "overlap skip queues",
        _LANE,
        'return "skip"\n    if overlap == "replace"',
        'return "wait"\n    if overlap == "replace"',
        focus=Focus(policy={"overlap": "skip"}, mood="slow"),
    ),
    code(
        "lane: replace skips",
        "overlap replace skips",
        _LANE,
        'return "skip" if newer else "replace"',
        'return "skip"',
        focus=Focus(policy={"overlap": "replace"}, mood="slow"),
    ),
    code(
        "lane: replace waits",
        "overlap replace lets the old one go on",
        _LANE,
        'return "skip" if newer else "replace"',
        'return "wait"',
        focus=Focus(policy={"overlap": "replace"}, mood="slow"),
    ),
    code(
        "lane: the older replaces the newer",
        "a slot that comes late takes the lane from a later one",
        _LANE,
        '"skip" if newer else "replace"',
        '"replace"',
        tests=("tests/unit/plan/test_lane.py", "tests/store/test_lanes.py"),
        unseen="an older slot comes late only after an outage, and catch-up passes it over",
    ),
    code(
        "lane: queue of any length",
        "overlap queue lets more than one wait",
        _LANE,
        '"skip" if waited_for else "wait"',
        '"wait"',
        tests=("tests/unit/plan/test_lane.py",),
        unseen="the model does not count who waits",
    ),
    code(
        "lane: nobody waits",
        "overlap queue skips",
        _LANE,
        '"skip" if waited_for else "wait"',
        '"skip"',
        focus=Focus(policy={"overlap": "queue"}, mood="slow"),
    ),
    code(
        "lane: by hand is skipped",
        "what a person asked for is dropped when the lane is held",
        _LANE,
        'overlap == "allow" or kind != "scheduled" or not first',
        'overlap == "allow" or not first',
        focus=Focus(policy={"overlap": "skip"}, schedule={"every": 1000}, mood="slow", verbs=("run",)),
    ),
    code(
        "lane: a retry is skipped",
        "what has begun already is dropped when the lane is held",
        _LANE,
        'overlap == "allow" or kind != "scheduled" or not first',
        'overlap == "allow" or kind != "scheduled"',
        focus=Focus(policy={"overlap": "skip"}, schedule={"every": 1000}, mood="flaky"),
    ),
    code("lane: overlap ignored", "every lane is free", _LANE, "if not held:", "if True:"),
    code(
        "count: one less",
        "`count` ends one slot early",
        f"{_SLOTS}:remaining",
        "max(count - used, 0)",
        "max(count - used - 1, 0)",
        focus=Focus(schedule={"count": 5}),
    ),
    code(
        "count: ignored in a gap",
        "a gap goes beyond the count",
        f"{_SLOTS}:span",
        "if left is None:",
        "if True:",
        faults=_AWAY,
        focus=Focus(schedule={"count": 8, "every": 1500}),
    ),
    code(
        "range: one too few",
        "a range says one slot less",
        f"{_SLOTS}:_count",
        "after_first + 1",
        "after_first",
        faults=_AWAY,
    ),
    code(
        "range: until the wrong slot",
        "a gap ends at the slot before the last",
        f"{_SLOTS}:span",
        "last = max(times.latest_until(until) or first, first)",
        "last = max(times.latest_until((times.latest_until(until) or first) - 1) or first, first)",
        faults=_AWAY,
    ),
    code(
        "jitter: ignored",
        "runs are due at their slot",
        f"{_TIMES}:due_at",
        "if jitter else slot",
        "if False else slot",
        focus=Focus(policy={"jitter": 700}),
    ),
    code(
        "jitter: the other way",
        "runs are due before their slot",
        f"{_TIMES}:due_at",
        "slot + zlib.crc32",
        "slot - zlib.crc32",
    ),
    code(
        "jitter: too wide",
        "runs are due up to twice their jitter later",
        f"{_TIMES}:due_at",
        "% jitter if",
        "% (2 * jitter) if",
        focus=Focus(policy={"jitter": 700}),
    ),
    code(
        "jitter: the same for all",
        "every run of a job is late by the whole of it",
        f"{_TIMES}:due_at",
        "zlib.crc32(run_id.encode()) % jitter if",
        "jitter - 1 if",
        focus=Focus(policy={"jitter": 700}),
    ),
    code(
        "lane claimed ahead",
        "whether a run may fire is decided before its instant",
        f"{_TIMES}:ready_at",
        "due if lane else due - lookahead",
        "due - lookahead",
    ),
    code(
        "claimable late",
        "a run may be claimed only a second after its instant",
        f"{_TIMES}:ready_at",
        "due if lane else due - lookahead",
        "due + 1000",
    ),
    code(
        "overlap not seen as a lane",
        "runs of jobs that may not overlap don't know of each other",
        f"{_TIMES}:laned",
        'policy.overlap != "allow"',
        "False",
    ),
    Bug(
        name="backlog: nothing is",
        what="what is over a minute late comes before what is on time",
        edits=(
            Code(
                "onthedot.plan.shares:in_backlog", 'kind in ("backfill", "redrive") or due <= now - BACKLOG_MS', "False"
            ),
        ),
        tests=("tests/engine/test_dispatcher.py", "tests/unit/plan/test_times.py"),
        unseen="a share of slots shows only on nodes that are full for minutes",
    ),
    Bug(
        name="backlog: takes all",
        what="a backlog may have every free slot",
        edits=(Code("onthedot.plan.shares:on_time_share", "(limit + 1) // 2", "limit"),),
        tests=("tests/unit/plan/test_times.py",),
        unseen="a share of slots shows only on nodes that are full for minutes",
    ),
    Bug(
        name="shares: the first takes all",
        what="one kind of run starves the others",
        edits=(Code("onthedot.plan.shares:shares", "part = max(left // len(unserved), 1)", "part = left"),),
        tests=("tests/unit/plan/test_times.py",),
        unseen="a share of slots shows only on nodes that are full for minutes",
    ),
)
