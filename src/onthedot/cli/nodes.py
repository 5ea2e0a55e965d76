"""`onthedot nodes`: list nodes, and drain one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.options import ApiKey, AsJson, Server, connected
from onthedot.cli.output import ago, print_json, say, table, when
from onthedot.errors import NotFound

if TYPE_CHECKING:
    from onthedot.model.node import NodeView

__all__ = ["group"]

group = typer.Typer(no_args_is_help=False)


@group.callback(invoke_without_command=True)
def nodes(context: typer.Context, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """List running and recently lost nodes, one per process. * marks the leader, which runs cluster maintenance. Clock
    is how far a node's clock is from the database's: + is ahead, - behind."""
    if context.invoked_subcommand is not None:
        return
    with connected(server, key) as client:
        found = client.list_nodes()
    if as_json:
        print_json(found)
        return
    table(
        (
            "node",
            "name",
            "pid",
            "version",
            "roles",
            "labels",
            "state",
            "since",
            "running",
            "held",
            "capacity",
            "late",
            "clock",
        ),
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
                _clock(node.clock_skew_ms),
            )
            for node in found
        ),
        empty="No nodes are alive, so nothing fires. Start one with `onthedot serve`.",
        wide=("name",),
    )


def _clock(skew_ms: int | None) -> str:
    """How far it is from the database's: +12 ms is ahead."""
    return "" if skew_ms is None else f"{'-' if skew_ms < 0 else '+'}{ago(abs(skew_ms))}"


@group.command("drain")
def drain(
    node: Annotated[str, typer.Argument(help="ID of the node, its first characters, or its name")],
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Let a node finish what it runs and claim nothing more. Start it again to undo this."""
    with connected(server, key) as client:
        drained = client.drain_node(_one_of(client.list_nodes(), node).id)
    if as_json:
        print_json(drained)
        return
    say(f"{drained.name} ({drained.id}) drains: {drained.running} running. It claims again when it is started again.")


def _one_of(found: list[NodeView], given: str) -> NodeView:
    live = [node for node in found if node.state != "lost"]
    for same in (
        [node for node in live if node.id == given],
        [node for node in live if node.name == given],
        [node for node in live if node.id.startswith(given)],
    ):
        if len(same) == 1:
            return same[0]
        if same:
            raise NotFound(f"{given!r} means {len(same)} nodes: {', '.join(node.id for node in same)}")
    raise NotFound(f"node {given!r} not found; `onthedot nodes` lists all")
