"""The deadline of a container, which holds even if its node never comes back. Engines know none, so there are two.

Its own health check kills all its processes when the time is up: Docker runs that inside, whoever started it. It takes
a shell in the image and an init as the first process. Besides, its labels say how long it may run, and every node that
reaches the engine ends what is past that, also what other installations have left behind.

Both leave its owner some time: who times a run out also records that. What was ended stays, for who asks how it ended.
"""

from __future__ import annotations

from typing import Any

from onthedot.targets.container_engine.engine import ContainerEngine, FoundContainer
from onthedot.targets.container_engine.labels import SECONDS

__all__ = ["AFTER", "deadline_check", "end_overdue", "was_overdue"]

AFTER = 60.0
"""Seconds between the end of its time and this."""
_KILL_ALL = "kill -9 -1"


def deadline_check(seconds: float) -> dict[str, Any]:
    """As `Healthcheck`: the first check is made one interval after the start."""
    return {"Test": ["CMD-SHELL", _KILL_ALL], "Interval": round((seconds + AFTER) * 1e9), "Retries": 1}


async def end_overdue(engine: ContainerEngine) -> list[str]:
    """Kill what runs on past its deadline; the names. It is counted from the start, and asked for only where it may be
    over: what was created later was started later."""
    ended = []
    for listed in await engine.labelled(SECONDS):
        seconds = _seconds(listed.labels.get(SECONDS))
        if seconds is None or not listed.is_going or listed.created_ago < seconds + AFTER:
            continue
        found = await engine.inspect(listed.id)
        if found is not None and not found.is_new and not found.is_over and found.started_ago >= seconds + AFTER:
            await engine.kill(listed.id)
            ended.append(listed.name)
    return ended


def was_overdue(ended: FoundContainer) -> bool:
    """Whether it ran so long that its deadline has ended it."""
    seconds = _seconds(ended.label(SECONDS))
    return seconds is not None and ended.state.exit_code == _KILLED and ended.lasted >= seconds + AFTER - 1


_KILLED = 137


def _seconds(label: str | None) -> float | None:
    try:
        return None if label is None else float(label)
    except ValueError:
        return None
