"""Who changed what."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from onthedot.api.auth import may
from onthedot.api.context import principal_of, service_of, tenant_of
from onthedot.api.http.paging import PAGING, page_answer
from onthedot.api.http.query_params import choice, instant, read_query, text
from onthedot.api.http.responses import HttpResponse
from onthedot.api.operations import operation
from onthedot.model.audit_entry import AUDIT_VERBS, AuditEntry

__all__ = ["AUDIT_FILTERS", "routes"]

AUDIT_FILTERS = (
    text("job", "ID or key of the job; also of one that was deleted", longest=200),
    text("actor", "Name of the key, of the jobs file's source or of the intake, or `open`", longest=200),
    choice("verb", "What was done", AUDIT_VERBS),
    instant("since", "Changes at or after this instant"),
    instant("until", "Changes at or before this instant"),
    *PAGING,
)


class AuditList(msgspec.Struct, frozen=True):
    """`next` is the URL of the next page, null on the last page."""

    items: list[AuditEntry]
    next: str | None


@operation("GET", "/v1/audit", "read", group="Audit", query=AUDIT_FILTERS, answers={200: AuditList})
async def list_audit(request: Request) -> HttpResponse:
    """List who changed what.

    Changes that users made, newest first, within the retention period. Creating jobs is not among them: a job says when
    it was created and who owns it. Addresses are shown to keys with the scope `admin`.
    """
    asked = read_query(request.scope["query_string"], AUDIT_FILTERS)
    addresses = may(principal_of(request), "admin")
    return page_answer(request, await service_of(request).list_audit(tenant_of(request), **asked, addresses=addresses))


routes = [list_audit]
