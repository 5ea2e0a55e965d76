"""Which scripts a tenant has uploaded. What is in them is in the object store."""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.errors import Conflict, NotFound
from onthedot.model.instant import format_instant
from onthedot.model.script import ScriptView
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.audit_log import write_audit
from onthedot.store.jobs.idempotency import Idempotency, once
from onthedot.store.paging import Page, check_limit, fingerprint, open_cursor, seal_cursor
from onthedot.store.topic import Topic

__all__ = ["ScriptRows"]

NAMED = 5
"""Jobs that are named where a script can't be deleted because of them."""


class ScriptRows(Topic):
    async def add_script(
        self, tenant: int, script: str, name: str | None, size: int, *, idempotency: Idempotency | None = None
    ) -> tuple[ScriptView, bool]:
        """Note that the tenant has it; True if it is new. One that is there already stays as it is."""

        async def add(tx: Transaction) -> tuple[ScriptView, bool]:
            added = await tx.execute("insert_script", tenant, script, name, size)
            row = await tx.row("find_script", tenant, script)
            assert row is not None
            if added:
                await write_audit(tx, "upload_script", tenant, await tx.now(), summary=name or script)
            return _script(row), bool(added)

        return await self.as_asked(lambda tx: once(tx, tenant, idempotency, tuple[ScriptView, bool], lambda: add(tx)))

    async def find_script(self, tenant: int, script: str) -> ScriptView | None:
        row = await self.driver.read(lambda tx: tx.row("find_script", tenant, script))
        return None if row is None else _script(row)

    async def missing_scripts(self, tenant: int, scripts: Sequence[str]) -> set[str]:
        """Those of the scripts that the tenant does not have."""
        rows = await self.driver.read(lambda tx: tx.rows("find_scripts", tenant, list(scripts)))
        return set(scripts) - {row["id"] for row in rows}

    async def list_scripts(self, tenant: int, *, limit: int = 50, cursor: str | None = None) -> Page[ScriptView]:
        asked = fingerprint("scripts", tenant)
        (after,) = [""] if cursor is None else open_cursor(cursor, asked, (str,))
        most = check_limit(limit)
        rows = await self.driver.read(lambda tx: tx.rows("list_scripts", tenant, after, most + 1))
        items = [_script(row) for row in rows[:most]]
        return Page(items=items, next=seal_cursor(asked, items[-1].id) if len(rows) > most else None)

    async def jobs_of_script(self, tenant: int, target_type: str, script: str) -> list[str]:
        """Names of the first jobs that use it and have not ended."""

        async def body(tx: Transaction) -> list[str]:
            return await _jobs(tx, tenant, target_type, script)

        return await self.driver.read(body)

    async def delete_script(self, tenant: int, target_type: str, script: str) -> None:
        """NotFound, or Conflict while a job that has not ended uses it."""

        async def body(tx: Transaction) -> None:
            if jobs := await _jobs(tx, tenant, target_type, script):
                raise Conflict(f"the script is used by {', '.join(jobs)}; delete or change these jobs first")
            if not await tx.execute("delete_script", tenant, script):
                raise NotFound(f"script {script} not found")
            await write_audit(tx, "delete_script", tenant, await tx.now(), summary=script)

        await self.as_asked(body)


async def _jobs(tx: Transaction, tenant: int, target_type: str, script: str) -> list[str]:
    rows = await tx.rows("jobs_of_script", tenant, target_type, script, NAMED + 1)
    names = [f"job {row['key'] or row['id']}" for row in rows]
    return names if len(names) <= NAMED else [*names[:NAMED], "other jobs"]


def _script(row: Row) -> ScriptView:
    return ScriptView(id=row["id"], name=row["name"], size=row["size"], created_at=format_instant(row["created_at"]))
