"""A database whose every text tries to become markup: names, tags, owners, notes, addresses, params, what receivers
said and what functions printed; beside them names that are long, without a space, or written from right to left."""

from __future__ import annotations

from typing import Any

import msgspec

from examples.demo.story import Story, past_runs
from examples.demo.tables import Tables, open_tables
from onthedot.model.decoding import convert
from onthedot.model.duration import DAY, HOUR
from onthedot.model.job import JobSpec
from onthedot.service import DEFAULT_TENANT, Service
from tests.api.executor import TinyNode

__all__ = ["LONG", "MARKS", "RIGHT_TO_LEFT", "WEBHOOK", "Hostile", "add_past", "make_hostile"]

MARKS = (
    "<xss-probe></xss-probe><script>window.hacked=1</script>",
    "\"><img src=x onerror='window.hacked=2'><xss-probe>",
    "' autofocus onfocus='window.hacked=3",
    "</textarea></title></style><svg/onload=window.hacked=4><xss-probe>",
    "{{ 7*7 }}${7*7}<!--<xss-probe>-->",
    "javascript:window.hacked=5//",
)
LONG = "Abrechnung" * 40
RIGHT_TO_LEFT = "تقرير المبيعات اليومي \u202e של כל החנויות"
WEBHOOK = {"type": "webhook", "url": "http://127.0.0.1:9/"}


class Hostile(msgspec.Struct, frozen=True):
    """What there is to look at."""

    jobs: list[int]
    done_run: str
    failed_run: str
    node: str


async def make_hostile(service: Service, url: str) -> Hostile:
    now = await service.time.now()
    jobs = [await service.create_job(DEFAULT_TENANT, spec) for spec in _specs()]
    await service.pause_job(DEFAULT_TENANT, jobs[1].id, note=MARKS[1])
    tables = await open_tables(url)
    try:
        for job in jobs[:3]:
            await add_past(tables, job.id, now)
        done, failed = [await _newest(tables, jobs[0].id, status) for status in ("done", "failed")]
    finally:
        await tables.close()
    node = TinyNode(service.store, "a-node")
    await node.register()
    return Hostile([job.id for job in jobs], done, failed, node.info.id)


def _specs() -> list[JobSpec]:
    hourly = {"cron": "0 * * * *"}
    made: list[dict[str, Any]] = [
        {
            "key": f"hostile-{place}",
            "name": mark,
            "schedule": hourly,
            "target": {
                "type": "webhook",
                "url": "http://127.0.0.1:9/?q=%3Cxss-probe%3E'\"",
                "headers": {"X-Note": "'onload=window.hacked=6"},
                "body": {mark: [mark]},
            },
            "params": {"text": mark, mark: {"deep": mark}},
            "tags": [mark[:100], "t" * 100],
            "owner": mark,
        }
        for place, mark in enumerate(MARKS)
    ]
    made.append({"key": "k" * 200, "name": LONG, "schedule": hourly, "target": WEBHOOK, "tags": ["w" * 100]})
    made.append({"name": RIGHT_TO_LEFT, "schedule": hourly, "target": WEBHOOK, "tags": ["عاجل"], "owner": "מאיה"})
    made.append({"key": "command", "schedule": {"every": "90s"}, "target": {"type": "command", "command": "backup"}})
    return [convert(spec, JobSpec) for spec in made]


async def add_past(tables: Tables, job_id: int, now: int) -> None:
    """A day of runs, one in five failed, with what was said in all the places where it is kept."""
    story = Story(takes_ms=900, fails=0.2, causes=("unprocessable", "mismatch"), late_ms=1500)
    slots = [now - now % HOUR - hours * HOUR for hours in range(DAY // HOUR, 0, -1)]
    rows, logs, dead = [], [], []
    for place, run in enumerate(past_runs(story, job_id, slots, now, 9)):
        mark, failed = MARKS[place % len(MARKS)], place in (20, 22)
        outcome = msgspec.json.encode(
            {
                "kind": "error" if failed else "ok",
                "status_code": 500 if failed else 200,
                "response": mark,
                "result": mark,
            }
        ).decode()
        status, error = ("failed", f"the receiver returned 500: {mark}") if failed else ("done", None)
        given = (DEFAULT_TENANT, job_id, run.id, run.slot, run.slot, "scheduled", status, 1, 1, 0, run.node)
        rows.append((*given, run.started_at, run.finished_at, run.lateness_ms, run.duration_ms, outcome, error))
        logs.append((run.id, DEFAULT_TENANT, f"{mark}\n\x1b[31mred\x1b[0m\n" + "x" * 5000 + "\n", run.finished_at))
        if failed:
            dead.append((run.id, DEFAULT_TENANT, job_id, run.slot, run.finished_at, mark[:200]))
    ids = ("tenant", "job_id", "id", "slot", "due_at", "kind", "status", "token", "tries", "losses", "node")
    times = ("started_at", "finished_at", "lateness_ms", "duration_ms", "outcome", "error")
    await tables.insert("history", (*ids, *times), rows)
    await tables.insert("run_logs", ("run_id", "tenant", "log", "updated_at"), logs)
    await tables.insert("dead_letters", ("run_id", "tenant", "job_id", "slot", "failed_at", "cause"), dead)


async def _newest(tables: Tables, job_id: int, status: str) -> str:
    of = f"job_id = {job_id} AND status = '{status}'"
    return str((await tables.rows(f"SELECT id FROM history WHERE {of} ORDER BY slot DESC LIMIT 1"))[0][0])
