"""Which rules apply to a job, and which conditions the end of a run meets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from onthedot.model.alerts import AlertCondition, Alerting, AlertRule, AlertWay, own_rule
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec

__all__ = [
    "MISSED",
    "Raised",
    "exceeds",
    "joined_ways",
    "on_end",
    "on_given_up",
    "rules_of",
    "title_of",
    "took_too_long",
    "usual_limit",
    "ways_of",
]

MISSED = ("late", "coalesced")
"""Why a firing was given up although nobody wanted that."""

USUAL_RUNS, USUAL_LEAST_MS = 20, 5000
"""Against its own p95 a job is judged after so many runs, and not for less than this."""


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    condition: AlertCondition
    reason: str
    ways: list[AlertWay]
    limit_ms: int | None = None
    in_a_row: int | None = None
    took_ms: int | None = None


def rules_of(spec: JobSpec, alerting: Alerting) -> Sequence[AlertRule]:
    """A job's own alerts, else those of the installation that match it. A job that names no channel tells the one that
    is named like its owner, if there is one."""
    owner = None if spec.owner is msgspec.UNSET else spec.owner
    if spec.alerts is not msgspec.UNSET:
        rule = own_rule(spec.alerts)
        if not rule.channels and owner in alerting.channels:
            rule = msgspec.structs.replace(rule, channels=(owner,))
        return (rule,)
    return [rule for rule in alerting.rules if rule.matches(spec.tags, owner, spec.target.type)]


def ways_of(rules: Iterable[AlertRule]) -> list[AlertWay]:
    return joined_ways(rule.ways() for rule in rules)


def joined_ways(given: Iterable[Sequence[AlertWay]]) -> list[AlertWay]:
    """Each channel once: two rules that name it tell it once."""
    found: dict[str, AlertWay] = {}
    for ways in given:
        for way in ways:
            before = found.get(way.channel)
            found[way.channel] = way if before is None else _joined(before, way)
    return list(found.values())


def _joined(one: AlertWay, other: AlertWay) -> AlertWay:
    repeats = [way.repeat_ms for way in (one, other) if way.repeat_ms is not None]
    return AlertWay(
        channel=one.channel,
        repeat_ms=min(repeats, default=None),
        quiet=one.quiet if other.quiet is not None else None,
        recovered=one.recovered or other.recovered,
    )


def title_of(spec: JobSpec, job_id: int) -> str:
    return spec.key or spec.name or f"job {job_id}"


def exceeds(rules: Sequence[AlertRule], lateness_ms: int | None, duration_ms: int | None) -> bool:
    """Whether a run that went well is worth a word all the same."""
    for rule in rules:
        if lateness_ms is not None and "late" in rule.on and lateness_ms > rule.late:
            return True
        if (
            duration_ms is not None
            and "too_long" in rule.on
            and (_over(duration_ms, rule.too_long) or _may_be_unusual(rule, duration_ms))
        ):
            return True
    return False


def _over(value: int, limit: int | None) -> bool:
    return limit is not None and value > limit


def _may_be_unusual(rule: AlertRule, duration_ms: int) -> bool:
    """Whether what the last runs of the job took has to be asked."""
    return (rule.usual or rule.too_long is None) and duration_ms > USUAL_LEAST_MS


def on_end(
    rules: Sequence[AlertRule],
    *,
    failed: bool,
    error: str | None,
    lateness_ms: int | None,
    duration_ms: int | None,
    missed: bool = False,
) -> list[Raised]:
    """What the end of a run raises. `missed`: it failed because a check-in did not come."""
    found: list[Raised] = []
    if missed and (asked := [rule for rule in rules if "missed" in rule.on]):
        found.append(Raised(condition="missed", reason=_first_line(error), ways=ways_of(asked)))
    if failed:
        why = _first_line(error)
        for condition, words in (("failed", f"a run failed: {why}"), ("dead", f"a run is a dead letter: {why}")):
            if asked := [rule for rule in rules if condition in rule.on]:
                found.append(Raised(condition=condition, reason=words, ways=ways_of(asked)))  # type: ignore[arg-type]
        for count in sorted({rule.in_a_row for rule in rules if "in_a_row" in rule.on}):
            asked = [rule for rule in rules if "in_a_row" in rule.on and rule.in_a_row == count]
            words = f"{count} runs in a row failed, the last one: {why}"
            found.append(Raised(condition="in_a_row", reason=words, ways=ways_of(asked), in_a_row=count))
    if lateness_ms is not None:
        asked = [rule for rule in rules if "late" in rule.on and lateness_ms > rule.late]
        found += late(asked, lateness_ms)
    if duration_ms is not None:
        asked = [rule for rule in rules if "too_long" in rule.on and _over(duration_ms, rule.too_long)]
        if asked:
            limit = min(rule.too_long for rule in asked if rule.too_long is not None)
            words = took_too_long(duration_ms, limit)
            found.append(Raised(condition="too_long", reason=words, ways=ways_of(asked), limit_ms=limit))
        asked = [
            rule for rule in rules if "too_long" in rule.on and rule not in asked and _may_be_unusual(rule, duration_ms)
        ]
        if asked:
            found.append(Raised(condition="too_long", reason="", ways=ways_of(asked), took_ms=duration_ms))
    return found


def took_too_long(duration_ms: int, limit_ms: int) -> str:
    return f"a run took {Duration(duration_ms).in_words()}; the limit is {Duration(limit_ms).in_words(exact=True)}"


def late(asked: Sequence[AlertRule], lateness_ms: int) -> list[Raised]:
    if not asked:
        return []
    limit = min(rule.late for rule in asked)
    words = (
        f"a run started {Duration(lateness_ms).in_words()} late; the limit is {Duration(limit).in_words(exact=True)}"
    )
    return [Raised(condition="late", reason=words, ways=ways_of(asked), limit_ms=limit)]


def on_given_up(rules: Sequence[AlertRule], reason: str, slots: int | None) -> list[Raised]:
    """What it raises that firings were given up."""
    asked = [rule for rule in rules if "missed" in rule.on]
    if reason not in MISSED or not asked:
        return []
    many = (
        "more than 10,000 firings were" if slots is None else "a firing was" if slots == 1 else f"{slots} firings were"
    )
    why = "too late" if reason == "late" else "another one made up for it"
    return [Raised(condition="missed", reason=f"{many} missed: {why}", ways=ways_of(asked))]


def usual_limit(durations: Sequence[int]) -> int | None:
    """Twice the p95 of the last runs; None: there are too few to know."""
    if len(durations) < USUAL_RUNS:
        return None
    ordered = sorted(durations)
    return max(USUAL_LEAST_MS, 2 * ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))])


def _first_line(text: str | None) -> str:
    line = next((line.strip() for line in (text or "").splitlines() if line.strip()), "") or "no error was told"
    return line if len(line) <= 300 else line[:299] + "…"
