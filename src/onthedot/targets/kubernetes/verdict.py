"""How a Job ended, or why it does not begin, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onthedot.model.quantity import read_quantity
from onthedot.model.run import Outcome
from onthedot.model.size import format_size
from onthedot.targets.kubernetes.objects import ClusterEvent, ContainerLook, KubeJob, KubePod
from onthedot.targets.process.exit_words import exit_words
from onthedot.targets.process.last_line import LastLine

__all__ = ["outcome_of", "why_it_waits"]

_LONGEST = 300
_EVENTS = 3


def outcome_of(job: KubeJob, pod: KubePod | None, printed: LastLine | None, events: Sequence[ClusterEvent]) -> Outcome:
    """Of a Job that is over. `events`: of its pod, and of itself."""
    if job.is_complete:
        detail: dict[str, Any] = {"exit_code": 0}
        if printed is not None:
            detail |= printed.given_back()
        return Outcome(kind="ok", detail=detail)
    detail, error = {}, None
    failed = None if pod is None else _failed_container(pod)
    if pod is not None and (disrupted := _disruption(pod)) is not None:
        error = disrupted
    elif pod is not None and failed is not None:
        ended = failed.state.terminated
        assert ended is not None
        detail["exit_code"] = ended.exit_code
        memory = _memory(pod, failed.name)
        if ended.reason == "OOMKilled":
            detail["out_of_memory"] = True
            error = "out of memory" if memory is None else f"out of memory (limit {format_size(memory)})"
        elif ended.reason in ("ContainerCannotRun", "StartError", "CreateContainerError"):
            error = f"not started: {ended.message[:_LONGEST] or ended.reason}"
        else:
            error = exit_words(ended.exit_code, memory)
        if failed.name != pod.main.name:
            error = f"container {failed.name}: {error}"
    if error is None:
        condition = job.condition("Failed")
        error = _condition(condition.reason, condition.message) if condition is not None else "it failed"
        error += _told(events)
    return Outcome(kind="error", retryable=True, error=error, detail=detail)


def why_it_waits(pod: KubePod | None, events: Sequence[ClusterEvent]) -> str:
    """Of a Job whose container does not run yet."""
    if pod is None:
        return "it has no pod" + _told(events)
    for look in pod.looks:
        waiting = look.state.waiting
        if waiting is not None and waiting.reason not in ("", "PodInitializing", "ContainerCreating"):
            return f"{waiting.reason}: {waiting.message[:_LONGEST]}".rstrip(": ") + _told(events)
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"{condition.reason}: {condition.message[:_LONGEST]}".rstrip(": ") + _told(events)
    waits = next((look.state.waiting.reason for look in pod.looks if look.state.waiting is not None), "")
    return (waits or f"its pod is {pod.status.phase or 'Pending'}") + _told(events)


def _failed_container(pod: KubePod) -> ContainerLook | None:
    """The main one if it failed, else the first other one."""
    return next((each for each in pod.looks if each.state.terminated and each.state.terminated.exit_code != 0), None)


def _disruption(pod: KubePod) -> str | None:
    """It was ended by the cluster, not by itself."""
    status = pod.status
    for condition in status.conditions or ():
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return "its pod was ended by the cluster: " + _condition(condition.reason, condition.message)
    if status.reason and status.reason != "DeadlineExceeded":
        return f"its pod was ended by the cluster: {_condition(status.reason, status.message)}"
    return None


def _condition(reason: str, message: str) -> str:
    if reason == "DeadlineExceeded":
        return "it ran longer than its own deadline, which is a minute after its timeout, and no node ended it before"
    return f"{reason}: {message[:_LONGEST]}".strip(": ") or "it failed"


def _told(events: Sequence[ClusterEvent]) -> str:
    """The last warnings of the cluster, each once."""
    warnings = [event for event in events if event.type == "Warning"]
    words = dict.fromkeys(f"{event.reason}: {(event.message or '')[:_LONGEST]}" for event in warnings)
    return "".join(f"; {each}" for each in list(words)[-_EVENTS:])


def _memory(pod: KubePod, name: str) -> int | None:
    container = next((each for each in pod.spec.containers if each.name == name), None)
    limits = (container.resources.limits if container is not None and container.resources is not None else None) or {}
    try:
        return round(read_quantity(limits["memory"]))
    except (KeyError, ValueError, TypeError):
        return None
