"""`onthedot jobs explain` and `backfill`: why a job did or did not fire, and how to run missed slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.describe import follow_facts
from onthedot.cli.options import ApiKey, AsJson, Job, Server, connected, find_job
from onthedot.cli.output import facts, print_json, say

if TYPE_CHECKING:
    from onthedot.model.preview import Explanation

__all__ = ["backfill", "explain"]

SHOWN = 20
"""How many slots a dry run lists."""


def explain(
    job: Job,
    at: Annotated[str | None, typer.Option("--at", help="Instant to explain (RFC 3339) [default: now]")] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Explain why a job fired, did not fire, or will fire at an instant."""
    from onthedot.clock import SystemClock
    from onthedot.model.instant import format_instant

    with connected(server, key) as client:
        moment = at or format_instant(SystemClock().now_ms())
        found = client.explain(find_job(client, job).id, moment)
    print_json(found) if as_json else _show(found)


def _show(found: Explanation) -> None:
    facts(
        [
            ("at", found.at),
            ("because", found.because),
            ("run", found.run.id if found.run is not None else None),
            ("previous", found.previous),
            ("next", found.next),
            *follow_facts(found),
        ]
    )


def backfill(
    job: Job,
    start: Annotated[str, typer.Argument(metavar="FROM", help="Start of the range (RFC 3339)")],
    end: Annotated[str, typer.Argument(metavar="TO", help="End of the range, inclusive (RFC 3339)")],
    force: Annotated[bool, typer.Option("--force", help="Include slots that have already succeeded")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the slots without running them")] = False,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Run past slots of a job that have not succeeded, at backlog priority."""
    with connected(server, key) as client:
        found = find_job(client, job)
        if dry_run:
            slots = client.slots_to_backfill(found.id, start, end, force=force)
            print_json({"slots": slots}) if as_json else _list(slots)
            return
        runs = client.backfill_job(found.id, start, end, force=force)
    if as_json:
        print_json({"runs": runs})
    elif runs:
        say(f"Created {len(runs)} runs. List them with `onthedot runs list {found.key or found.id}`.")
    else:
        say("No slots to backfill in this range.")


def _list(slots: list[str]) -> None:
    for slot in slots[:SHOWN]:
        say(slot)
    if len(slots) > SHOWN:
        say(f"… and {len(slots) - SHOWN} more")
    say(f"{len(slots)} slots would be backfilled." if slots else "No slots to backfill in this range.")
