"""The store is the truth: jobs, runs, history, on SQLite or PostgreSQL."""

from __future__ import annotations

from onthedot.clock import Clock, SystemClock
from onthedot.errors import SettingsError, StoreError
from onthedot.model.alerts import NO_ALERTING, Alerting
from onthedot.model.sync import SyncReport
from onthedot.plan import LOOKAHEAD_MS
from onthedot.store.alerts.lists import IncidentFilter
from onthedot.store.alerts.outbox import DueAlert
from onthedot.store.bulk.portion import WorkedOff
from onthedot.store.cluster.keys import FoundKey
from onthedot.store.cluster.maintenance import BacklogCount, StoreStats
from onthedot.store.cluster.nodes import Beat
from onthedot.store.cluster.rollups import CountedSeries
from onthedot.store.cluster.sessions import SESSION_IDLE, SESSION_LONGEST
from onthedot.store.driver import Driver
from onthedot.store.jobs.audit_log import AuditFilter
from onthedot.store.jobs.carry_out import CarriedOut
from onthedot.store.jobs.create import NewJob
from onthedot.store.jobs.idempotency import Idempotency
from onthedot.store.jobs.job_filter import LAST_STATUSES, JobFilter
from onthedot.store.jobs.job_filter import SORTS as JOB_SORTS
from onthedot.store.migrate import check_version, migrate
from onthedot.store.paging import Page
from onthedot.store.postgres.driver import PostgresDriver
from onthedot.store.runs.callbacks import Completed
from onthedot.store.runs.checkins import CheckIn, PingedJob
from onthedot.store.runs.claim import Claim, Want
from onthedot.store.runs.dead_letters import LetterFilter
from onthedot.store.runs.destinations import DestinationCount, TurnedAway, WaitingSeen, WaitsFor
from onthedot.store.runs.finish import Finished, FinishReport
from onthedot.store.runs.live_logs import LiveLog
from onthedot.store.runs.open import Adopted, StartedWork
from onthedot.store.runs.orders import Order, PolledOrders
from onthedot.store.runs.run_filter import RunFilter
from onthedot.store.runs.slot_rows import SlotCounts, SlotEntry, SlotState
from onthedot.store.sqlite.driver import SqliteDriver
from onthedot.store.store import Store

__all__ = [
    "JOB_SORTS",
    "LAST_STATUSES",
    "SESSION_IDLE",
    "SESSION_LONGEST",
    "Adopted",
    "AuditFilter",
    "BacklogCount",
    "Beat",
    "CarriedOut",
    "CheckIn",
    "Claim",
    "Completed",
    "CountedSeries",
    "DestinationCount",
    "DueAlert",
    "FinishReport",
    "Finished",
    "FoundKey",
    "Idempotency",
    "IncidentFilter",
    "JobFilter",
    "LetterFilter",
    "LiveLog",
    "NewJob",
    "Order",
    "Page",
    "PingedJob",
    "PolledOrders",
    "RunFilter",
    "SlotCounts",
    "SlotEntry",
    "SlotState",
    "StartedWork",
    "Store",
    "StoreStats",
    "SyncReport",
    "TurnedAway",
    "WaitingSeen",
    "WaitsFor",
    "Want",
    "WorkedOff",
    "open_driver",
    "open_store",
]

_ACCEPTED = "sqlite:///path/to/file.db, sqlite:///:memory: or postgresql://user:password@host/database"


async def open_store(
    url: str,
    clock: Clock | None = None,
    *,
    migrated: bool = True,
    threads: bool = True,
    now: str | None = None,
    lookahead: int = LOOKAHEAD_MS,
    alerting: Alerting = NO_ALERTING,
) -> Store:
    """Open the store at `url` and bring its tables up to date.

    migrated=False: do not change tables, refuse a database that needs it (`onthedot migrate` does it by hand).
    clock: whose time SQLite lives by; PostgreSQL lives by its own (`now`: another SQL expression for it, in tests).
    threads=False: SQLite works on the event loop itself, for a simulation that must repeat exactly.
    lookahead: how many ms before its instant a run that is written here may be claimed.
    alerting: what the settings say of alerts.
    """
    driver = await open_driver(url, clock, threads=threads, now=now)
    driver.queries.lookahead = lookahead
    driver.queries.alerting = alerting
    try:
        if migrated:
            await migrate(driver)
        else:
            await _refuse_older(driver)
        await driver.check_lineage()
    except BaseException:
        await driver.close()
        raise
    return Store(driver)


async def _refuse_older(driver: Driver) -> None:
    if missing := await check_version(driver):
        names = ", ".join(migration.name for migration in missing)
        raise StoreError(f"the database has pending migrations ({names}); run `onthedot migrate --store …` first")


async def open_driver(
    url: str, clock: Clock | None = None, *, threads: bool = True, now: str | None = None, create: bool = True
) -> Driver:
    """The driver for an address, without looking at its tables. Not `create`: StoreMissing if there is no such file."""
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return SqliteDriver(rest[1:], clock or SystemClock(), threads=threads, create=create)
    if scheme in ("postgresql", "postgres") and separator:
        return await PostgresDriver.open(url, now=now)
    raise SettingsError(f"{url.partition('@')[2] or url!r} is not a valid store URL. Accepted: {_ACCEPTED}")
