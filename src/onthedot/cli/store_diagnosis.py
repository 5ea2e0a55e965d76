"""What `onthedot doctor` finds out from the store, or from the server that has it open."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import AsyncIterator, Sequence

from onthedot.cli.direct import url_of_holder
from onthedot.cli.findings import Finding, ok, warning, wrong
from onthedot.cli.options import authority, server_url
from onthedot.cli.output import ago
from onthedot.client import AsyncClient
from onthedot.clock import SystemClock
from onthedot.errors import OnTheDotError, StoreInUse, StoreMissing, StoreUnavailable
from onthedot.launcher.banner import without_password
from onthedot.model.destination import DestinationView
from onthedot.model.duration import DAY
from onthedot.model.freeze import Freeze
from onthedot.model.instant import format_instant, parse_rfc3339
from onthedot.model.labels import read_requires
from onthedot.model.targets.registry import find_spec
from onthedot.service.cluster import NOTE_WAIT
from onthedot.service.destinations import destination_views
from onthedot.settings import Settings
from onthedot.store import Store, open_driver
from onthedot.store.driver import Driver
from onthedot.store.migrate import check_version

__all__ = ["examine_store"]

CLOCKS_APART = 500
GROUP_WAIT = 15 * 60_000
"""ms that a run may wait for its concurrency group before it is worth a warning."""
MOST_NAMED = 10
COUNTED_NOTES = 10_000  # as `count_old_notes` counts them


async def examine_store(settings: Settings, server: str | None, key: str | None) -> AsyncIterator[Finding]:
    """A server that somebody named is asked in any case; it may be of another store than the one here."""
    shown = without_password(settings.store)
    given, key = server or os.environ.get("ONTHEDOT_URL"), key or os.environ.get("ONTHEDOT_KEY")
    brief = False
    try:
        driver = await open_driver(settings.store, create=False)
    except StoreMissing as error:
        if given is None or "store" in settings.given:
            yield warning("store", str(error), "`onthedot serve` creates it")
    except StoreInUse:
        yield ok("store", f"{shown} is in use by a running server; checking through its API")
        if given is None:
            async for finding in _by_server(url_of_holder(settings), key):
                yield finding
    except (OnTheDotError, OSError) as error:
        yield wrong("store", f"{shown}: {error}", _advice_for(error, settings))
    else:
        brief = not settings.is_sqlite  # the store has told the rest
        async for finding in _by_store(driver, settings, shown):
            yield finding
    if given is not None:
        async for finding in _by_server(server_url(given), key, named=True, brief=brief):
            yield finding


async def _by_store(driver: Driver, settings: Settings, shown: str) -> AsyncIterator[Finding]:
    try:
        missing = await check_version(driver)
        if missing:
            await driver.check_room()
            names = ", ".join(migration.name for migration in missing)
            yield warning(
                "store", f"{shown} has pending migrations: {names}", "run `onthedot migrate`, or start `onthedot serve`"
            )
            return
        store = Store(driver)
        yield ok("store", f"{shown} is reachable, schema up to date")
        yield await _durability(store, settings)
        if (failover := await _failover(store)) is not None:
            yield failover
        yield await _clocks(store)
        async for finding in _floors(store):
            yield finding
        yield _freeze(await store.current_freeze())
        yield _dead_letters(await store.count_dead())
        async for finding in _cluster(store):
            yield finding
    except OnTheDotError as error:
        yield wrong("store", f"{shown}: {error}", _advice_for(error, settings))
    finally:
        await driver.close()


def _advice_for(error: Exception, settings: Settings) -> str:
    if isinstance(error, StoreUnavailable) and not settings.is_sqlite:
        return "is PostgreSQL running, and are the host, port, user and database in STORE correct?"
    if settings.is_sqlite:
        return "check that this user can write to the file and its directory"
    return "see the message above"


def _freeze(found: Freeze | None) -> Finding:
    if found is None:
        return ok("pause", "the installation is not paused")
    why = f": {found.note}" if found.note else ""
    return warning("pause", f"everything is paused since {found.since}{why}", "resume with `onthedot resume --all`")


async def _durability(store: Store, settings: Settings) -> Finding:
    """Acknowledged writes must survive a power failure, which depends on two settings of the database."""
    durability = await store.durability()
    if settings.is_sqlite:
        if durability.safe:
            return ok("fsync", "SQLite synchronous FULL")
        return wrong("fsync", "SQLite synchronous is below FULL", "please report this as a bug")
    if durability.safe:
        return ok("fsync", durability.found)
    return wrong("fsync", durability.found, "turn both on; otherwise a crash can lose acknowledged jobs")


async def _failover(store: Store) -> Finding | None:
    """Whether the store is now on another PostgreSQL instance, or on another timeline of the same one."""
    last = await store.last_failover()
    if last is None:
        return None
    since = await store.now() - last.changed_at
    found = f"{ago(since)} ago, from {last.before} to {last.after}"
    if since > DAY:
        return ok("failover", f"last failover {found}")
    return warning(
        "failover",
        f"the database failed over or was restored {found}; new IDs continue after a gap",
        "unless replication is synchronous, the last acknowledged writes may be lost and at-most-once runs may have"
        " been repeated: compare `onthedot runs list` with the records of your receivers",
    )


def _dead_letters(count: int) -> Finding:
    if not count:
        return ok("dead", "no dead letters")
    letters = "1 dead letter" if count == 1 else f"{count:,} dead letters"
    return warning(
        "dead", letters, "see the reasons with `onthedot dead list`; fix them, then run `onthedot dead redrive --all`"
    )


async def _clocks(store: Store) -> Finding:
    clock = SystemClock()
    before = clock.now_ms()
    there = await store.now()
    apart = there - (before + clock.now_ms()) // 2
    found = f"the database clock is {ago(abs(apart))} {'ahead of' if apart >= 0 else 'behind'} this machine"
    if abs(apart) > CLOCKS_APART:
        return warning("clock", found, "runs fire by the database clock; synchronize this machine with NTP")
    return ok("clock", found)


async def _floors(store: Store) -> AsyncIterator[Finding]:
    """Jobs whose next run was moved into the future by a clock that was ahead do not fire until then."""
    ahead = await store.floors_ahead(MOST_NAMED + 1)
    if ahead:
        named = ", ".join(map(str, ahead[:MOST_NAMED])) + (", …" if len(ahead) > MOST_NAMED else "")
        found = f"the database clock was ahead, so jobs {named} were moved into the future and do not fire until then"
        yield wrong("clock", found, "a running node repairs them within seconds; look for floor.repaired in its log")


async def _cluster(store: Store) -> AsyncIterator[Finding]:
    nodes = await store.list_nodes()
    alive = [node for node in nodes if node.state == "alive" and "executor" in node.roles]
    lost = [node for node in nodes if node.state == "lost"]
    backlog = await store.backlog()
    if alive:
        yield ok("nodes", f"{len(alive)} alive: {', '.join(node.name for node in alive)}")
    else:
        yield warning("nodes", "no nodes are alive, so nothing fires", "start one with `onthedot serve`")
    if lost:
        names = ", ".join(f"{node.name} ({node.pid})" for node in lost)
        yield warning("lost", f"{len(lost)} nodes lost: {names}", "other nodes took over their runs; check their logs")
    waits = f"{backlog.due} runs due, {backlog.running} running"
    if alive and (backlog.oldest_ms or 0) > 60_000:
        yield warning(
            "backlog",
            f"{waits}; the oldest has waited {ago(backlog.oldest_ms or 0)}",
            "add nodes, or raise CONCURRENCY",
        )
    else:
        yield ok("backlog", waits)
    async for finding in _destinations(store, backlog.waiting):
        yield finding
    async for finding in _groups(store):
        yield finding
    notes, oldest = await store.count_old_notes(NOTE_WAIT)
    if notes:
        yield _late_notes(notes, await store.now() - oldest, oldest)
    for offer, count in sorted(backlog.unoffered.items()):
        if offer in backlog.lacking:
            labels = ",".join(read_requires(offer).labels)
            yield _unlabelled(backlog.lacking[offer], f"{count} due runs need {offer}", labels)
            continue
        yield wrong("unoffered", f"{count} due runs need {offer}, which no live node provides", _how_to_offer(offer))
    for place, count in sorted(backlog.unreached.items()):
        advice = "start a node that reaches it, or wait for their timeout"
        yield wrong("unreached", f"{count} runs go on at {place}, which no live node reaches", advice)


async def _destinations(store: Store, waiting: int) -> AsyncIterator[Finding]:
    """Circuit breakers that are open on a node, of all tenants."""
    told = (await store.destinations_of_nodes()).items()
    views = [view for view in destination_views(told, []) if view.breaker != "closed"]
    if views:
        yield _open_breakers(views, waiting)


async def _groups(store: Store) -> AsyncIterator[Finding]:
    waiting, since = await store.count_waiting_for_groups()
    waited = 0 if since is None else await store.now() - since
    if waited > GROUP_WAIT:
        yield _waiting_for_groups(waiting, waited)


def _late_notes(notes: int, since: int, waited: int) -> Finding:
    many = f"{notes:,}" if notes < COUNTED_NOTES else f"{COUNTED_NOTES:,} or more"
    return warning(
        "notes",
        f"what {many} ended runs cause (chained runs, alerts, pauses) is not carried out, the first since "
        f"{format_instant(since)} ({ago(waited)})",
        "if no node is alive, start one; else look for note.failed in the logs of the nodes, which says why, and "
        "update nodes of an older version",
    )


def _waiting_for_groups(waiting: int, waited: int) -> Finding:
    return warning(
        "groups",
        f"{waiting} runs wait for their concurrency group, the first for {ago(waited)}",
        "see `onthedot groups`; raise the limit, or find out why the running ones take so long",
    )


def _open_breakers(views: Sequence[DestinationView], waiting: int) -> Finding:
    named = ", ".join(dict.fromkeys(view.destination for view in views[:MOST_NAMED]))
    found = (
        f"circuit breakers are open for {len(views)} destinations: {named}{', …' if len(views) > MOST_NAMED else ''}"
    )
    advice = "they failed 10 times in a row; one run is sent every 10 s to see whether they are back"
    return warning("breakers", f"{found}; {waiting} runs wait" if waiting else found, advice)


def _how_to_offer(offer: str) -> str:
    kind, _, name = read_requires(offer).capability.partition(":")
    spec = find_spec(kind)
    return f"install the plug-in for {kind} targets on a node" if spec is None else spec.how_to_offer(name)


def _unlabelled(missing: Sequence[str], found: str, labels: str = "…") -> Finding:
    """Runs whose job requires labels that no live node has. `labels`: all that they require, of one node."""
    named = f"label{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
    advice = f"start a node that has all labels they require: `onthedot serve --labels {labels}`, or change `requires`"
    return wrong("labels", f"{found}, but no live node has the {named}", f"{advice} of the jobs")


async def _by_server(url: str, key: str | None, *, named: bool = False, brief: bool = False) -> AsyncIterator[Finding]:
    """`named`: somebody wants to know about this one, so that it is an error if it can't be asked. `brief`: only
    whether it is up and ready, and takes the key."""
    async with AsyncClient(url, key, tries=2, ca=authority()) as client:
        try:
            health = await client.health()
            yield ok("server", f"{url} is up: status {health.get('status')}, version {health.get('version')}")
            nodes = await client.list_nodes()
            if brief:
                async for finding in _readiness(client):
                    yield finding
                return
            stats = await client.stats()
            dead, frozen = int(stats["dead"]), stats.get("freeze")
            broken = [view for view in await client.list_destinations() if view.breaker != "closed"]
            pending = await client.list_runs(status="PENDING", until=format_instant(SystemClock().now_ms()), limit=500)
            groups = [view for view in await client.list_groups() if view.waiting_since is not None]
        except OnTheDotError as error:
            told = str(error) if url in str(error) else f"{url}: {error}"
            advice = "check --url, and pass --key if the server requires one"
            yield (wrong if named else warning)("server", told, advice)
            return
        async for finding in _readiness(client):
            yield finding
        lost = [node.name for node in nodes if node.state == "lost"]
        alive = [node.name for node in nodes if node.state == "alive"]
        yield ok("nodes", f"{len(alive)} alive{f', lost: {lost}' if lost else ''}")
        yield _freeze(None if frozen is None else Freeze(**frozen))
        yield _dead_letters(dead)
        if broken:
            yield _open_breakers(broken, sum(view.waiting for view in broken))
        missing = Counter(run.waiting_for for run in pending.items if run.waiting == "label")
        for labels, count in sorted(missing.items(), key=str):
            yield _unlabelled((labels or "").split(", "), f"{count} due runs wait")
        since = min((parse_rfc3339(view.waiting_since or "") or 0 for view in groups), default=None)
        if since is not None and (waited := SystemClock().now_ms() - since) > GROUP_WAIT:
            yield _waiting_for_groups(sum(view.waiting for view in groups), waited)
        if noted := parse_rfc3339(stats.get("late_notes_since") or ""):
            yield _late_notes(int(stats["late_notes"]), noted, SystemClock().now_ms() - noted)


async def _readiness(client: AsyncClient) -> AsyncIterator[Finding]:
    try:
        clock = (await client.ready()).get("clock")
    except OnTheDotError as error:
        yield warning("server", f"not ready: {error}", "check the server log")
        return
    if clock is not None:
        yield warning("clock", f"machine clock: {clock}", "check NTP; runs that fired early are not undone")
