"""Incidents: `open_incidents` for whatever is found, `close_incidents` when it is over. Inside any transaction.

There is one open incident for each subject and condition: a unique index decides between two nodes that find the same.
What is found again is counted, and told again only when the time to repeat it has come. A message to each channel is
put into the outbox (`outbox`) in the same transaction. These functions lock no job and no run, and take incidents in
one order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from onthedot import telemetry
from onthedot.model.alerts import AlertWay, quiet_until
from onthedot.model.decoding import encode_json
from onthedot.model.incident import AlertEvent, Trouble
from onthedot.plan.alerts import joined_ways, took_too_long, usual_limit
from onthedot.store.driver import Row, Transaction
from onthedot.store.shapes import Rows, Shape

__all__ = ["ClosedIncident", "OpenedIncident", "announce", "close_incidents", "open_incidents", "tell"]

LONGEST_REASON, LONGEST_OUTPUT = 1000, 2000

_ways = msgspec.json.Decoder(list[AlertWay]).decode


class NewIncident(Shape, frozen=True, kw_only=True):
    tenant: int
    subject: str
    condition: str
    job_id: int | None
    title: str
    reason: str
    cause: str
    occurrence: str | None
    output: str | None
    limit_ms: int | None
    ways: str
    count: int
    opened_at: int
    last_at: int


class IncidentKey(Shape, frozen=True, kw_only=True):
    tenant: int
    subject: str
    condition: str


class NewDelivery(Shape, frozen=True, kw_only=True):
    tenant: int
    incident_id: int
    channel: str
    event: str
    created_at: int
    not_before: int
    quiet: bool


class OpenedIncident(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    tenant: int
    job_id: int | None
    condition: str
    title: str
    reason: str


class ClosedIncident(msgspec.Struct, frozen=True, kw_only=True):
    """`at`: when it was over. Not `told`: nobody hears of it, as of a job that was deleted."""

    id: int
    at: int
    told: bool = True


async def open_incidents(tx: Transaction, troubles: Iterable[Trouble]) -> list[OpenedIncident]:
    """Open an incident for each that has none, and tell its channels. What came about before the last one of its kind
    was over is old news. Call `announce` with the answer after the commit."""
    now = await tx.now()
    found = _merged([each for given in troubles if (each := await _confirmed(tx, given)) is not None], now)
    if not found:
        return []
    keys = [IncidentKey(tenant=each.tenant, subject=each.subject, condition=each.condition) for each in found]
    await tx.rows("lock_open_incidents", Rows(keys))
    rows = await tx.rows("open_incidents", Rows(found))
    fresh = [row for row in rows if row["alerted_at"] is None]
    if len(fresh) < len(found):
        await _tell_others(tx, found, {row["id"] for row in fresh}, now)
    if not fresh:
        return []
    await tell(tx, fresh, "opened", now)
    return [
        OpenedIncident(
            id=row["id"],
            tenant=row["tenant"],
            job_id=row["job_id"],
            condition=row["condition"],
            title=row["title"],
            reason=row["reason"],
        )
        for row in fresh
    ]


async def _tell_others(tx: Transaction, found: Sequence[NewIncident], fresh: set[int], now: int) -> None:
    """Channels that were not told of an open incident: those of a rule whose limit is met later than that of the rule
    that it was opened by."""
    by_key = {(each.tenant, each.subject, each.condition): each for each in found}
    for row in await tx.rows("ways_of_open_incidents", Rows(found)):
        again = by_key[row["tenant"], row["subject"], row["condition"]]
        if row["ways"] == again.ways or row["id"] in fresh:
            continue
        told = _ways(row["ways"])
        channels = {way.channel for way in told}
        others = [way for way in _ways(again.ways) if way.channel not in channels]
        if others:
            await tx.execute("set_ways", row["id"], encode_json([*told, *others]).decode(), again.reason)
            await _put(tx, row, others, "opened", now)


async def close_incidents(tx: Transaction, over: Sequence[ClosedIncident]) -> int:
    """They are over: those who were told that they began are told. How many were open."""
    if not over:
        return 0
    now, by_id, closed = await tx.now(), {each.id: each for each in over}, 0
    for incident in sorted(by_id):
        row = await tx.row("close_incident", incident, by_id[incident].at)
        if row is None:
            continue
        closed += 1
        unheard = {each["channel"] for each in await tx.rows("withdraw_quiet", incident)}
        if by_id[incident].told:
            ways = [way for way in _ways(row["ways"]) if way.recovered and way.channel not in unheard]
            await _put(tx, row, ways, "recovered", now)
    return closed


async def tell(tx: Transaction, incidents: Sequence[Row], event: AlertEvent, now: int) -> None:
    """Put a message to each of their channels into the outbox."""
    for row in incidents:
        await _put(tx, row, _ways(row["ways"]), event, now)
    await tx.execute("incidents_told", [row["id"] for row in incidents], now)


async def _put(tx: Transaction, row: Row, ways: Sequence[AlertWay], event: AlertEvent, now: int) -> None:
    new = []
    for way in ways:
        until = quiet_until(way.quiet, now)
        new.append(
            NewDelivery(
                tenant=row["tenant"],
                incident_id=row["id"],
                channel=way.channel,
                event=event,
                created_at=now,
                not_before=now if until is None else until,
                quiet=until is not None,
            )
        )
    if new:
        await tx.execute("add_deliveries", Rows(new))


def announce(opened: Iterable[OpenedIncident]) -> None:
    """After the commit."""
    for each in opened:
        said = {"job_id": each.job_id, "condition": each.condition, "subject": each.title, "reason": each.reason}
        telemetry.emit("incident.opened", tenant=each.tenant, **said)


async def _confirmed(tx: Transaction, trouble: Trouble) -> Trouble | None:
    """None: it is not so. Whether that many runs failed one after the other, and how long runs usually take, only the
    ledger knows."""
    if trouble.job_id is None:
        return trouble
    if trouble.in_a_row is not None:
        last = await tx.rows("last_statuses", trouble.job_id, trouble.in_a_row)
        is_so = len(last) >= trouble.in_a_row and all(row["status"] == "failed" for row in last)
        return trouble if is_so else None
    if trouble.took_ms is not None:
        durations = [row["duration_ms"] for row in await tx.rows("last_durations", trouble.job_id)]
        if trouble.took_ms in durations:
            durations.remove(trouble.took_ms)  # its own
        limit = usual_limit(durations)
        if limit is None or trouble.took_ms <= limit:
            return None
        return msgspec.structs.replace(trouble, reason=took_too_long(trouble.took_ms, limit), limit_ms=limit)
    return trouble


def _merged(troubles: Sequence[Trouble], now: int) -> list[NewIncident]:
    """One for each subject and condition, as the last one says it, for all who want to hear of one of them; in one
    order for all who write."""
    groups: dict[tuple[int, str, str], list[Trouble]] = {}
    for trouble in sorted(troubles, key=lambda each: each.at):
        groups.setdefault((trouble.tenant, trouble.subject, trouble.condition), []).append(trouble)
    found = []
    for key in sorted(groups):
        last = groups[key][-1]
        found.append(
            NewIncident(
                tenant=last.tenant,
                subject=last.subject,
                condition=last.condition,
                job_id=last.job_id,
                title=last.title or last.subject,
                reason=last.reason[:LONGEST_REASON],
                cause=last.cause[:LONGEST_REASON],
                occurrence=last.occurrence,
                output=None if last.output is None else last.output[-LONGEST_OUTPUT:],
                limit_ms=min((each.limit_ms for each in groups[key] if each.limit_ms is not None), default=None),
                ways=encode_json(joined_ways(each.ways for each in groups[key])).decode(),
                count=len({each.occurrence for each in groups[key]}),
                opened_at=now,
                last_at=last.at,
            )
        )
    return found
