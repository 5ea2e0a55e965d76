"""Writes what was imported as a jobs file: YAML with comments on what was not carried over, or JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from onthedot.importers.findings import ImportedJobs, NotCarriedOver
from onthedot.telemetry.plain import plain
from onthedot.version import __version__

__all__ = ["as_json", "as_yaml", "told"]

WIDTH = 110


class _Dumper(yaml.SafeDumper):
    """Strings that look like a date or a number stay strings; the same list twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def as_json(found: ImportedJobs) -> str:
    return msgspec.json.format(msgspec.json.encode(_document(found)), indent=2).decode() + "\n"


def as_yaml(found: ImportedJobs) -> str:
    parts = [*_header(found)]
    if found.commands:
        parts.append(_dumped({"commands": found.commands}))
    if not found.jobs:
        parts.append("jobs: []\n")
        return "\n".join(parts)
    parts.append("jobs:")
    for job in found.jobs:
        own = [lost for lost in found.not_carried_over if lost.key == job["key"]]
        comments = "".join(textwrap.indent(_comment(told(lost)), "  ") for lost in own)
        parts.append(comments + textwrap.indent(_dumped([job]), "  "))
    return "\n".join(parts)


def told(lost: NotCarriedOver) -> str:
    return plain(f"not carried over: {lost.item}: {lost.what}: {lost.reason}")


def _document(found: ImportedJobs) -> dict[str, Any]:
    return {**({"commands": found.commands} if found.commands else {}), "jobs": found.jobs}


def _header(found: ImportedJobs) -> Iterator[str]:
    lines = [f"Imported from {found.kind} {found.origin} by onthedot {__version__}."]
    lines += [f"Needs: {need}" for need in found.needs]
    lines += [told(lost) for lost in found.not_carried_over if lost.key is None]
    yield "".join(map(_comment, lines))


def _comment(text: str) -> str:
    lines = textwrap.wrap(plain(text), WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
    return "".join(f"# {line}\n" if place == 0 else f"#   {line}\n" for place, line in enumerate(lines))


def _dumped(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH)
