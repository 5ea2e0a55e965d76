"""What only somebody who looks can find: runs that have not started, runs that do not end, runs that nobody can take or
reach, nodes that are lost; and incidents that are over, or are to be told again.

One node looks for all. If two believe to, the unique index of incidents decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from onthedot import telemetry
from onthedot.model.alerts import AlertRule, AlertWay
from onthedot.model.duration import HOUR, MINUTE, Duration
from onthedot.model.incident import Trouble, job_subject, node_subject
from onthedot.model.job import JobRecord
from onthedot.model.labels import read_requires
from onthedot.plan.alerts import rules_of, title_of, usual_limit, ways_of
from onthedot.plan.recovery import JobSince, is_over
from onthedot.store.alerts.incidents import ClosedIncident, announce, close_incidents, open_incidents, tell
from onthedot.store.cluster.maintenance import count_backlog
from onthedot.store.driver import Driver, Row, Transaction
from onthedot.store.runs.spec_cache import SpecCache
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = ["AlertWatch", "lost_node_troubles"]

JOBS_AT_ONCE = 2000
"""Jobs with alerts of their own that one look goes through; the next one goes on with those after."""
RUNS_AT_ONCE = 1000
LONG_RUNS_AT_ONCE = 5000
"""Runs that have not ended that one look goes through, oldest first; the next one goes on with those after."""
INCIDENTS_AT_ONCE = 1000
NONE_YET = (0, "")
LOST_SINCE = HOUR
USUAL_FOR = 5 * MINUTE  # how long the p95 of a job is remembered
LEAST_LONG = 5000  # ms: nobody is too long before
UNREACHED_FOR = MINUTE
"""For so long nobody reaches a place before it is told: a node that is started anew finds its work again sooner."""
INSTALLATION = 1  # the tenant that sees what concerns no job: the default one

_ways = msgspec.json.Decoder(list[AlertWay]).decode


class WatchedJob(Shape, frozen=True, kw_only=True):
    job_id: int
    late_ms: int | None


class AlertWatch(Topic):
    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._alert_specs = SpecCache()
        self._watched_after = 0
        self._nobody_seen: set[str] | None = None  # what runs require and nobody offers or reaches; None: nobody asks
        self._unreached_since: dict[str, int] = {}  # by place: when it was first seen that nobody reaches it
        self._long_after = NONE_YET
        self._closed_after = 0
        self._usual_limits: dict[int, tuple[int, int | None]] = {}  # by job: when it was computed, and its limit

    async def alerts_wanted(self) -> bool:
        """Whether there is anything to look for."""
        if self.driver.queries.alerting.rules:
            return True
        row = await self.driver.read(lambda tx: tx.row("any_alerting"), watched=True)
        return row is not None and bool(row["there"])

    async def watch_alerts(self) -> bool:
        """One look at all of it. Whether there is something new to deliver."""
        troubles = await self.driver.read(self._look_for_trouble)
        opened = await self.driver.transact_slow(lambda tx: open_incidents(tx, troubles)) if troubles else []
        announce(opened)
        return await self._look_at_open() or bool(opened)

    async def _look_for_trouble(self, tx: Transaction) -> list[Trouble]:
        now, alerting = await tx.now(), tx.alerting
        ids = [row["id"] for row in await tx.rows("alerting_jobs", self._watched_after, JOBS_AT_ONCE)]
        self._watched_after = ids[-1] if len(ids) == JOBS_AT_ONCE else 0
        jobs = await self._alert_specs.read(tx, ids)
        rules = {job.id: rules_of(job.spec, alerting) for job in jobs.values()}
        late = await self._late_troubles(tx, jobs, rules, now)
        long = await self._long_troubles(tx, rules, now)
        nobody = await self._unroutable_troubles(tx, rules, now)
        return [*late, *long, *nobody, *await lost_node_troubles(tx, now)]

    async def _late_troubles(
        self, tx: Transaction, jobs: dict[int, JobRecord], rules: dict[int, Sequence[AlertRule]], now: int
    ) -> list[Trouble]:
        watched = [WatchedJob(job_id=job_id, late_ms=_least_late(each)) for job_id, each in rules.items()]
        watched = [each for each in watched if each.late_ms is not None]
        rows = list(await tx.rows("late_runs_of_jobs", Rows(watched))) if watched else []
        limits = [rule.late for rule in tx.alerting.rules if "late" in rule.on]
        if limits:
            rows += await tx.rows("late_runs", now - min(limits), RUNS_AT_ONCE)
        found = []
        jobs = await self._jobs_of_runs(tx, rows)
        for row in rows:
            job = jobs.get(row["job_id"])
            asked = [] if job is None else [r for r in rules_of(job.spec, tx.alerting) if "late" in r.on]
            asked = [rule for rule in asked if now - row["due_at"] >= rule.late]
            if job is None or not asked or job.state != "active":
                continue
            limit = min(rule.late for rule in asked)
            allowed = Duration(limit).in_words(exact=True)
            waited = Duration(now - row["due_at"]).in_words()
            words = f"a run that was due {waited} ago has not started; the limit is {allowed}"
            found.append(_trouble(job, "late", words, "late", row["due_at"] + limit, row["id"], asked, limit))
        return found

    async def _long_troubles(self, tx: Transaction, rules: dict[int, Sequence[AlertRule]], now: int) -> list[Trouble]:
        asked = [rule for each in (*rules.values(), tx.alerting.rules) for rule in each if "too_long" in rule.on]
        if not asked:
            return []
        limits = [rule.too_long for rule in asked if rule.too_long is not None]
        if any(rule.usual or rule.too_long is None for rule in asked):
            limits.append(LEAST_LONG)
        rows = await tx.rows("long_runs", now - min(limits), LONG_RUNS_AT_ONCE, *self._long_after)
        last = rows[-1] if len(rows) == LONG_RUNS_AT_ONCE else None
        self._long_after = NONE_YET if last is None else (last["claimed_at"], last["id"])
        jobs, found = await self._jobs_of_runs(tx, rows), []
        for row in rows:
            job = jobs.get(row["job_id"])
            if job is None:
                continue
            own = [rule for rule in rules_of(job.spec, tx.alerting) if "too_long" in rule.on]
            by = [(rule, await self._long_limit(tx, rule, job.id, now)) for rule in own]
            over = [(rule, limit) for rule, limit in by if limit is not None and now - row["since"] > limit]
            if not over:
                continue
            limit = min(limit for _, limit in over)
            running = Duration(now - row["since"]).in_words()
            allowed = Duration(limit).in_words(exact=True)
            words = f"a run has been running for {running}; the limit is {allowed}"
            chosen = [rule for rule, _ in over]
            found.append(_trouble(job, "too_long", words, "too_long", row["since"] + limit, row["id"], chosen, limit))
        return found

    async def _long_limit(self, tx: Transaction, rule: AlertRule, job_id: int, now: int) -> int | None:
        """What a rule thinks is too long for this job."""
        if rule.too_long is not None and not rule.usual:
            return rule.too_long
        known = self._usual_limits.get(job_id)
        if known is None or now - known[0] > USUAL_FOR or known[0] > now:
            durations = [row["duration_ms"] for row in await tx.rows("last_durations", job_id)]
            if len(self._usual_limits) > 10_000:
                self._usual_limits.clear()
            known = self._usual_limits[job_id] = now, usual_limit(durations)
        limits = [limit for limit in (known[1], rule.too_long) if limit is not None]
        return min(limits, default=None)

    async def _unroutable_troubles(
        self, tx: Transaction, rules: dict[int, Sequence[AlertRule]], now: int
    ) -> list[Trouble]:
        if not any("unroutable" in rule.on for each in (*rules.values(), tx.alerting.rules) for rule in each):
            self._nobody_seen, self._unreached_since = None, {}
            return []
        backlog = await count_backlog(tx)
        self._nobody_seen = {*backlog.unoffered, *backlog.unreached}
        found = await self._unreached_troubles(tx, backlog.unreached, now)
        for requires in sorted(backlog.unoffered):
            needed = read_requires(requires.removesuffix("@"))
            lacks = ", ".join(backlog.lacking.get(requires, ()))
            words = f"no live node can run it: it requires {needed.capability}" + (f", with {lacks}" if lacks else "")
            for index in ("free", "cursor", "lane"):
                rows = await tx.rows(f"unroutable_runs+where.{index}_runs", requires, RUNS_AT_ONCE)
                jobs = await self._jobs_of_runs(tx, rows)
                for row in rows:
                    job = jobs.get(row["job_id"])
                    asked = [] if job is None else rules_of(job.spec, tx.alerting)
                    asked = [rule for rule in asked if "unroutable" in rule.on]
                    if job is not None and asked:
                        found.append(_trouble(job, "unroutable", words, requires, row["due_at"], row["id"], asked))
        return found

    async def _unreached_troubles(self, tx: Transaction, places: Iterable[str], now: int) -> list[Trouble]:
        """Since when is not recorded: the node that looks remembers it."""
        self._unreached_since = {place: self._unreached_since.get(place, now) for place in sorted(places)}
        found = []
        for place, since in self._unreached_since.items():
            if now - since < UNREACHED_FOR:
                continue
            words = f"its work goes on at {place}, which no live node reaches"
            rows = await tx.rows("unreached_runs", place, RUNS_AT_ONCE)
            jobs = await self._jobs_of_runs(tx, rows)
            for row in rows:
                job = jobs.get(row["job_id"])
                asked = [] if job is None else rules_of(job.spec, tx.alerting)
                asked = [rule for rule in asked if "unroutable" in rule.on]
                if job is not None and asked and job.state == "active":
                    found.append(_trouble(job, "unroutable", words, place, since, row["id"], asked))
        return found

    async def _jobs_of_runs(self, tx: Transaction, rows: Iterable[Row]) -> dict[int, JobRecord]:
        return await self._alert_specs.read(tx, (row["job_id"] for row in rows))

    async def _look_at_open(self) -> bool:
        """Incidents that are over are closed; others are told again when it is time."""

        async def look(tx: Transaction) -> tuple[list[ClosedIncident], list[int], int]:
            now = await tx.now()
            rows = await tx.rows("open_incidents_after", self._closed_after, INCIDENTS_AT_ONCE)
            after = rows[-1]["id"] if len(rows) == INCIDENTS_AT_ONCE else 0
            live = await tx.rows("names_of_live_nodes") if rows else ()
            alive = {node_subject(row["name"]): row["started_at"] for row in live}
            over, again = [], []
            for row in rows:
                ended = self._closed_incident(row, now, alive)
                if ended is not None:
                    over.append(ended)
                elif _is_due_again(row, now):
                    again.append(row["id"])
            return over, again, after

        over, again, self._closed_after = await self.driver.read(look)

        async def write(tx: Transaction) -> int:
            closed = await close_incidents(tx, over)
            rows = [row for row in await tx.rows("lock_incidents", again) if row["closed_at"] is None] if again else []
            now = await tx.now()
            rows = [row for row in rows if _is_due_again(row, now)]
            if rows:
                await tell(tx, rows, "repeated", now)
            return closed + len(rows)

        if not over and not again:
            return False
        changed = await self.driver.transact_slow(write)
        for each in over:
            telemetry.emit("incident.closed", incident=each.id)
        return changed > 0

    def _closed_incident(self, row: Row, now: int, alive: dict[str, int]) -> ClosedIncident | None:
        condition = row["condition"]
        if condition == "node_lost":
            back = alive.get(row["subject"])  # another one of that name may have been there all the time
            return ClosedIncident(id=row["id"], at=now) if back is not None and back >= row["last_at"] else None
        nobody = self._nobody_seen
        if condition == "unroutable" and nobody is not None and row["cause"] not in nobody:
            return ClosedIncident(id=row["id"], at=now)
        if row["job_id"] is None:
            return None
        over = is_over(
            JobSince(
                condition=condition,
                last_at=row["last_at"],
                limit_ms=row["limit_ms"],
                state=row["job_state"],
                one_off=bool(row["one_off"]),
                last_status=row["last_status"],
                last_finished_at=row["last_finished_at"],
                last_lateness_ms=row["last_lateness_ms"],
                last_duration_ms=row["last_duration_ms"],
                once_done_at=row["once_done_at"],
                has_dead=bool(row["has_dead"]),
                lives=bool(row["lives"]),
                still_late=bool(row["still_late"]),
            ),
            now,
        )
        return None if over is None else ClosedIncident(id=row["id"], at=over.at, told=over.told)


async def lost_node_troubles(tx: Transaction, now: int) -> list[Trouble]:
    """Nodes that were lost of late and have not come back, if a rule of the installation wants to hear of them."""
    asked = [rule for rule in tx.alerting.rules if "node_lost" in rule.on]
    if not asked:
        return []
    return [
        Trouble(
            tenant=INSTALLATION,
            subject=node_subject(row["name"]),
            condition="node_lost",
            reason=f"node {row['name']} was lost; its runs were taken over by others",
            cause="node_lost",
            at=row["lost_at"],
            title=f"node {row['name']}",
            occurrence=row["id"],
            ways=ways_of(asked),
        )
        for row in await tx.rows("lost_nodes", now - LOST_SINCE)
    ]


def _least_late(rules: Sequence[AlertRule]) -> int | None:
    return min((rule.late for rule in rules if "late" in rule.on), default=None)


def _trouble(
    job: JobRecord,
    condition: str,
    reason: str,
    cause: str,
    at: int,
    run: str,
    rules: Sequence[AlertRule],
    limit: int | None = None,
) -> Trouble:
    return Trouble(
        tenant=job.tenant,
        subject=job_subject(job.id),
        condition=condition,  # type: ignore[arg-type]
        reason=reason,
        cause=cause,
        at=at,
        job_id=job.id,
        title=title_of(job.spec, job.id),
        occurrence=run,
        limit_ms=limit,
        ways=ways_of(rules),
    )


def _is_due_again(row: Row, now: int) -> bool:
    repeats = [way.repeat_ms for way in _ways(row["ways"]) if way.repeat_ms is not None]
    told = row["alerted_at"]
    return bool(repeats) and told is not None and now - told >= min(repeats)
