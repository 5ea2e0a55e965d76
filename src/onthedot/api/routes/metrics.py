"""Prometheus metrics: the counters of this node and the totals of the store."""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request

from onthedot.api.context import NodeReport, context_of
from onthedot.api.http import responses
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.errors import OnTheDotError
from onthedot.model.targets.registry import specs
from onthedot.service.load import load_of
from onthedot.telemetry.metrics import CONTENT_TYPE

__all__ = ["read_metrics", "routes"]

STATES = ("alive", "draining", "lost")


@operation("GET", "/metrics", "read", group="Operations", answers={200: "text/plain"}, without_store=True)
async def metrics(request: Request) -> HttpResponse:
    """Read metrics.

    In the Prometheus text format. While the database is unavailable, a key still works that this node accepted within
    the last minute.
    """
    return await read_metrics(context_of(request))


async def read_metrics(context: NodeReport) -> HttpResponse:
    for actor, (depth, size) in context.mailboxes().items():
        context.metrics.mailbox_depth.labels(actor).set(depth)
        context.metrics.mailbox_size.labels(actor).set(size)
    for kind, use in context.slots().items():
        context.metrics.slots.labels(kind).set(use.capacity)
        context.metrics.slots_used.labels(kind).set(use.running)
    context.metrics.ready.set(context.ready() is None)
    try:
        async with context.clock.timeout(5):
            await _look(context)
        context.metrics.store_up.set(1)
    except (OnTheDotError, TimeoutError):  # an alarm must get through when the store does not
        context.metrics.store_up.set(0)
    return responses.plain(context.metrics.text(), CONTENT_TYPE)


async def _look(context: NodeReport) -> None:
    backlog = await context.service.backlog()
    listed = await context.service.list_nodes()
    nodes = Counter(node.state for node in listed)
    gauges = context.metrics
    gauges.load.set(load_of(context.node_id(), context.slots(), listed, backlog))
    gauges.due.set(backlog.due)
    gauges.running.set(backlog.running)
    gauges.oldest.set((backlog.oldest_ms or 0) / 1000)
    gauges.unoffered.set(sum(backlog.unoffered.values()))
    gauges.unreached.set(sum(backlog.unreached.values()))
    gauges.unlabelled.set(sum(backlog.unoffered[requires] for requires in backlog.lacking))
    for kind in specs().keys() | backlog.kinds.keys():
        gauges.backlog.labels(kind).set(backlog.kinds.get(kind, 0))
    gauges.waiting.set(backlog.waiting)
    grouped, oldest = await context.service.waiting_for_groups()
    gauges.group_waiting.set(grouped)
    gauges.group_wait.set(oldest)
    notes, oldest_note = await context.service.old_notes()
    gauges.notes.set(notes)
    gauges.note_wait.set(oldest_note)
    breakers = await context.service.open_breakers()
    for breaker in ("open", "half_open"):
        gauges.breakers.labels(breaker).set(breakers.get(breaker, 0))
    for state in STATES:
        gauges.nodes.labels(state).set(nodes.get(state, 0))


routes = [metrics]
