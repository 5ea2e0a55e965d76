"""Incidents: one condition of one job (or of a node), from when it was found until it is over; and who was told."""

from __future__ import annotations

from typing import Literal

import msgspec

from onthedot.model.alerts import AlertCondition, AlertWay

__all__ = [
    "AlertEvent",
    "ChannelTest",
    "ChannelTestRequest",
    "ChannelView",
    "Delivery",
    "IncidentState",
    "IncidentView",
    "Trouble",
    "job_subject",
    "node_subject",
]

IncidentState = Literal["open", "closed"]
AlertEvent = Literal["opened", "repeated", "recovered", "test"]


class Trouble(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A condition that was found. Opens an incident, or adds to the open one of the same subject and condition.
    `at`: when it came about, ms. `cause`: the same for all that have one cause; alerts are grouped by it.
    `occurrence`: what it was found at, such as a run's ID; the same one is counted once. `limit_ms`: what was exceeded.
    `in_a_row`: it is one only if so many of the last runs failed. `took_ms`: it is one only if that is too long for the
    job, as its last runs say."""

    tenant: int
    subject: str
    condition: AlertCondition
    reason: str
    cause: str
    at: int
    job_id: int | None = None
    title: str | None = None  # of the job or node, for people
    occurrence: str | None = None
    output: str | None = None
    limit_ms: int | None = None
    ways: list[AlertWay] = []
    in_a_row: int | None = None
    took_ms: int | None = None


def job_subject(job_id: int) -> str:
    return f"job {job_id}"


def node_subject(name: str) -> str:
    return f"node {name}"


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One message about an incident. `state`: waiting (also in quiet hours and between tries), sent, or given up."""

    channel: str
    event: AlertEvent
    state: Literal["waiting", "sent", "failed"]
    at: str
    tries: int
    error: str | None


class IncidentView(msgspec.Struct, frozen=True, kw_only=True):
    """`title`: key, name or ID of the job, or the name of the node. `count`: at how many runs it was found.
    `alerted_at`: when channels were last told."""

    id: int
    state: IncidentState
    condition: AlertCondition
    job_id: int | None
    title: str
    reason: str
    cause: str
    run_id: str | None
    output: str | None
    count: int
    opened_at: str
    last_at: str
    closed_at: str | None
    alerted_at: str | None
    channels: list[str]
    deliveries: list[Delivery]


class ChannelView(msgspec.Struct, frozen=True, kw_only=True):
    """A channel of this node. `kind`: webhook, command or apprise. `place`: host, program or service; no secret."""

    name: str
    kind: str
    place: str


class ChannelTestRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    channel: str


class ChannelTest(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a test message. `error`: why it was not delivered."""

    channel: str
    delivered: bool
    error: str | None
    duration_ms: int
