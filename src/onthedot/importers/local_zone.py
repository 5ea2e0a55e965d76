"""The time zone of this machine, by its name: the zone of a crontab that names none."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from onthedot.timing.zones import is_zone

__all__ = ["local_zone"]

ZONES = "zoneinfo/"


def local_zone() -> str:
    """TZ, /etc/timezone or what /etc/localtime links to; UTC if none of them names a zone."""
    names = [os.environ.get("TZ", "").removeprefix(":")]
    with suppress(OSError, ValueError):
        names.append(Path("/etc/timezone").read_text(encoding="ascii").strip())
    names.append(str(Path("/etc/localtime").resolve()))
    for name in names:
        zone = name.rpartition(ZONES)[2]
        if is_zone(zone):
            return "UTC" if zone in ("Etc/UTC", "Etc/UCT", "UCT", "Zulu", "Etc/Zulu") else zone
    return "UTC"
