"""Jobs as a user would write them, drawn from the seed."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from proof.chaos.ring import FUNCTION

__all__ = [
    "COMMAND",
    "TIMEOUTS",
    "Spec",
    "a_batch_item",
    "a_callback",
    "a_command",
    "a_function",
    "a_one_off",
    "a_recurring",
    "another_policy",
    "another_schedule",
    "firings_per_second",
    "instant",
]

Spec = dict[str, Any]

COMMAND = "ring"
"""A name that the nodes' settings file has a program for."""

CRONS = (
    ("* * * * * *", 1.0),
    ("*/2 * * * * *", 0.5),
    ("1/3 * * * * *", 0.33),
    ("7,23,24,41 * * * * *", 0.067),
    ("0-29 * * * * *", 0.5),
    ("*/5 * * * * *", 0.2),
)
ZONES = ("UTC", "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
EVERY = (1, 1, 1, 1.5, 2, 3)
TIMEOUTS = (2500, 3000, 3500)
"""ms. No receiver plans an answer near them."""
SLOW = 0.004
"""The share of receivers that take a second for every answer. A call that is under way when its node dies has to be
repeated, so what a kill costs is the node's rate x the time of an answer: with every tenth receiver slow that told
nothing about the product. All are slow together now and then: that is the nemesis's business."""


def firings_per_second(schedule: Spec) -> float:
    if "every" in schedule:
        return 1000 / float(schedule["every"].removesuffix("ms"))
    return dict(CRONS).get(schedule.get("cron", ""), 0.0)


def a_recurring(rng: random.Random, url: str) -> Spec:
    overlap = rng.choice(("allow",) * 8 + ("skip", "queue", "replace"))
    count = {"count": rng.randint(5, 60)} if rng.random() < 0.05 else {}
    flaky, later = (0.07, 0.03) if overlap == "allow" else (0.0, 0.0)
    slow = 0.5 if overlap == "replace" else SLOW
    return {
        "schedule": {**another_schedule(rng), **count},
        "target": _target(url, _mood(rng, flaky=flaky, later=later, slow=slow)),
        "policy": {
            "timeout": "3s",
            "retry": {"attempts": rng.randint(2, 4), "backoff": "200ms", "max": "2s", **_max_age(rng)},
            "overlap": overlap,
            "catch_up": rng.choice(("latest", "latest", "latest", "skip", "all")),
            "catch_up_limit": rng.choice((3, 10, 100)),
            "delivery": "at_most_once" if rng.random() < 0.15 else "at_least_once",
            "jitter": rng.choice(("0ms",) * 7 + ("300ms",)),
        },
    }


def a_function(rng: random.Random, url: str) -> Spec:
    """A refusal for good is none of its answers: an exception is always tried again."""
    mood = rng.choice(("ok", "ok", "flaky"))
    return {**_beside(rng), "target": {"type": "function", "function": FUNCTION}, "params": {"url": f"{url}/{mood}"}}


def a_command(rng: random.Random, url: str) -> Spec:
    target = {"type": "command", "command": COMMAND}
    return {**_beside(rng, every=3000), "target": target, "params": {"url": f"{url}/ok"}}


def a_callback(rng: random.Random, url: str) -> Spec:
    """A receiver that tells later how it ended."""
    beside = _beside(rng, every=2000)
    overlap = rng.choice(("allow", "allow", "queue"))
    policy = {**beside["policy"], "overlap": overlap, "completion": "callback", "completion_timeout": "6s"}
    return {**beside, "target": _target(url, "ok"), "policy": policy}


def _beside(rng: random.Random, every: int = 1000) -> Spec:
    return {
        "schedule": {"every": f"{every}ms"},
        "policy": {
            "timeout": "3s",
            "retry": {"attempts": 3, "backoff": "200ms", "max": "2s"},
            "overlap": rng.choice(("allow", "allow", "skip")),
            "delivery": "at_most_once" if rng.random() < 0.2 else "at_least_once",
        },
    }


def _max_age(rng: random.Random) -> Spec:
    return {"max_age": "4s"} if rng.random() < 0.1 else {}


def another_schedule(rng: random.Random) -> Spec:
    if rng.random() < 0.65:
        return {"every": f"{int(rng.choice(EVERY) * 1000)}ms"}
    return {"cron": rng.choice(CRONS)[0], "tz": rng.choice(ZONES)}


def another_policy(rng: random.Random) -> Spec:
    """A merge patch. Not of the overlap: who held the lane under which of them is more than a history can tell."""
    policy: dict[str, Spec] = {
        "retry": {"retry": {"attempts": rng.randint(1, 5), "backoff": rng.choice(("200ms", "1s")), "max": "2s"}},
        "catch_up": {"catch_up": rng.choice(("latest", "skip", "all")), "catch_up_limit": rng.choice((3, 10, 100))},
        "delivery": {"delivery": rng.choice(("at_most_once", "at_least_once"))},
        "timeout": {"timeout": f"{rng.choice(TIMEOUTS)}ms"},
        "expires_in": {"expires_in": rng.choice((None, "800ms", "2s", "5s"))},
    }
    return {name: value for part in rng.sample(list(policy), rng.randint(1, 2)) for name, value in policy[part].items()}


def a_one_off(rng: random.Random, url: str, now: int) -> Spec:
    delay = rng.choice((rng.randint(50, 3000), rng.randint(1, 20) * 1000))
    schedule = {"in": f"{delay}ms"} if rng.random() < 0.6 else {"at": instant(now + delay + 500)}
    return {"schedule": schedule, **_once(rng, url)}


def a_batch_item(rng: random.Random, url: str, now: int) -> Spec:
    return {"schedule": {"at": instant(now + rng.randint(1500, 12_000))}, **_once(rng, url)}


def _once(rng: random.Random, url: str) -> Spec:
    return {
        "target": _target(url, _mood(rng, flaky=0.03, bad=0.03, fatal=0.03, slow=SLOW)),
        "policy": {
            "timeout": "3s",
            "retry": {"attempts": rng.randint(1, 4), "backoff": "200ms", "max": "2s"},
            "delivery": "at_most_once" if rng.random() < 0.2 else "at_least_once",
        },
    }


def _mood(rng: random.Random, **shares: float) -> str:
    dice = rng.random()
    for mood, share in shares.items():
        dice -= share
        if dice < 0:
            return mood
    return "ok"


def _target(url: str, mood: str) -> Spec:
    return {"type": "webhook", "url": f"{url}/{mood}"}


def instant(ms: int) -> str:
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
