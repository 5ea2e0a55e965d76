"""The checks of `onthedot doctor`. Each check yields findings; a check that fails is itself a finding."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import msgspec

from onthedot.cli.findings import Finding, ok, warning, wrong
from onthedot.cli.store_diagnosis import examine_store
from onthedot.descriptors import allowed, for_sending
from onthedot.errors import OnTheDotError, SettingsError
from onthedot.intake import examine_intakes
from onthedot.launcher.launch import jobs_file_of
from onthedot.launcher.remarks import failing
from onthedot.main import targets_of
from onthedot.objects import open_objects
from onthedot.settings import Settings, load_settings
from onthedot.store.sqlite.driver import SQLITE_VERSION
from onthedot.targets import build_targets
from onthedot.timing.zones import zone_data
from onthedot.version import __version__

__all__ = ["examine"]

LITTLE_DISK = 1 << 30
NO_DISK = 100 << 20


async def examine(store: str | None, file: str | None, server: str | None, key: str | None) -> list[Finding]:
    try:
        settings = load_settings({"store": store}, file=file)
    except SettingsError as error:
        return [wrong("settings", str(error).replace("\n", "; "), "fix the settings first; the other checks need them")]
    objects = _object_store(settings)
    if objects:  # the other checks need one that can be opened
        settings = msgspec.structs.replace(settings, object_store=Settings().object_store)
    findings = [
        _versions(),
        *objects,
        *_plugins(settings),
        _settings(settings),
        *_jobs_file(settings),
        *_disk(settings),
        _descriptors(settings),
    ]
    findings.extend(
        ok(each.subject, each.found)
        if each.advice is None
        else (wrong if each.is_error else warning)(each.subject, each.found, each.advice)
        for each in await build_targets(settings).diagnose()
    )
    findings.extend(
        ok("intake", each.found) if each.advice is None else wrong("intake", each.found, each.advice)
        for each in (await examine_intakes(settings) if settings.intake else ())
    )
    findings.extend([finding async for finding in examine_store(settings, server, key)])
    return findings


def _versions() -> Finding:
    found = f"onthedot {__version__}, Python {platform.python_version()}, SQLite {SQLITE_VERSION}"
    return ok("versions", f"{found}, time zones {zone_data()}")


def _object_store(settings: Settings) -> list[Finding]:
    try:
        open_objects(settings.object_store)
    except SettingsError as error:
        return [wrong("objects", str(error), "install it, or correct OBJECT_STORE; `onthedot serve` does not start")]
    return []


def _plugins(settings: Settings) -> list[Finding]:
    """Kinds of target that plug-ins add, made with their settings as a node makes them."""
    targets = build_targets(settings)
    findings = [
        wrong("plug-in", f"{name}: {why}", f"correct [targets.{name}] in the settings, or update or uninstall it")
        for name, why in targets.broken.items()
    ]
    return [ok("plug-ins", ", ".join(targets.plugins)), *findings] if targets.plugins else findings


def _settings(settings: Settings) -> Finding:
    given = ", ".join(sorted(settings.given)) or "all defaults"
    return ok("settings", given)


def _jobs_file(settings: Settings) -> list[Finding]:
    try:
        jobs = jobs_file_of(settings)
    except OnTheDotError as error:
        return [wrong("jobs file", str(error), "fix the file; it is not applied until it is valid")]
    if jobs is None:
        return []
    found = ok("jobs file", f"{settings.jobs_file_path}: {len(jobs.specs)} job{'s' if len(jobs.specs) != 1 else ''}")
    advice = "correct the name, or install it on this node; modules of functions may also be next to the jobs file"
    return [
        found,
        *(wrong("jobs file", remark, advice) for remark in failing(jobs, targets_of(settings, jobs).problem)),
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
            findings.append(wrong("disk", found, "free up disk space; without it nothing can be recorded"))
        elif free < LITTLE_DISK:
            findings.append(warning("disk", found, "free up disk space, or lower RETENTION"))
        else:
            findings.append(ok("disk", found))
    return findings


def _descriptors(settings: Settings) -> Finding:
    """The limit of open files for a node started from the same environment as this command."""
    most = allowed()
    sending = for_sending(most, settings.function_processes) or settings.concurrency
    if sending >= settings.concurrency:
        return ok("descriptors", f"limit of {most} open files and sockets")
    found = f"limit of {most} open files and sockets allows {sending} concurrent webhooks, but CONCURRENCY is "
    advice = "raise the limit (`ulimit -Hn`, LimitNOFILE= in systemd, --ulimit nofile in Docker), or lower CONCURRENCY"
    return warning("descriptors", f"{found}{settings.concurrency}", advice)
