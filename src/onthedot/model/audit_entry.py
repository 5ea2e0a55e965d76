"""What a user changed, and who that was."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

__all__ = ["AUDIT_VERBS", "AuditEntry", "AuditVerb"]

AuditVerb = Literal[
    "edit",
    "pause",
    "resume",
    "restore",
    "delete",
    "undelete",
    "skip",
    "unskip",
    "run",
    "backfill",
    "cancel",
    "retry",
    "redrive",
    "start_operation",
    "abort_operation",
    "pause_operation",
    "resume_operation",
    "upload_script",
    "delete_script",
    "create_key",
    "revoke_key",
    "freeze",
    "unfreeze",
    "drain",
    "login",
    "logout",
]
AUDIT_VERBS: tuple[AuditVerb, ...] = get_args(AuditVerb)


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`actor`, `actor_kind`: as in versions; `key_id` names the key for ever. `address`: where the request came from;
    only for admins. `run_id`: the run that was cancelled, or that was made. `version_before`, `version_after`: of the
    job, if the change made a new version."""

    id: int
    at: str
    verb: AuditVerb
    actor: str
    actor_kind: str
    key_id: int | None
    address: str | None
    job_id: int | None
    job_key: str | None
    run_id: str | None
    version_before: int | None
    version_after: int | None
    summary: str | None
