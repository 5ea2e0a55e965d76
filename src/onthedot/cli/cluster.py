"""`onthedot nodes`, `destinations`, `groups` and `stats`: the state of the cluster."""

from __future__ import annotations

from typing import Any

from onthedot.cli.options import ApiKey, AsJson, Server, connected
from onthedot.cli.output import ago, facts, print_json, table, when

__all__ = ["destinations", "groups", "nodes", "stats"]


def nodes(as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """List running and recently lost nodes, one per process. * marks the leader, which runs cluster maintenance."""
    with connected(server, key) as client:
        found = client.list_nodes()
    if as_json:
        print_json(found)
        return
    table(
        ("node", "name", "pid", "version", "roles", "labels", "state", "since", "running", "held", "capacity", "late"),
        (
            (
                f"{node.id[:12]}{'*' if node.leader else ''}",
                node.name,
                node.pid,
                node.version,
                ",".join(node.roles),
                ",".join(node.labels),
                node.state if node.state == "alive" else f"{node.state} {when(node.beat_at)}",
                when(node.started_at),
                node.running,
                node.held,
                node.capacity,
                ago(node.lateness_ms) if node.lateness_ms is not None else "",
            )
            for node in found
        ),
        empty="No nodes are alive, so nothing fires. Start one with `onthedot serve`.",
        wide=("name",),
    )


def destinations(as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """List destinations of webhooks: circuit breakers, calls in flight, and runs that wait for them."""
    with connected(server, key) as client:
        found = client.list_destinations()
    if as_json:
        print_json(found)
        return
    table(
        ("destination", "kind", "breaker", "since", "failures", "in flight", "waiting", "waiting since"),
        (
            (
                each.destination,
                each.kind,
                each.breaker.replace("_", " "),
                when(each.since) if each.since is not None else "",
                each.failures,
                each.in_flight,
                each.waiting,
                when(each.waiting_since) if each.waiting_since is not None else "",
            )
            for each in found
        ),
        empty="No destinations are being called, and no runs wait for one.",
        wide=("destination",),
    )


def groups(as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """List concurrency groups: limit, running and waiting runs over all nodes."""
    with connected(server, key) as client:
        found = client.list_groups()
    if as_json:
        print_json(found)
        return
    table(
        ("group", "limit", "running", "waiting", "waiting since"),
        (
            (
                each.group if each.group is not None else f"max_running of job {each.job_id}",
                each.limit if each.limit == each.highest_limit else f"{each.limit} (others name {each.highest_limit})",
                each.running,
                each.waiting,
                when(each.waiting_since) if each.waiting_since is not None else "",
            )
            for each in found
        ),
        empty="No groups: no job with a run to come has policy.concurrency or policy.max_running.",
        wide=("group",),
    )


def stats(as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Show totals: jobs by state, runs by status, due runs and dead letters."""
    with connected(server, key) as client:
        found = client.stats()
    if as_json:
        print_json(found)
        return
    facts((name.replace("_", " "), _told(value)) for name, value in found.items())


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {amount}" for name, amount in value.items()) or "none"
    return "none" if value is None else str(value)
