"""A policy as numbers, in ms, with the defaults that the contract gives."""

from __future__ import annotations

import re
from typing import Any

import msgspec

__all__ = ["DAY", "MINUTE", "Rules", "duration", "rules_of"]

MINUTE, DAY = 60_000, 86_400_000
WEBHOOK_TIMEOUT = 3000
PLANS = {"quick": (1, 5, 30, 120), "standard": (5, 300, 1800, 7200, 18_000, 36_000, 50_400)}
"""Seconds after each try."""
_UNITS = {"ms": 1, "s": 1000, "m": MINUTE, "h": 60 * MINUTE, "d": DAY}


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """timeout, max_age, expires_in None: never."""

    timeout: int | None
    attempts: int
    backoff: int
    factor: float
    longest: int
    max_age: int | None
    waits: tuple[int, ...]  # of a plan; empty: by the formula
    until_next: bool  # no try at or after the next slot
    overlap: str
    catch_up: str
    catch_up_limit: int
    at_most_once: bool
    jitter: int
    expires_in: int | None
    callback: int | None = (
        None  # within how many ms of the acceptance it is to be completed; None: its answer is its end
    )

    grouped: bool = False  # it waits for a concurrency group

    @property
    def laned(self) -> bool:
        """It is claimed when others are through, and not by its time alone."""
        return self.overlap != "allow" or self.grouped


def rules_of(spec: dict[str, Any]) -> Rules:
    policy = spec.get("policy", {})
    retry = policy.get("retry", {})
    waits = tuple(1000 * seconds for seconds in PLANS[retry["plan"]]) if retry.get("plan") else ()
    webhook = spec.get("target", {}).get("type", "webhook") == "webhook"
    return Rules(
        timeout=_optional(policy.get("timeout"), WEBHOOK_TIMEOUT if webhook else None),
        attempts=len(waits) + 1 if waits else retry.get("attempts", 3),
        backoff=duration(retry.get("backoff", 1)),
        factor=retry.get("factor", 2),
        longest=duration(retry.get("max", 300)),
        max_age=_optional(retry.get("max_age"), None),
        waits=waits,
        until_next=retry.get("until") == "next_slot",
        overlap=policy.get("overlap", "allow"),
        catch_up=policy.get("catch_up", "latest"),
        catch_up_limit=policy.get("catch_up_limit", 100),
        at_most_once=policy.get("delivery") == "at_most_once",
        jitter=duration(policy.get("jitter", 0)),
        expires_in=_optional(policy.get("expires_in"), None),
        callback=duration(policy.get("completion_timeout", 3600)) if policy.get("completion") == "callback" else None,
        grouped="concurrency" in policy or "max_running" in policy,
    )


def _optional(given: Any, default: int | None) -> int | None:
    return default if given is None else duration(given)


def duration(given: Any) -> int:
    """A number of seconds, or such as "1h30m" and "1.5s"."""
    if isinstance(given, int | float):
        return round(given * 1000)
    return round(sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|s|m|h|d)", given)))
