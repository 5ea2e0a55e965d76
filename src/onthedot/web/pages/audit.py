"""The page of changes: who changed what, newest first."""

from __future__ import annotations

import re

from starlette.requests import Request

from onthedot.api.auth import may
from onthedot.api.context import principal_of, service_of, tenant_of
from onthedot.api.http.query_params import choice, text
from onthedot.api.http.responses import HttpResponse
from onthedot.model.audit_entry import AUDIT_VERBS, AuditEntry
from onthedot.web.page import asked_of, page, show

__all__ = ["routes"]

ASKED = (
    text("job", "ID or key of the job", longest=200),
    text("actor", "Who changed it", longest=200),
    choice("verb", "What was done", AUDIT_VERBS),
    text("cursor", "Cursor of the page", longest=1000),
)
ROWS = 100
VERB_WORDS = {"freeze": "pause everything", "unfreeze": "resume everything", "drain": "drain a node"}


@page("/audit", query=ASKED)
async def audit(request: Request) -> HttpResponse:
    """The page of changes."""
    asked, admin = asked_of(request, ASKED), may(principal_of(request), "admin")
    found = await service_of(request).list_audit(tenant_of(request), **asked, limit=ROWS, addresses=admin)
    is_filtered = any(asked[name] for name in ("job", "actor", "verb"))
    verbs = [(verb, VERB_WORDS.get(verb) or verb.replace("_", " ")) for verb in AUDIT_VERBS]
    values = {
        "entries": found.items,
        "operations": {each.id: number for each in found.items if (number := _operation(each)) is not None},
        "next": found.next,
        "verbs": verbs,
        "is_filtered": is_filtered,
        "admin": admin,
        "verb_words": VERB_WORDS,
    }
    return await show(request, "audit.html", asked=asked, **values)


def _operation(entry: AuditEntry) -> int | None:
    """The operation that was started, paused, resumed or aborted, as the summary begins with it."""
    named = re.match(r"operation (\d+):", entry.summary or "") if entry.verb.endswith("_operation") else None
    return int(named[1]) if named else None


routes = [audit]
