"""`onthedot jobs explain`, `calendar`, `chain`, `backfill`, `upcoming`, `skip`: why a job fired or not, and slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.describe import follow_facts
from onthedot.cli.options import ApiKey, AsJson, Job, Server, connected, find_job
from onthedot.cli.output import facts, print_json, say, table, when
from onthedot.model.actor import actor_words

if TYPE_CHECKING:
    from onthedot.model.job import JobView
    from onthedot.model.preview import Explanation
    from onthedot.model.slots import ExplainedSlots

__all__ = ["backfill", "calendar", "chain", "explain", "skip", "unskip", "upcoming"]

SHOWN = 20
"""How many slots a dry run lists."""


Slot = Annotated[str, typer.Argument(metavar="SLOT", help="Instant of the schedule (RFC 3339) that has not come yet")]


def explain(
    job: Job,
    at: Annotated[str | None, typer.Option("--at", help="Instant to explain (RFC 3339) [default: now]")] = None,
    since: Annotated[str | None, typer.Option(help="Explain each slot from this instant on (RFC 3339)")] = None,
    until: Annotated[
        str | None, typer.Option(help="With --since: up to this instant [default: 7 days after --since]")
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Explain why a job fired, did not fire, or will fire at an instant, or at each slot of a range."""
    from onthedot.clock import SystemClock
    from onthedot.model.instant import format_instant

    if since is not None and at is None:
        with connected(server, key) as client:
            slots = client.explain_slots(find_job(client, job).id, since, until)
        print_json(slots) if as_json else _show_slots(slots)
        return
    if since is not None or until is not None:
        raise typer.BadParameter("--at can't be combined with --since or --until, and --until requires --since")
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


def _show_slots(slots: ExplainedSlots) -> None:
    table(
        ("slot", "status", "outcome", "because"),
        ((each.slot, each.status, each.outcome, each.because) for each in slots.items),
        empty="No slots in this range.",
        wide=("because",),
    )
    if slots.next is not None:
        say("There are more slots before these: give an earlier --until.")


def calendar(
    job: Job,
    since: Annotated[str | None, typer.Option(help="From the day of this instant on [default: 60 days ago]")] = None,
    until: Annotated[str | None, typer.Option(help="Up to the day of this instant [default: 30 days from now]")] = None,
    tz: Annotated[str | None, typer.Option("--tz", help="Time zone of the days [default: the schedule's]")] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Show runs and planned slots of a job by days."""
    with connected(server, key) as client:
        found = client.calendar(find_job(client, job).id, since=since, until=until, tz=tz)
    if as_json:
        print_json(found)
        return
    columns = ("done", "failed", "skipped", "cancelled", "running", "planned")
    rows = [(day.date, *(getattr(day, column) for column in columns)) for day in found.items]
    table(
        ("day", *columns),
        (row for row in rows if any(row[1:])),
        empty="No runs and no planned slots in this time.",
    )
    if not found.complete:
        say(f"Only runs from {found.counted_since} on are counted.")


def chain(job: Job, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """List the jobs that the end of a job starts, and the jobs whose ends start it."""
    with connected(server, key) as client:
        found = client.chain_of(find_job(client, job).id)
    if as_json:
        print_json(found)
        return
    follows = (("follows", each.on, each.key or "", each.id) for each in found.follows)
    followers = (("starts", each.on, each.key or "", each.id) for each in found.followers)
    table(("direction", "on", "job", "id"), (*follows, *followers), empty="It is in no chain.")


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


def upcoming(
    job: Job,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=100, help="How many slots to list")] = 10,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List when a job will fire, and which slots to come are skipped."""
    with connected(server, key) as client:
        found = client.upcoming_slots(find_job(client, job).id, count=count)
    if as_json:
        print_json(found)
        return
    left_out = {each.slot: f"skipped by {actor_words(each.actor, each.actor_kind)}" for each in found.skipped}
    last = found.fires[-1] if len(found.fires) == count else max([*found.fires, *left_out], default="")
    slots = sorted([*found.fires, *(slot for slot in left_out if slot <= last)])
    rows = [[slot, when(slot), left_out.get(slot, "")] for slot in slots]
    table(["SLOT", "WHEN", "NOTE"], rows, empty="No slots to come.")
    if found.state != "active":
        say(f"The job is {found.state}.")


def skip(job: Job, slot: Slot, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Skip one slot of a job. The schedule stays as it is; `onthedot jobs unskip` takes it back."""
    with connected(server, key) as client:
        done = client.skip_slot(find_job(client, job).id, slot)
    print_json(done) if as_json else _said(done, f"Job {done.key or done.id} skips {slot}")


def unskip(job: Job, slot: Slot, as_json: AsJson = False, server: Server = None, key: ApiKey = None) -> None:
    """Take back the skip of a slot that has not come yet."""
    with connected(server, key) as client:
        done = client.unskip_slot(find_job(client, job).id, slot)
    print_json(done) if as_json else _said(done, f"Job {done.key or done.id} will run at {slot}")


def _said(job: JobView, what: str) -> None:
    say(f"{what}; next run {when(job.next_run) or 'none'}.")
