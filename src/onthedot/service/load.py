"""How much work there is for what there is to do it: the number that an autoscaler goes by.

On a node that executes runs it is the load of that node: what it runs, and its share of what is due, divided by its
slots. Of several kinds of targets the fullest counts, because a thousand free slots for webhooks do not help functions
that wait for a process. Summed over the executors it says how many such nodes the work would fill. On a node that only
serves the API it is the load of all executors together.

Runs that wait for their destination, their share or their concurrency group do not count: more nodes would not help
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onthedot.model.labels import read_requires, type_of
from onthedot.model.node import NodeView, SlotUse
from onthedot.store import BacklogCount

__all__ = ["load_of"]


def load_of(
    node_id: str | None, slots: Mapping[str, SlotUse], nodes: Iterable[NodeView], backlog: BacklogCount
) -> float:
    """`slots`: of this node, by kind; empty: it executes nothing."""
    executors = [node for node in nodes if node.state == "alive" and "executor" in node.roles]
    if not slots:
        return _of_all(executors, backlog)
    share = dict.fromkeys(slots, 0.0)
    for requires, count in backlog.claimable.items():
        able = [node.id for node in executors if _can_run(node, requires)]
        kind = type_of(requires)
        if node_id in able and kind in share:
            share[kind] += count / len(able)
    return max((use.running + share[kind]) / max(1, use.capacity) for kind, use in slots.items())


def _of_all(executors: list[NodeView], backlog: BacklogCount) -> float:
    """Without an executor every due run counts, so that the first one is started for it."""
    capacity = sum(node.capacity for node in executors)
    if not capacity:
        return float(backlog.due - backlog.waiting)
    return (sum(backlog.claimable.values()) + sum(node.running for node in executors)) / capacity


def _can_run(node: NodeView, requires: str) -> bool:
    needed = read_requires(requires)
    return needed.capability in node.offers and set(needed.labels) <= set(node.labels)
