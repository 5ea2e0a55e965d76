"""A database as it looks after a year: jobs of many kinds, states, names and tags, to list, filter and change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg

from bench.ours.parts import opened, spec, webhooks
from bench.ours.seeding import FIRST, copy_jobs, indexes_later, settled
from onthedot.service import DEFAULT_TENANT

__all__ = ["RARE", "crowd"]

RARE = "one-in-a-thousand"
_HOOK = {"type": "webhook", "url": "http://127.0.0.1:9/", "body": {"a": 1}}
_KEY = "'job-' || lpad(g::text, 9, '0')"
_NAME = "'Report ' || g % 5000 || ' of ' || g"
_NAMED = {
    "key": _KEY,
    "key_search": _KEY,
    "name": _NAME,
    "name_search": f"lower({_NAME})",
    "spec": f"(t.spec::jsonb || jsonb_build_object('key', {_KEY}, 'name', {_NAME}))::text",
    # Few are anything but webhooks, as few kinds of target are on most machines.
    "target_type": "CASE WHEN g % 100 = 0 THEN 'command' WHEN g % 10 = 0 THEN 'function' ELSE 'webhook' END",
}
_TAG = """
INSERT INTO job_tags (tenant, tag, job_id)
SELECT $1, $2, g FROM generate_series($3::bigint, $4::bigint, $5::bigint) g
"""


def _patterns() -> list[dict[str, Any]]:
    """Twenty equal shares: most recur, one in ten is one-off, one in twenty is paused."""
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="seconds")
    shapes: list[dict[str, Any]] = [{"schedule": {"every": "1d"}, "tags": [f"team-{n % 5}"]} for n in range(9)]
    shapes += [{"schedule": {"cron": f"{n} 3 * * *"}, "tags": ["nightly", f"team-{n % 5}"]} for n in range(8)]
    shapes += [{"schedule": {"in": "30d"}}, {"schedule": {"at": tomorrow}}]
    return [*shapes, {"schedule": {"every": "1d"}, "tags": ["team-0"], "paused": True}]


async def crowd(url: str, jobs: int) -> range:
    """Make it; the ids of its jobs."""
    patterns = _patterns()
    share = max(1, jobs // len(patterns))
    async with opened(url, webhooks()) as (_, service):
        connection = await asyncpg.connect(url)
        async with indexes_later(connection, ["jobs", "runs", "job_tags"], jobs):
            for number, pattern in enumerate(patterns):
                job = await service.create_job(DEFAULT_TENANT, spec(pattern.pop("schedule"), _HOOK, **pattern))
                first = FIRST + number * share
                await copy_jobs(connection, job.id, first, share, _NAMED)
                for tag in pattern.get("tags", []):
                    await connection.execute(_TAG, DEFAULT_TENANT, tag, first, first + share - 1, 1)
        ids = range(FIRST, FIRST + share * len(patterns))
        await connection.execute(_TAG, DEFAULT_TENANT, RARE, ids.start, ids.stop - 1, 1000)
        await settled(connection)
        await connection.close()
    return ids
