"""What a channel is sent: one incident, or many of one cause. As JSON, and in words."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.model.decoding import encode_json

__all__ = ["AlertMessage", "MessageIncident", "grouped_message", "incident_message", "message_json", "test_message"]

LISTED = 20
"""Incidents that a grouped message names; the others are counted."""

CONDITION_WORDS = {
    "failed": "failed",
    "dead": "has a dead letter",
    "late": "is late",
    "missed": "missed a firing",
    "too_long": "takes too long",
    "in_a_row": "fails repeatedly",
    "unroutable": "can't run on any node",
    "node_lost": "was lost",
}


class MessageIncident(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    job_id: int | None
    title: str
    reason: str
    run_id: str | None
    link: str | None


class AlertMessage(msgspec.Struct, frozen=True, kw_only=True):
    """`text` and `title` say it in words: chat services take them as they are. `incidents`: those that it tells, 20
    at most; `count`: how many there are. `times`: at how many runs the condition was found."""

    event: str
    condition: str | None
    title: str
    text: str
    job: dict[str, Any] | None
    reason: str
    cause: str | None
    run_id: str | None
    output: str | None
    link: str | None
    since: str | None
    count: int
    times: int
    incidents: list[MessageIncident]


def message_json(message: AlertMessage) -> bytes:
    return encode_json(message)


def incident_message(
    incident: MessageIncident,
    *,
    event: str,
    condition: str,
    cause: str,
    since: str,
    output: str | None,
    times: int,
) -> AlertMessage:
    title = _title(incident.title, event, condition)
    lines = [title, incident.reason if event != "recovered" else f"It began with: {incident.reason}"]
    if output and event != "recovered":
        lines += ["", "Last output:", output]
    if incident.link:
        lines += ["", incident.link]
    return AlertMessage(
        event=event,
        condition=condition,
        title=title,
        text="\n".join(lines),
        job=None if incident.job_id is None else {"id": incident.job_id, "title": incident.title},
        reason=incident.reason,
        cause=cause,
        run_id=incident.run_id,
        output=output,
        link=incident.link,
        since=since,
        count=1,
        times=times,
        incidents=[incident],
    )


def grouped_message(
    incidents: list[MessageIncident],
    *,
    event: str,
    condition: str | None,
    cause: str | None,
    since: str,
    link: str | None,
) -> AlertMessage:
    """Many at once. Without a condition they are of several kinds."""
    what = "incidents" if condition is None else f"jobs: {condition.replace('_', ' ')}"
    title = f"{len(incidents)} {what}" + (" (recovered)" if event == "recovered" else "")
    if cause and cause != condition:
        title += f" ({cause})"
    lines = [title, *(f"- {each.title}: {each.reason}" for each in incidents[:LISTED])]
    if len(incidents) > LISTED:
        lines.append(f"and {len(incidents) - LISTED} more")
    if link:
        lines += ["", link]
    return AlertMessage(
        event=event,
        condition=condition,
        title=title,
        text="\n".join(lines),
        job=None,
        reason=incidents[0].reason,
        cause=cause,
        run_id=None,
        output=None,
        link=link,
        since=since,
        count=len(incidents),
        times=len(incidents),
        incidents=incidents[:LISTED],
    )


def test_message(channel: str, link: str | None) -> AlertMessage:
    title = f"Test of the channel {channel}"
    return AlertMessage(
        event="test",
        condition=None,
        title=title,
        text=f"{title}\nIf you can read this, alerts of On the Dot arrive here." + (f"\n{link}" if link else ""),
        job=None,
        reason="a test message",
        cause=None,
        run_id=None,
        output=None,
        link=link,
        since=None,
        count=0,
        times=0,
        incidents=[],
    )


def _title(subject: str, event: str, condition: str) -> str:
    if event == "recovered":
        return f"{subject} has recovered ({condition.replace('_', ' ')})"
    again = "still: " if event == "repeated" else ""
    return f"{again}{subject} {CONDITION_WORDS.get(condition, condition)}"
