"""What commands print: tables that fit a terminal, JSON for programs, times as a person says them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from onthedot.clock import SystemClock
from onthedot.model.duration import DAY, HOUR, MINUTE, SECOND
from onthedot.model.instant import parse_rfc3339

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["ago", "console", "facts", "print_json", "say", "table", "when"]

NARROWEST = 80


def console() -> Console:
    from rich.console import Console

    plain = Console(highlight=False, soft_wrap=False)
    if plain.is_terminal:
        return plain
    return Console(highlight=False, width=max(NARROWEST, plain.width))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def print_json(value: Any) -> None:
    """One JSON document, indented; the same fields as the API's."""
    import msgspec

    from onthedot.model.decoding import encode_json

    sys.stdout.write(msgspec.json.format(encode_json(value), indent=2).decode() + "\n")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str, wide: Sequence[str] = ()) -> None:
    """`wide` columns give way when the line gets too long; numbers and names stay whole."""
    from rich.table import Table
    from rich.text import Text

    listed = [list(row) for row in rows]
    if not listed:
        say(empty)
        return
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        drawn.add_column(name.upper(), overflow="ellipsis", no_wrap=True, ratio=1 if name in wide else None)
    for row in listed:
        drawn.add_row(*[Text(_cell(value), style=_STYLES.get(_cell(value), "")) for value in row])
    console().print(drawn)


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """One thing, its fields one under the other."""
    known = [(name, _cell(value)) for name, value in pairs if value is not None and _cell(value) != ""]
    width = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        first, *more = value.split("\n")
        say(f"{name:<{width}}  {first}")
        for line in more:
            say(f"{'':<{width}}  {line}")


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


def _cell(value: object) -> str:
    return "" if value is None else "\n".join(str(value).splitlines())


def when(instant: str | None, now: int | None = None) -> str:
    """ "in 5m", "3h ago": what one wants to know of an instant in a list."""
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
