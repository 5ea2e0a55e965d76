"""The checks of `onthedot doctor`. Each check yields findings; a check that fails is itself a finding."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import msgspec

from onthedot.cli.options import server_url
from onthedot.cli.output import ago
from onthedot.client import AsyncClient
from onthedot.clock import SystemClock
from onthedot.descriptors import allowed, for_sending
from onthedot.errors import OnTheDotError, SettingsError, StoreInUse, StoreMissing, StoreUnavailable
from onthedot.launcher.banner import without_password
from onthedot.launcher.launch import jobs_file_of
from onthedot.launcher.remarks import failing
from onthedot.main import targets_of
from onthedot.model.duration import DAY
from onthedot.model.targets.registry import find_spec
from onthedot.settings import Settings, load_settings
from onthedot.store import Store, open_driver
from onthedot.store.migrate import check_version
from onthedot.targets import build_targets
from onthedot.timing.zones import zone_data
from onthedot.version import __version__

__all__ = ["Finding", "examine"]

LITTLE_DISK = 1 << 30
NO_DISK = 100 << 20
CLOCKS_APART = 500
MOST_NAMED = 10


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    state: Literal["ok", "warning", "wrong"]
    subject: str
    found: str
    advice: str | None = None


async def examine(store: str | None, file: str | None, server: str | None, key: str | None) -> list[Finding]:
    try:
        settings = load_settings({"store": store}, file=file)
    except SettingsError as error:
        return [
            _wrong("settings", str(error).replace("\n", "; "), "fix the settings first; the other checks need them")
        ]
    findings = [
        _versions(),
        *_plugins(settings),
        _settings(settings),
        *_jobs_file(settings),
        *_disk(settings),
        _descriptors(settings),
    ]
    findings.extend([finding async for finding in _store(settings, server, key)])
    return findings


def _versions() -> Finding:
    found = f"onthedot {__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    return _ok("versions", f"{found}, time zones {zone_data()}")


def _plugins(settings: Settings) -> list[Finding]:
    """Kinds of target that plug-ins add, made with their settings as a node makes them."""
    targets = build_targets(settings)
    findings = [
        _wrong("plug-in", f"{name}: {why}", f"correct [targets.{name}] in the settings, or update or uninstall it")
        for name, why in targets.broken.items()
    ]
    return [_ok("plug-ins", ", ".join(targets.plugins)), *findings] if targets.plugins else findings


def _settings(settings: Settings) -> Finding:
    given = ", ".join(sorted(settings.given)) or "all defaults"
    return _ok("settings", given)


def _jobs_file(settings: Settings) -> list[Finding]:
    try:
        jobs = jobs_file_of(settings)
    except OnTheDotError as error:
        return [_wrong("jobs file", str(error), "fix the file; it is not applied until it is valid")]
    if jobs is None:
        return []
    found = _ok("jobs file", f"{settings.jobs_file_path}: {len(jobs.specs)} jobs")
    advice = "correct the name, or make it importable on this node: next to the jobs file, or installed"
    return [
        found,
        *(_wrong("jobs file", remark, advice) for remark in failing(jobs, targets_of(settings, jobs).problem)),
    ]


def _disk(settings: Settings) -> list[Finding]:
    places = {"logs": settings.logs_base_directory}
    if settings.is_sqlite and ":memory:" not in settings.store:
        places["store"] = Path(settings.store.removeprefix("sqlite:///")).parent
    findings = []
    for what, place in places.items():
        there = next((folder for folder in (place.absolute(), *place.absolute().parents) if folder.exists()), Path("/"))
        free = shutil.disk_usage(there).free
        found = f"{free / (1 << 30):.1f} GiB free for {what} in {place}"
        if free < NO_DISK:
            findings.append(_wrong("disk", found, "free up disk space; without it nothing can be recorded"))
        elif free < LITTLE_DISK:
            findings.append(_warning("disk", found, "free up disk space, or lower RETENTION"))
        else:
            findings.append(_ok("disk", found))
    return findings


def _descriptors(settings: Settings) -> Finding:
    """The limit of open files for a node started from the same environment as this command."""
    most = allowed()
    sending = for_sending(most, settings.function_processes) or settings.concurrency
    if sending >= settings.concurrency:
        return _ok("descriptors", f"limit of {most} open files and sockets")
    found = f"limit of {most} open files and sockets allows {sending} concurrent webhooks, but CONCURRENCY is "
    advice = "raise the limit (`ulimit -Hn`, LimitNOFILE= in systemd, --ulimit nofile in Docker), or lower CONCURRENCY"
    return _warning("descriptors", f"{found}{settings.concurrency}", advice)


async def _store(settings: Settings, server: str | None, key: str | None) -> AsyncIterator[Finding]:
    shown = without_password(settings.store)
    try:
        driver = await open_driver(settings.store, create=False)
    except StoreMissing as error:
        yield _warning("store", str(error), "`onthedot serve` creates it")
        return
    except StoreInUse:
        yield _ok("store", f"{shown} is in use by a running server; checking through its API")
        async for finding in _by_server(server_url(server, settings.port), key or os.environ.get("ONTHEDOT_KEY")):
            yield finding
        return
    except (OnTheDotError, OSError) as error:
        yield _wrong("store", f"{shown}: {error}", _advice_for(error, settings))
        return
    try:
        missing = await check_version(driver)
        if missing:
            await driver.check_room()
            names = ", ".join(migration.name for migration in missing)
            yield _warning(
                "store", f"{shown} has pending migrations: {names}", "run `onthedot migrate`, or start `onthedot serve`"
            )
            return
        store = Store(driver)
        yield _ok("store", f"{shown} is reachable, schema up to date")
        yield await _durability(store, settings)
        if (failover := await _failover(store)) is not None:
            yield failover
        yield await _clocks(store)
        async for finding in _floors(store):
            yield finding
        yield _dead_letters(await store.count_dead())
        async for finding in _cluster(store, settings):
            yield finding
    except OnTheDotError as error:
        yield _wrong("store", f"{shown}: {error}", _advice_for(error, settings))
    finally:
        await driver.close()


def _advice_for(error: Exception, settings: Settings) -> str:
    if isinstance(error, StoreUnavailable) and not settings.is_sqlite:
        return "is PostgreSQL running, and are the host, port, user and database in STORE correct?"
    if settings.is_sqlite:
        return "check that this user can write to the file and its directory"
    return "see the message above"


async def _durability(store: Store, settings: Settings) -> Finding:
    """Acknowledged writes must survive a power failure, which depends on two settings of the database."""
    durability = await store.durability()
    if settings.is_sqlite:
        if durability.safe:
            return _ok("fsync", "SQLite synchronous FULL")
        return _wrong("fsync", "SQLite synchronous is below FULL", "please report this as a bug")
    if durability.safe:
        return _ok("fsync", durability.found)
    return _wrong("fsync", durability.found, "turn both on; otherwise a crash can lose acknowledged jobs")


async def _failover(store: Store) -> Finding | None:
    """Whether the store is now on another PostgreSQL instance, or on another timeline of the same one."""
    last = await store.last_failover()
    if last is None:
        return None
    since = await store.now() - last.changed_at
    found = f"{ago(since)} ago, from {last.before} to {last.after}"
    if since > DAY:
        return _ok("failover", f"last failover {found}")
    return _warning(
        "failover",
        f"the database failed over or was restored {found}; new IDs continue after a gap",
        "unless replication is synchronous, the last acknowledged writes may be lost and at-most-once runs may have"
        " been repeated: compare `onthedot runs list` with the records of your receivers",
    )


def _dead_letters(count: int) -> Finding:
    if not count:
        return _ok("dead", "no dead letters")
    letters = "1 dead letter" if count == 1 else f"{count:,} dead letters"
    return _warning(
        "dead", letters, "see the reasons with `onthedot dead list`; fix them, then run `onthedot dead redrive`"
    )


async def _clocks(store: Store) -> Finding:
    clock = SystemClock()
    before = clock.now_ms()
    there = await store.now()
    apart = there - (before + clock.now_ms()) // 2
    found = f"the database clock is {ago(abs(apart))} {'ahead of' if apart >= 0 else 'behind'} this machine"
    if abs(apart) > CLOCKS_APART:
        return _warning("clock", found, "runs fire by the database clock; synchronize this machine with NTP")
    return _ok("clock", found)


async def _floors(store: Store) -> AsyncIterator[Finding]:
    """Jobs whose next run was moved into the future by a clock that was ahead do not fire until then."""
    ahead = await store.floors_ahead(MOST_NAMED + 1)
    if ahead:
        named = ", ".join(map(str, ahead[:MOST_NAMED])) + (", …" if len(ahead) > MOST_NAMED else "")
        found = f"the database clock was ahead, so jobs {named} were moved into the future and do not fire until then"
        yield _wrong("clock", found, "a running node repairs them within seconds; look for floor.repaired in its log")


async def _cluster(store: Store, settings: Settings) -> AsyncIterator[Finding]:
    nodes = await store.list_nodes()
    alive = [node for node in nodes if node.state == "alive" and "executor" in node.roles]
    lost = [node for node in nodes if node.state == "lost"]
    backlog = await store.backlog()
    if alive:
        yield _ok("nodes", f"{len(alive)} alive: {', '.join(node.name for node in alive)}")
    else:
        yield _warning("nodes", "no nodes are alive, so nothing fires", "start one with `onthedot serve`")
    if lost:
        names = ", ".join(f"{node.name} ({node.pid})" for node in lost)
        yield _warning("lost", f"{len(lost)} nodes lost: {names}", "other nodes took over their runs; check their logs")
    waits = f"{backlog.due} runs due, {backlog.running} running"
    if alive and (backlog.oldest_ms or 0) > 60_000:
        yield _warning(
            "backlog",
            f"{waits}; the oldest has waited {ago(backlog.oldest_ms or 0)}",
            "add nodes, or raise CONCURRENCY",
        )
    else:
        yield _ok("backlog", waits)
    for offer, count in sorted(backlog.unoffered.items()):
        yield _wrong("unoffered", f"{count} due runs need {offer}, which no live node provides", _how_to_offer(offer))


def _how_to_offer(offer: str) -> str:
    kind, _, name = offer.partition(":")
    spec = find_spec(kind)
    return f"install the plug-in for {kind} targets on a node" if spec is None else spec.how_to_offer(name)


async def _by_server(url: str, key: str | None) -> AsyncIterator[Finding]:
    async with AsyncClient(url, key, tries=2) as client:
        try:
            health = await client.health()
            yield _ok("server", f"{url} is up: status {health.get('status')}, version {health.get('version')}")
            nodes = await client.list_nodes()
            dead = int((await client.stats())["dead"])
        except OnTheDotError as error:
            yield _warning("server", f"{url}: {error}", "check --url, and pass --key if the server requires one")
            return
        async for finding in _readiness(client):
            yield finding
        lost = [node.name for node in nodes if node.state == "lost"]
        alive = [node.name for node in nodes if node.state == "alive"]
        yield _ok("nodes", f"{len(alive)} alive{f', lost: {lost}' if lost else ''}")
        yield _dead_letters(dead)


async def _readiness(client: AsyncClient) -> AsyncIterator[Finding]:
    try:
        clock = (await client.ready()).get("clock")
    except OnTheDotError as error:
        yield _warning("server", f"not ready: {error}", "check the server log")
        return
    if clock is not None:
        yield _warning("clock", f"machine clock: {clock}", "check NTP; runs that fired early are not undone")


def _ok(subject: str, found: str) -> Finding:
    return Finding(state="ok", subject=subject, found=found)


def _warning(subject: str, found: str, advice: str) -> Finding:
    return Finding(state="warning", subject=subject, found=found, advice=advice)


def _wrong(subject: str, found: str, advice: str) -> Finding:
    return Finding(state="wrong", subject=subject, found=found, advice=advice)
