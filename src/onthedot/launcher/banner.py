"""The startup banner: URL, store, jobs file, and what to try first."""

from __future__ import annotations

import re
import sys

import msgspec

from onthedot.jobsfile import JobsFile
from onthedot.settings import Settings, address
from onthedot.store import SyncReport
from onthedot.targets import Targets
from onthedot.telemetry.plain import plain_line
from onthedot.version import __version__

__all__ = ["banner", "without_password"]


def banner(
    settings: Settings,
    jobs: JobsFile | None,
    synced: SyncReport | None,
    *,
    port: int | None,
    is_open: bool = True,
    keyless: bool = False,
    targets: Targets | None = None,
    colour: bool | None = None,
) -> str:
    bold, dim, green, plain = ("\033[1m", "\033[2m", "\033[32m", "\033[0m")
    if not (sys.stdout.isatty() if colour is None else colour):
        bold = dim = green = plain = ""
    rows = [("store", without_password(settings.store))]
    if jobs is not None:
        rows.append(("jobs", _loaded(jobs, synced)))
    if "executor" in settings.roles:
        rows.append(("logs", f"{settings.logs_base_directory}/"))
    else:
        rows.append(("roles", "api only; other nodes execute runs"))
    if targets is not None:
        rows.extend(_plugins(targets))
    if settings.workers > 1:
        rows.append(("workers", f"{settings.workers} processes"))
    if settings.metrics_port is not None:
        where = address(settings.host, settings.metrics_port)
        more = f" and the {settings.workers - 1} ports after it" if settings.workers > 1 else ""
        rows.append(("metrics", f"http://{where}/metrics{more}, without a key"))
    if port is not None:
        url = f"{settings.scheme}://{address(settings.host, port)}"
        title = f"{green}●{plain} {bold}{url}{plain}   {dim}dashboard, API (/docs), metrics{plain}"
        if is_open:
            here = f" --url {url}" if url != "http://127.0.0.1:8000" else ""
            rows.append(("try it", "onthedot echo                                  # in another terminal"))
            rows.append(("", f"onthedot timer 5s http://127.0.0.1:5003/{here}"))
            rows.append(("access", "open to everybody on this machine until you create the first API key:"))
            rows.append(("", msgspec.structs.replace(settings, port=port).key_command))
        elif keyless:
            how = "Stop, create one, and start again" if settings.is_sqlite else "Create one"
            rows.append(("access", f"requires an API key, and none exists. {how}:"))
            rows.append(("", settings.first_key_command))
    else:
        title = f"{green}●{plain} executor only, no API"
    rows.append(("stop", "Ctrl-C; press it again to stop immediately"))
    lines = [f"{dim}{name:<8}{plain}{plain_line(value)}" for name, value in rows]
    return "\n".join(["", f"{bold}On the Dot{plain} {dim}{__version__}{plain}  {title}", "", *lines, "", ""])


def without_password(url: str) -> str:
    return re.sub(r"([?&]password=)[^&]*", r"\1•••", re.sub(r"(://[^:/@]*):[^@/]*@", r"\1:•••@", url))


def _plugins(targets: Targets) -> list[tuple[str, str]]:
    told = [", ".join(targets.plugins)] if targets.plugins else []
    told += [f"{name} can't be used: {why}" for name, why in targets.broken.items()]
    return [("" if number else "plugins", line) for number, line in enumerate(told)]


def _loaded(jobs: JobsFile, synced: SyncReport | None) -> str:
    text = f"{len(jobs.specs)} from {jobs.source}"
    if synced is None:
        return text
    told = [("new", synced.created), ("changed", synced.updated), ("removed", synced.removed)]
    told += [("adopted", synced.adopted), ("not in the file, kept", synced.kept), ("of another source", [*synced.held])]
    changes = ", ".join(f"{len(keys)} {word}" for word, keys in told if keys)
    return f"{text} ({changes})" if changes else f"{text} (unchanged)"
