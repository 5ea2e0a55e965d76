"""Strategies for whole jobs, as a person might write them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy, Retry
from onthedot.model.schedule import Schedule
from onthedot.model.targets import CommandTarget, FunctionTarget, Target, WebhookTarget

TEXT = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=30)
DURATIONS = st.integers(0, 10**10).map(Duration)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
SCHEDULES = st.one_of(
    st.builds(Schedule, cron=TEXT, tz=TEXT, start=st.none() | TEXT, end=st.none() | TEXT),
    st.builds(Schedule, every=DURATIONS, count=st.none() | st.integers(1, 10**9)),
    st.builds(Schedule, at=TEXT),
    st.builds(Schedule, in_=DURATIONS),
    st.builds(Schedule, rrule=TEXT, exclude=st.none() | st.lists(TEXT, max_size=2)),
)
TARGETS: st.SearchStrategy[Target] = st.one_of(
    st.builds(
        WebhookTarget,
        url=TEXT,
        method=st.sampled_from(["GET", "POST"]),
        headers=st.dictionaries(TEXT, TEXT, max_size=3),
        body=VALUES,
        secret=st.none() | TEXT,
        secrets=st.none() | st.lists(TEXT, max_size=3),
    ),
    st.builds(FunctionTarget, function=TEXT),
    st.builds(CommandTarget, command=TEXT),
)
RETRIES = st.builds(
    Retry,
    plan=st.sampled_from(["quick", "standard"]),
    max_age=st.none() | DURATIONS,
    until=st.sampled_from([None, "next_slot"]),
) | st.builds(
    Retry,
    until=st.sampled_from([None, "next_slot"]),
    attempts=st.integers(1, 1000),
    backoff=DURATIONS,
    factor=st.floats(1, 100),
    max=DURATIONS,
    max_age=st.none() | DURATIONS,
)
POLICIES = st.builds(
    Policy,
    timeout=st.none() | DURATIONS,
    retry=RETRIES,
    overlap=st.sampled_from(["allow", "skip", "queue", "replace"]),
    catch_up=st.sampled_from(["latest", "skip", "all"]),
    catch_up_limit=st.integers(1, 10_000),
    delivery=st.sampled_from(["at_least_once", "at_most_once"]),
    jitter=DURATIONS,
    expires_in=st.none() | DURATIONS,
)
SPECS = st.builds(
    JobSpec,
    key=st.none() | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True),
    name=st.none() | TEXT,
    schedule=SCHEDULES,
    target=TARGETS,
    policy=POLICIES,
    params=st.dictionaries(TEXT, VALUES, max_size=3),
    tags=st.lists(TEXT.filter(bool), max_size=3),
    paused=st.booleans(),
)


def spec(**changes: Any) -> JobSpec:
    """A job with nothing wrong with it, but for the changes."""
    whole: dict[str, Any] = {
        "schedule": Schedule(cron="0 3 * * *"),
        "target": WebhookTarget(url="https://example.com/hook"),
        **changes,
    }
    return JobSpec(**whole)
