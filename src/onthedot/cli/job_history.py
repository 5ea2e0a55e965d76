"""`onthedot jobs versions`, `restore` and `undelete`: what a job was, who changed it, and back to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from onthedot.cli.options import ApiKey, AsJson, Job, Server, connected, find_job
from onthedot.cli.output import print_json, say, table, when

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onthedot.model.version import JobVersion

__all__ = ["restore", "undelete", "versions"]


def versions(
    job: Job,
    diff: Annotated[
        tuple[int, int] | None, typer.Option("--diff", metavar="N M", help="Show what changed from version N to M")
    ] = None,
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """List the versions of a job, newest first, with who changed it and what."""
    with connected(server, key) as client:
        found = list(client.iter_versions(find_job(client, job).id))
    if diff is not None:
        old, new = _version(found, diff[0]), _version(found, diff[1])
        changed = list(_diff(old, new))
        if as_json:
            print_json({"from": old, "to": new, "diff": changed})
        else:
            say("\n".join(changed) or "No difference.")
    elif as_json:
        print_json(found)
    else:
        before = {each.version: each for each in found}
        table(
            ("version", "when", "by", "how", "changed"),
            (
                (
                    f"{each.version} *" if each.current else each.version,
                    when(each.at),
                    each.actor or "",
                    each.verb or "",
                    ", ".join(_changed(before.get(each.version - 1), each)),
                )
                for each in found
            ),
            empty="No versions.",
            wide=("by",),
            whole="changed",
        )


def restore(
    job: Job,
    version: Annotated[int, typer.Argument(metavar="N", min=1, help="Version to go back to")],
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Change a job back to version N. Whether it is paused does not change; its present secrets are kept."""
    with connected(server, key) as client:
        found = find_job(client, job)
        done = client.restore_version(found.id, version, if_match=found.version)
    if as_json:
        print_json(done)
    elif done.version == found.version:
        say(f"No changes: job {done.key or done.id} is what it was at version {version}.")
    else:
        say(
            f"Job {done.key or done.id} is at version {done.version}, as it was at {version}; "
            f"next run {when(done.next_run) or 'none'}."
        )


def undelete(
    job: Annotated[str, typer.Argument(metavar="JOB", help="ID or key of the deleted job")],
    as_json: AsJson = False,
    server: Server = None,
    key: ApiKey = None,
) -> None:
    """Bring back a job that was deleted less than 10 minutes ago. Slots missed meanwhile are not run."""
    from onthedot.errors import NotFound

    with connected(server, key) as client:
        try:
            done = client.undelete_job(int(job) if job.isascii() and job.isdecimal() and len(job) < 19 else job)
        except NotFound:
            if not job.isdecimal():
                raise
            done = client.undelete_job(job)  # a key may look like a number
    if as_json:
        print_json(done)
    else:
        say(f"Job {done.key or done.id} is back, {done.state}; next run {when(done.next_run) or 'none'}.")


def _version(found: Sequence[JobVersion], number: int) -> JobVersion:
    for each in found:
        if each.version == number:
            return each
    kept = ", ".join(str(each.version) for each in reversed(found))
    raise typer.BadParameter(f"there is no version {number}; versions that are kept: {kept}")


def _changed(old: JobVersion | None, new: JobVersion) -> list[str]:
    """The fields that are not what they were."""
    from onthedot.model.decoding import to_builtins

    if old is None:
        return []
    before, after = to_builtins(old.spec), to_builtins(new.spec)
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def _diff(old: JobVersion, new: JobVersion) -> Iterator[str]:
    import difflib

    import msgspec

    from onthedot.model.decoding import encode_json

    before, after = (msgspec.json.format(encode_json(each.spec), indent=2).decode() for each in (old, new))
    names = (f"version {old.version} ({old.at})", f"version {new.version} ({new.at})")
    return difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
