"""Output of commands: tables that fit the terminal, JSON for programs, relative times."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, TextIO

from onthedot.clock import SystemClock
from onthedot.model.duration import DAY, HOUR, MINUTE, SECOND
from onthedot.model.instant import parse_rfc3339
from onthedot.telemetry.plain import plain, plain_json

__all__ = ["ago", "detail", "facts", "print_json", "say", "table", "when"]

WIDTH = 80
NARROW = 10
GAP = "  "


def say(text: str, *, to: TextIO | None = None) -> None:
    """Print text from any source, with control characters escaped."""
    _write(plain(text), to)


def _write(text: str, to: TextIO | None = None) -> None:
    """Print text that may contain our own colour codes."""
    (to or sys.stdout).write(text + "\n")


def print_json(value: Any) -> None:
    """One JSON document, indented; the same fields as the API's."""
    import msgspec

    from onthedot.model.decoding import encode_json

    _write(plain_json(msgspec.json.format(encode_json(value), indent=2).decode()))


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    empty: str,
    wide: Sequence[str] = (),
    whole: str | None = None,
) -> None:
    """Print a table. `wide` columns and the column `whole` are wrapped when the line gets too long: nothing is cut.
    Numbers, states and IDs always keep their width. Where the table does not fit even so, each row is printed as
    facts; but a file or a pipe, which has no width of its own, gets long lines."""
    cells = [[_cell(value).replace("\n", " ") for value in row] for row in rows]
    if not cells:
        say(empty)
        return
    heads = [name.upper() for name in columns]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    flexible = [place for place, name in enumerate(columns) if name in wide or name == whole]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - line_width()
    while excess > 0 and (place := max(flexible, key=lambda place: widths[place], default=-1)) >= 0:
        if widths[place] <= NARROW:
            break
        widths[place] -= 1
        excess -= 1
    if excess > 0 and _width_is_known():
        _records(columns, cells)
        return
    for row in ([heads], cells):
        style = (lambda _: "bold") if row[0] is heads else (lambda text: _STYLES.get(text, ""))
        for each in row:
            for line in _lines(each, widths):
                _write(_line(line, widths, style))


def _records(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for number, row in enumerate(rows):
        if number:
            _write("")
        facts(zip(columns, row, strict=True))


def _lines(row: Sequence[str], widths: Sequence[int]) -> Iterator[Sequence[str]]:
    wrapped = [_wrapped(text, width) for text, width in zip(row, widths, strict=True)]
    return zip_longest(*wrapped, fillvalue="")


def _wrapped(text: str, width: int) -> list[str]:
    """Words stay whole where they can; nothing is lost."""
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _width_is_known() -> bool:
    return sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()


def line_width() -> int:
    """COLUMNS if set, else the width of the terminal; 80 for a file or a pipe."""
    return shutil.get_terminal_size((WIDTH, 24)).columns


def _line(cells: Sequence[str], widths: Sequence[int], style: Callable[[str], str]) -> str:
    coloured = sys.stdout.isatty()
    parts = []
    for text, width in zip(cells, widths, strict=True):
        code = _CODES.get(style(text), "") if coloured else ""
        parts.append((f"\033[{code}m{text}\033[0m" if code else text) + " " * (width - len(text)))
    return GAP.join(parts).rstrip()


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """Print the fields of one object, one per line, wrapped to the width of the terminal."""
    known = [(name, _cell(value)) for name, value in pairs if value is not None and _cell(value) != ""]
    width = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        first, *more = (part for line in value.split("\n") for part in _fitting(line, width + len(GAP)))
        say(f"{name:<{width}}{GAP}{first}")
        for line in more:
            say(f"{'':<{width}}{GAP}{line}")


def detail(text: str) -> None:
    """Print a line that belongs to the facts above it, wrapped like them."""
    first, *more = _fitting(_cell(text).replace("\n", " "), 2 * len(GAP))
    say(f"{GAP}{first}")
    for line in more:
        say(f"{GAP * 2}{line}")


def _fitting(text: str, indent: int) -> list[str]:
    return _wrapped(text, max(NARROW, line_width() - indent)) if _width_is_known() else [text]


_STYLES = {
    "active": "green",
    "alive": "green",
    "DONE": "green",
    "EXECUTING": "cyan",
    "paused": "yellow",
    "SKIPPED": "yellow",
    "draining": "yellow",
    "quarantined": "red",
    "FAILED": "red",
    "lost": "red",
    "ended": "dim",
    "CANCELLED": "dim",
}


_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def _cell(value: object) -> str:
    return "" if value is None else "\n".join(plain(str(value)).splitlines())


def when(instant: str | None, now: int | None = None) -> str:
    """An instant relative to now: "in 5m", "3h ago"."""
    ms = parse_rfc3339(instant) if instant is not None else None
    if ms is None:
        return ""
    distance = ms - (SystemClock().now_ms() if now is None else now)
    return f"in {ago(distance)}" if distance >= 0 else f"{ago(-distance)} ago"


def ago(ms: int) -> str:
    """The two largest units: "2d 3h", "5m 20s", "950ms"."""
    if ms < SECOND:
        return f"{ms}ms"
    parts: list[str] = []
    for unit, size in (("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND)):
        amount, ms = divmod(ms, size)
        if amount or parts:
            parts.append(f"{amount}{unit}")
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if not part.startswith("0"))
