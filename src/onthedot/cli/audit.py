"""`onthedot audit`: who changed what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.options import ApiKey, AsJson, Server, connected
from onthedot.cli.output import print_json, table

if TYPE_CHECKING:
    from onthedot.model.audit_entry import AuditEntry

__all__ = ["audit"]


def audit(
    job: Annotated[str | None, typer.Option("--job", metavar="JOB", help="ID or key of the job")] = None,
    actor: Annotated[str | None, typer.Option("--actor", help="Name of the API key, source or intake")] = None,
    verb: Annotated[str | None, typer.Option("--verb", help="What was done, such as edit, pause or delete")] = None,
    since: Annotated[str | None, typer.Option("--since", help="Changes at or after this instant (RFC 3339)")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Changes at or before this instant (RFC 3339)")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=500, help="Maximum number of changes")] = 50,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List who changed what, newest first."""
    filters = {"job": job, "actor": actor, "verb": verb, "since": since, "until": until}
    with connected(server, key) as client:
        given = {name: value for name, value in filters.items() if value is not None}
        found = client.list_audit(**given, limit=limit).items
    if as_json:
        print_json(found)
        return
    table(
        ("at", "who", "did", "job", "what"),
        ([each.at, each.actor, each.verb, each.job_key or each.job_id or "", _what(each)] for each in found),
        empty="No changes.",
        wide=("job",),
        whole="what",
    )


def _what(entry: AuditEntry) -> str:
    versions = None if entry.version_after is None else f"version {entry.version_before} → {entry.version_after}"
    return "; ".join(part for part in (entry.summary, versions, entry.run_id) if part)
