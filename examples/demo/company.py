"""The jobs of the company, as a team of eleven people would have them, and how each of them has been doing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from examples.demo.story import Story
from onthedot.model.decoding import convert
from onthedot.model.duration import DAY, HOUR
from onthedot.model.instant import format_instant
from onthedot.model.job import JobSpec

__all__ = ["COMMANDS", "DemoJob", "jobs_of_the_company"]

COUNTRIES = {"DE": "Germany", "FR": "France", "IT": "Italy", "ES": "Spain", "PL": "Poland", "SE": "Sweden"}
ZONES = {
    "DE": "Europe/Berlin",
    "FR": "Europe/Paris",
    "IT": "Europe/Rome",
    "ES": "Europe/Madrid",
    "PL": "Europe/Warsaw",
    "SE": "Europe/Stockholm",
}
PARTNERS = ("Assam Estates", "Bergkräuter", "Ceylon Direct", "Darjeeling House", "Earl & Sons", "Fjord Herbs")
COMMANDS = {
    "backup-orders": {"argv": ["sh", "-c", "echo 'dumping table orders'; sleep 0.4; echo 'wrote 48 MB'"]},
    "rotate-logs": {"argv": ["sh", "-c", "echo 'removed 3 files older than 30 days'"]},
    "check-certificates": {
        "argv": ["sh", "-c", "echo 'shop.example: 61 days left'; echo 'pay.example: expired' >&2; exit 1"]
    },
}
SCRIPT = """\
import json, random
orders = [random.gauss(34, 9) for _ in range(500)]
print(f"{len(orders)} orders, mean {sum(orders) / len(orders):.2f} EUR")
"""


class DemoJob(msgspec.Struct, frozen=True, kw_only=True):
    spec: JobSpec
    story: Story
    paused: tuple[str, int | None] | None = None  # note, and for how many ms from now
    quarantined: str | None = None  # the reason


def jobs_of_the_company(ports: Mapping[str, int], now: int, *, scripts: bool) -> Iterator[DemoJob]:
    """Followers before those that name them."""
    made = _Maker(ports, now)
    yield from _chain(made)
    yield from _quick(made)
    yield from _steady(made)
    yield from _nightly(made)
    yield from _troubled(made)
    yield from _elsewhere(made)
    yield from _still(made)
    if scripts:
        yield made.job(
            "basket-statistics",
            "Basket statistics",
            {"cron": "*/10 * * * *"},
            {"type": "script", "code": SCRIPT},
            owner="data",
            tags=["reports"],
            story=Story(takes_ms=220, since=3 * DAY, log="500 orders, mean 34.12 EUR\n"),
        )


class _Maker:
    def __init__(self, ports: Mapping[str, int], now: int) -> None:
        self._ports, self.now = ports, now

    def hook(self, system: str, path: str, body: Any = None) -> dict[str, Any]:
        return {"type": "webhook", "url": f"http://127.0.0.1:{self._ports[system]}/{path}", "body": body or {}}

    def every(self, step: str, since: int) -> dict[str, Any]:
        """From a whole hour on: then the past can be computed as the future is."""
        at = self.now - since
        return {"every": step, "start": format_instant(at - at % HOUR)}

    def job(
        self,
        key: str,
        name: str,
        schedule: dict[str, Any],
        target: dict[str, Any],
        *,
        owner: str,
        tags: list[str],
        story: Story | None = None,
        paused: tuple[str, int | None] | None = None,
        quarantined: str | None = None,
        **more: Any,
    ) -> DemoJob:
        fields = {"key": key, "name": name, "schedule": schedule, "target": target, "owner": owner, "tags": tags}
        spec = convert({**fields, **more}, JobSpec)
        return DemoJob(spec=spec, story=story or Story(), paused=paused, quarantined=quarantined)


def _function(name: str) -> dict[str, str]:
    return {"type": "function", "function": f"shop.{name}"}


NEVER = {"at": "2099-01-01T00:00:00Z"}


def _chain(m: _Maker) -> Iterator[DemoJob]:
    """Import, then transform, then report; and an alarm if it fails."""
    yield m.job(
        "orders-report",
        "Daily orders report",
        NEVER,
        _function("reports:build"),
        owner="data",
        tags=["orders", "reports"],
        params={"report": "orders", "seconds": 3},
    )
    yield m.job("orders-alarm", "Tell the data team", NEVER, m.hook("mail", "alarm"), owner="data", tags=["orders"])
    yield m.job(
        "orders-transform",
        "Transform orders",
        NEVER,
        _function("reports:build"),
        owner="data",
        tags=["orders"],
        params={"report": "transform", "seconds": 1.5},
        on_success=["orders-report"],
    )
    yield m.job(
        "orders-import",
        "Import orders of all shops",
        {"cron": "*/5 * * * *"},
        m.hook("shop", "orders/export"),
        owner="data",
        tags=["orders", "import"],
        on_success=["orders-transform"],
        on_failure=["orders-alarm"],
        story=Story(takes_ms=60, fails=0.004, causes=("unavailable",)),
    )


def _quick(m: _Maker) -> Iterator[DemoJob]:
    """What makes the page move: made yesterday, several a minute. Fewer than 5,000 a day each: the proof counts all."""
    young = DAY
    for key, name, step, system, path in (
        ("cart-heartbeat", "Carts: heartbeat", "20s", "shop", "carts/heartbeat"),
        ("payment-queue", "Payments: work off the queue", "24s", "payments", "queue/work"),
        ("search-index", "Search: index changed products", "30s", "shop", "search/index"),
        ("mail-outbox", "Mail: send what is in the outbox", "25s", "mail", "outbox/send"),
        ("price-feed", "Prices: read the auction feed", "40s", "partners", "prices"),
    ):
        yield m.job(
            key,
            name,
            m.every(step, young),
            m.hook(system, path),
            owner="platform",
            tags=["live", system],
            story=Story(takes_ms=35, since=young, fails=0.01),
        )
    yield m.job(
        "session-sweep",
        "Sessions: forget old ones",
        m.every("30s", young),
        _function("billing:send_invoices"),
        owner="platform",
        tags=["live"],
        story=Story(takes_ms=150, since=young),
        params={"country": "EU"},
    )
    for aisle in "ABC":
        yield m.job(
            f"recount-aisle-{aisle.lower()}",
            f"Recount aisle {aisle}",
            m.every("30m", young),
            _function("stock:recount"),
            owner="warehouse",
            tags=["stock", "live"],
            params={"aisle": aisle, "seconds": 5},
            policy={"concurrency": {"group": "stock-database", "limit": 1}, "overlap": "skip", "timeout": "1m"},
            story=Story(takes_ms=5000, spread=0.1, late_ms=5000, since=young),
        )


def _steady(m: _Maker) -> Iterator[DemoJob]:
    for warehouse in ("Leipzig", "Lyon", "Poznań"):
        key = {"Leipzig": "leipzig", "Lyon": "lyon", "Poznań": "poznan"}[warehouse]
        yield m.job(
            f"stock-levels-{key}",
            f"Stock levels of {warehouse}",
            {"cron": "H/2 * * * *"},
            _function("stock:sync_levels"),
            owner="warehouse",
            tags=["stock"],
            params={"warehouse": warehouse},
            story=Story(takes_ms=160, log=f"{warehouse}: 14 changed\n"),
        )
    yield m.job(
        "payment-status",
        "Payments: ask for open ones",
        {"cron": "* * * * *"},
        m.hook("payments", "open"),
        owner="billing",
        tags=["payments", "critical"],
        policy={"retry": {"attempts": 4, "backoff": "1s"}},
        story=Story(takes_ms=70, fails=0.01, causes=("unavailable",), outage="unavailable", attempts=4),
    )
    yield m.job(
        "fraud-check",
        "Fraud: score new orders",
        {"cron": "* * * * *"},
        m.hook("payments", "fraud/score"),
        owner="billing",
        tags=["payments", "critical"],
        story=Story(takes_ms=110, fails=0.006, outage="unavailable"),
    )
    for partner in PARTNERS:
        key = partner.lower().replace(" & ", "-").replace(" ", "-").replace("ä", "ae")
        yield m.job(
            f"feed-{key}",
            f"Product feed of {partner}",
            {"cron": "H/15 * * * *"},
            m.hook("partners", f"feeds/{key}"),
            owner="purchasing",
            tags=["feeds", "partners"],
            policy={"jitter": "20s", "timeout": "10s"},
            story=Story(takes_ms=900, spread=0.5, fails=0.01, causes=("timeout", "unprocessable")),
        )
    yield m.job(
        "ledger-main",
        "Reconcile the main ledger",
        {"cron": "*/15 * * * *"},
        _function("billing:reconcile"),
        owner="billing",
        tags=["payments"],
        params={"ledger": "main"},
        story=Story(takes_ms=380, fails=0.03, causes=("mismatch",), log="main: 288 payments read\n"),
    )
    yield m.job(
        "rotate-logs",
        "Remove old log files",
        {"cron": "20 * * * *"},
        {"type": "command", "command": "rotate-logs"},
        owner="platform",
        tags=["housekeeping"],
        story=Story(takes_ms=12, log="removed 3 files older than 30 days\n"),
    )
    yield m.job(
        "demand-forecast",
        "Demand forecast",
        {"cron": "10,40 * * * *"},
        _function("reports:forecast"),
        owner="data",
        tags=["reports", "machine-learning"],
        policy={"retry": {"attempts": 2, "backoff": "30s"}},
        story=Story(takes_ms=1700, fails=0.3, causes=("diverged",), attempts=2, log="fitting 14 days\n"),
    )


def _nightly(m: _Maker) -> Iterator[DemoJob]:
    for code, country in COUNTRIES.items():
        zone, low = ZONES[code], code.lower()
        yield m.job(
            f"invoices-{low}",
            f"Invoices of {country}",
            {"cron": "0 6 * * *", "tz": zone},
            _function("billing:send_invoices"),
            owner="billing",
            tags=["invoices", low],
            params={"country": code},
            story=Story(takes_ms=900, log=f"invoice {code}-20001 queued\n"),
        )
        yield m.job(
            f"dunning-{low}",
            f"Payment reminders of {country}",
            {"cron": "30 9 * * MON-FRI", "tz": zone},
            _function("billing:dunning"),
            owner="billing",
            tags=["invoices", low],
            params={"stage": 1},
            story=Story(takes_ms=420),
        )
        yield m.job(
            f"newsletter-{low}",
            f"Newsletter of {country}",
            {"cron": "0 17 * * THU", "tz": zone},
            m.hook("mail", f"newsletter/{low}"),
            owner="marketing",
            tags=["mail", low],
            policy={"delivery": "at_most_once", "timeout": "30s"},
            story=Story(takes_ms=2400),
        )
    yield m.job(
        "backup-orders",
        "Back up the orders",
        {"cron": "15 */4 * * *"},
        {"type": "command", "command": "backup-orders"},
        owner="platform",
        tags=["housekeeping", "critical"],
        story=Story(takes_ms=430, log="dumping table orders\nwrote 48 MB\n"),
    )
    yield m.job(
        "month-end",
        "Month-end closing",
        {"cron": "0 2 L * *", "tz": "Europe/Berlin"},
        _function("billing:reconcile"),
        owner="billing",
        tags=["invoices", "critical"],
    )
    yield m.job(
        "clock-change",
        "Night orders of the clock change",
        {"cron": "30 2 * * *", "tz": "Europe/Berlin"},
        m.hook("shop", "orders/night"),
        owner="shop",
        tags=["orders"],
        story=Story(takes_ms=50),
    )


def _troubled(m: _Maker) -> Iterator[DemoJob]:
    yield m.job(
        "loyalty-points",
        "Loyalty: book points",
        {"cron": "*/3 * * * *"},
        m.hook("loyalty", "points"),
        owner="marketing",
        tags=["loyalty"],
        policy={"retry": {"attempts": 2, "backoff": "2s"}},
        story=Story(takes_ms=40, causes=("refused",), broken_for=2 * DAY, attempts=2),
    )
    yield m.job(
        "loyalty-tiers",
        "Loyalty: recompute tiers",
        {"cron": "5 * * * *"},
        m.hook("loyalty", "tiers"),
        owner="marketing",
        tags=["loyalty"],
        policy={"retry": {"attempts": 2, "backoff": "2s"}},
        story=Story(takes_ms=300, causes=("refused",), broken_for=2 * DAY, attempts=2),
    )
    yield m.job(
        "check-certificates",
        "Check certificates",
        {"cron": "0 */6 * * *"},
        {"type": "command", "command": "check-certificates"},
        owner="platform",
        tags=["security"],
        policy={"retry": {"attempts": 1}},
        story=Story(
            takes_ms=300,
            causes=("exit",),
            broken_for=30 * HOUR,
            attempts=1,
            log="shop.example: 61 days left\npay.example: expired\n",
        ),
    )
    yield m.job(
        "returns-sync",
        "Returns: tell the warehouse",
        {"cron": "*/4 * * * *"},
        m.hook("warehouse", "returns"),
        owner="warehouse",
        tags=["stock", "returns"],
        story=Story(takes_ms=140, fails=0.09, causes=("internal", "timeout", "unprocessable")),
    )
    yield m.job(
        "legacy-calendar",
        "Holiday calendar of the old system",
        {"cron": "0 8 * * *", "tz": "Europe/Berlin"},
        m.hook("shop", "calendar"),
        owner="shop",
        tags=["legacy"],
        quarantined="the time zone 'Europe/Berlin' could not be loaded on this node",
    )


def _elsewhere(m: _Maker) -> Iterator[DemoJob]:
    """What runs on machines of others, and reports here; the second has stopped doing so."""
    yield m.job(
        "payroll-export",
        "Payroll export at the accountant",
        {"cron": "*/10 * * * *"},
        {"type": "checkin", "grace": "5m"},
        owner="billing",
        tags=["check-in"],
        story=Story(takes_ms=21_000, spread=0.2, fails=0.0, since=2 * DAY, attempts=1),
    )
    yield m.job(
        "nas-backup",
        "Backup of the office NAS",
        {"cron": "30 * * * *"},
        {"type": "checkin", "grace": "10m"},
        owner="platform",
        tags=["check-in", "housekeeping"],
        story=Story(takes_ms=90_000, fails=0.0, causes=("missed",), broken_for=7 * HOUR, attempts=1, since=5 * DAY),
    )


def _still(m: _Maker) -> Iterator[DemoJob]:
    yield m.job(
        "flash-sale",
        "Flash sale: change prices",
        {"cron": "0 18 * * FRI", "tz": "Europe/Berlin"},
        m.hook("shop", "prices/flash"),
        owner="marketing",
        tags=["prices"],
        paused=("No sales until the stock count is done", 5 * DAY),
        story=Story(takes_ms=80),
    )
    yield m.job(
        "supplier-orders",
        "Order from suppliers",
        {"cron": "0 7 * * MON-FRI", "tz": "Europe/Berlin"},
        m.hook("partners", "orders"),
        owner="purchasing",
        tags=["partners", "critical"],
        paused=("The contract with Fjord Herbs is being renewed; ask Ines before you resume", None),
        story=Story(takes_ms=600),
    )
    for hours, title in ((2, "Maintenance window of the payment provider"), (26, "Switch to the winter catalogue")):
        yield m.job(
            f"once-{hours}h",
            title,
            {"at": format_instant(m.now + hours * HOUR)},
            m.hook("shop", "announce"),
            owner="shop",
            tags=["once"],
        )
