"""Schedules of Amazon EventBridge Scheduler and scheduled rules of EventBridge, as the AWS CLI prints them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from onthedot.errors import Unreadable
from onthedot.importers.clock_changes import fit_cron
from onthedot.importers.cron_sets import NotExpressible
from onthedot.importers.eventbridge_cron import read_eventbridge_cron
from onthedot.importers.eventbridge_target import translate_target
from onthedot.importers.findings import ImportedJobs
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.timing.compile import read_time
from onthedot.timing.zones import is_zone

__all__ = ["import_eventbridge"]

MOST_RETRIES, LONGEST_AGE = 185, 86_400  # the defaults of EventBridge
_EXPRESSION = re.compile(r"\s*(cron|rate|at)\((.*)\)\s*\Z")
_RATE = re.compile(r"\s*(\d+)\s+(minute|hour|day)s?\s*\Z")
_UNITS = {"minute": "m", "hour": "h", "day": "d"}


def import_eventbridge(text: str, found: ImportedJobs, *, broker: str = "sqs") -> None:
    entries = list(_entries(text))
    names = [str(entry.get("Name") or "unnamed") for entry in entries]
    for entry, name in zip(entries, names, strict=True):
        group = entry.get("GroupName")
        wanted = f"{group}.{name}" if group and names.count(name) > 1 else name
        with found.listed_if_wrong(wanted, "the schedule"):
            _add(found, entry, wanted, broker)


def _entries(text: str) -> Iterator[dict[str, Any]]:
    """Schedules and rules. The targets of a rule are in the rule, or in the document after it."""
    last: dict[str, Any] | None = None
    for document in _documents(text):
        for entry in document if isinstance(document, list) else [document]:
            if not isinstance(entry, dict):
                raise Unreadable("not what the AWS CLI prints: expected JSON objects")
            if isinstance(entry.get("Targets"), list) and "Name" not in entry:
                if last is None:
                    raise Unreadable("`Targets` without a rule: put the output of `aws events describe-rule` before it")
                last["Targets"] = [*(last.get("Targets") or ()), *entry["Targets"]]
                continue
            inner = next((entry[name] for name in ("Schedules", "Rules") if isinstance(entry.get(name), list)), None)
            for each in [entry] if inner is None else inner:
                if not isinstance(each, dict):
                    raise Unreadable("not what the AWS CLI prints: expected JSON objects")
                if last is not None:
                    yield last
                last = dict(each)
    if last is not None:
        yield last


def _documents(text: str) -> Iterator[Any]:
    """One JSON document after the other."""
    decoder, place = json.JSONDecoder(), 0
    text = text.strip()
    while place < len(text):
        try:
            document, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"not valid JSON: {error}") from None
        yield document
        while place < len(text) and text[place] in " \t\r\n,":
            place += 1


def _add(found: ImportedJobs, entry: dict[str, Any], item: str, broker: str) -> None:
    expression = entry.get("ScheduleExpression")
    if not isinstance(expression, str):
        if entry.get("EventPattern"):
            raise NotExpressible("the rule has an event pattern, not a schedule")
        raise NotExpressible("there is no ScheduleExpression: use `aws scheduler get-schedule` for each schedule")
    schedule, differences = _schedule(entry, expression, found.now)
    for number, given in enumerate(_targets(entry), 1):
        translated = translate_target(given, broker)
        key = found.free_key(item if number == 1 else f"{item}-{given.get('Id') or number}")
        job = {
            "key": key,
            "name": entry.get("Description"),
            "schedule": schedule,
            "target": translated.target,
            "policy": _policy(entry, given),
            "paused": entry.get("State") == "DISABLED" or None,
        }
        if not found.add(item, job):
            continue
        found.need(translated.need)
        for difference in differences:
            found.lose(item, "the day on which clocks change", difference, key=key)
        for what, reason in translated.lost:
            found.lose(item, what, reason, key=key)
        if given.get("RoleArn") or entry.get("RoleArn"):
            found.lose("all schedules", "RoleArn", "calls are made with the AWS login of the node")
        if given.get("DeadLetterConfig"):
            found.lose(item, "DeadLetterConfig", "see `onthedot dead list` for runs that failed for good", key=key)


def _targets(entry: dict[str, Any]) -> list[dict[str, Any]]:
    target = entry.get("Target")
    targets = [target] if isinstance(target, dict) else entry.get("Targets")
    if not isinstance(targets, list) or not targets:
        raise NotExpressible("it has no target: put the output of `aws events list-targets-by-rule` after the rule")
    return [each for each in targets if isinstance(each, dict)]


def _schedule(entry: dict[str, Any], expression: str, now: int) -> tuple[dict[str, Any], list[str]]:
    match = _EXPRESSION.match(expression)
    if match is None:
        raise NotExpressible(f"{expression!r} is not cron(…), rate(…) or at(…)")
    tz = entry.get("ScheduleExpressionTimezone") or "UTC"
    if not is_zone(tz):
        raise NotExpressible(f"time zone {tz!r} is not an IANA name")
    start, end = _instant(entry.get("StartDate")), _instant(entry.get("EndDate"))
    schedule: dict[str, Any]
    differences: list[str] = []
    if match[1] == "at":
        return {"at": match[2].strip(), "tz": tz}, []
    if match[1] == "rate":
        rate = _RATE.match(match[2])
        if rate is None:
            raise NotExpressible(f"{expression!r} is not a rate")
        start = start if start is not None else _instant(entry.get("CreationDate"))
        schedule = {"every": f"{int(rate[1])}{_UNITS[rate[2]]}"}
    else:
        cron = read_eventbridge_cron(match[2])
        fitted = fit_cron(cron.fields.texts(), tz, cron.expected(tz), now=now)
        schedule, differences = {"cron": fitted.cron, "tz": tz}, fitted.differences
        if cron.years is not None:
            first, last = (
                read_time("year", text, tz) for text in (f"{cron.years[0]}-01-01", f"{cron.years[1] + 1}-01-01")
            )
            assert first is not None
            assert last is not None
            start = first if start is None else max(start, first)
            end = last - 1 if end is None else min(end, last - 1)
    if start is not None and (match[1] == "rate" or start > now):
        schedule["start"] = format_instant(start)
    if end is not None:
        schedule["end"] = format_instant(end)
    return schedule, differences


def _instant(given: Any) -> int | None:
    """Of a time as the CLI prints it: RFC 3339, or seconds since 1970."""
    if given is None:
        return None
    if isinstance(given, (int, float)):
        return int(given * 1000)
    found = parse_rfc3339(str(given).replace("Z", "+00:00"))
    if found is None:
        try:
            at = datetime.fromisoformat(str(given))
        except ValueError:
            raise NotExpressible(f"{given!r} is not a date") from None
        found = int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    return found


def _policy(entry: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    given = target.get("RetryPolicy")
    retry: dict[str, Any] = given if isinstance(given, dict) else {}
    retries = int(retry.get("MaximumRetryAttempts", MOST_RETRIES))
    policy: dict[str, Any] = {"retry": {"attempts": retries + 1}}
    if retries:
        policy["retry"]["max_age"] = f"{int(retry.get('MaximumEventAgeInSeconds', LONGEST_AGE))}s"
    window = entry.get("FlexibleTimeWindow")
    if isinstance(window, dict) and window.get("Mode") == "FLEXIBLE" and window.get("MaximumWindowInMinutes"):
        policy["jitter"] = f"{int(window['MaximumWindowInMinutes'])}m"
    return policy
