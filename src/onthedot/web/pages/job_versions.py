"""The versions of a job: what each changed, who did it, and back to one."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.path_ids import job_id_of, whole_id
from onthedot.api.http.query_params import integer, text
from onthedot.api.http.responses import HttpResponse
from onthedot.errors import Invalid
from onthedot.model.decoding import to_builtins
from onthedot.model.job import JobView
from onthedot.model.version import JobVersion
from onthedot.web import words
from onthedot.web.form.differences import FieldEdit, edits
from onthedot.web.forms import Form, read_form
from onthedot.web.page import action, asked_of, done, page, show
from onthedot.web.pages.job_actions import BACK, job_page

__all__ = ["routes"]

LISTED = 20
ASKED = (
    integer("version", "Begin with the page that has this version", 1, 2**63 - 1),
    text("cursor", "Cursor of the next page", longest=1000),
)
VERBS = {
    "create": "created",
    "edit": "edited",
    "pause": "paused",
    "resume": "resumed",
    "restore": "restored an earlier version",
}


class VersionRow(msgspec.Struct, frozen=True, kw_only=True):
    """One version as text. `edits` None: what was before it is not known any more."""

    version: int
    at: str
    verb: str
    actor: str | None
    current: bool
    edits: list[FieldEdit] | None


@page("/jobs/{job_id}/versions", query=ASKED)
async def versions(request: Request) -> HttpResponse:
    """The versions of a job, newest first."""
    asked = asked_of(request, ASKED)
    cursor, version = asked["cursor"], asked["version"]
    service, tenant, job_id = service_of(request), tenant_of(request), job_id_of(request)
    job = await service.get_job(tenant, job_id)
    found = await service.list_versions(tenant, job_id, LISTED, cursor)
    while version is not None and cursor is None and found.next is not None and found.items[-1].version > version:
        found = await service.list_versions(tenant, job_id, LISTED, found.next)
    older = [] if found.next is None else (await service.list_versions(tenant, job_id, 1, found.next)).items
    listed = [*found.items, *older]
    rows = [
        _row(each, listed[place + 1] if place + 1 < len(listed) else None) for place, each in enumerate(found.items)
    ]
    return await show(
        request,
        "job_versions.html",
        job=job,
        title=words.title(job),
        at=job_page(job_id),
        rows=rows,
        next=found.next,
        first=cursor is None and bool(rows) and rows[0].current,
        version=version,
        gone=version is not None and cursor is None and all(each.version != version for each in rows),
    )


@page("/jobs/{job_id}/versions/{version}/restore", query=BACK)
async def ask_restore(request: Request) -> HttpResponse:
    """Ask before an earlier version is restored, and show what that changes."""
    asked_of(request, BACK)
    return await _form(request, Form())


@action("/jobs/{job_id}/versions/{version}/restore")
async def restore(request: Request) -> HttpResponse:
    """Change it back to what it was at that version."""
    form, version = await read_form(request, "seen"), whole_id(request, "version", "version")
    seen = form.text("seen")
    try:
        job = await service_of(request).restore_version(
            tenant_of(request), job_id_of(request), version, int(seen) if seen.isdecimal() and len(seen) < 19 else None
        )
    except Invalid as invalid:
        return await _form(request, form.refuse(invalid), 422)
    told = f"{words.title(job)} is again what it was at version {version}"
    return done(request, told, form.back(f"{job_page(job.id)}/versions"))


async def _form(request: Request, form: Form, status: int = 200) -> HttpResponse:
    service, tenant, job_id = service_of(request), tenant_of(request), job_id_of(request)
    job, version = await service.get_job(tenant, job_id), whole_id(request, "version", "version")
    wanted, now = [await service.get_version(tenant, job_id, each) for each in (version, job.version)]
    return await show(
        request,
        "job_restore.html",
        status=status,
        title=words.title(job),
        version=version,
        seen=job.version,
        edits=_changes(now, wanted, job),
        form=form,
        action=f"{job_page(job_id)}/versions/{version}/restore",
        return_to=f"{job_page(job_id)}/versions",
    )


def _changes(now: JobVersion, wanted: JobVersion, job: JobView) -> list[FieldEdit]:
    """What restoring does: it does not pause or resume."""
    return edits(_loose(now), {**_loose(wanted), "paused": job.paused})


def _row(version: JobVersion, before: JobVersion | None) -> VersionRow:
    first = version.verb == "create"
    return VersionRow(
        version=version.version,
        at=version.at,
        verb=VERBS.get(version.verb or "", "changed"),
        actor=words.actor_words(version.actor, version.actor_kind),
        current=version.current,
        edits=[] if first else None if before is None else edits(_loose(before), _loose(version)),
    )


def _loose(version: JobVersion) -> dict[str, Any]:
    loose: dict[str, Any] = to_builtins(version.spec)
    return loose


routes = [versions, ask_restore, restore]
