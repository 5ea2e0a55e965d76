"""The page in the place of a job that was deleted a moment ago: who deleted it, and the button that brings it back."""

from __future__ import annotations

from starlette.requests import Request

from onthedot.api.context import context_of, service_of, tenant_of
from onthedot.api.http.responses import HttpResponse
from onthedot.model.duration import MINUTE
from onthedot.web import words
from onthedot.web.page import show

__all__ = ["deleted_job"]

CAN_COME_BACK = 10 * MINUTE


async def deleted_job(request: Request, job_id: int) -> HttpResponse | None:
    """None: nobody deleted a job with this id in the last ten minutes, as far as the audit knows."""
    since = context_of(request).clock.now_ms() - CAN_COME_BACK
    found = await service_of(request).list_audit(tenant_of(request), job=str(job_id), since=since, limit=1)
    newest = found.items[0] if found.items else None
    if newest is None or newest.verb != "delete":
        return None
    return await show(
        request,
        "job_deleted.html",
        status=404,
        title=newest.job_key or f"Job {job_id}",
        at=newest.at,
        by=words.actor_words(newest.actor, newest.actor_kind),
        undo=f"/jobs/{job_id}/undelete",
    )
