"""Large JSON, item by item: each step is short, so that nobody has to wait for all of it. Pure.

A parser takes sixteen megabytes in one call, and while that lasts nothing else runs in the process, whichever thread it
is in. So a list is cut into its items first, looking no further than it must at a time; each item is then decoded by
itself, where what is wrong with it is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from onthedot.errors import TooLarge, Unreadable

__all__ = [
    "ITEM_BYTES",
    "MOST_VALUES",
    "WINDOW",
    "after_list",
    "array_items",
    "check_values",
    "line_items",
    "object_parts",
    "refuse_depth",
]

MOST_VALUES = 20_000
"""Numbers, texts, lists and objects of one job, wherever they stand in it."""
ITEM_BYTES = 1024 * 1024
DEEPEST = 500
WINDOW = 64 * 1024  # searched in one call
_STRUCTURE = re.compile(rb'["{}\[\]]')
_SOLID = re.compile(rb"[^ \t\r\n]")
_SCALAR_END = re.compile(rb"[ \t\r\n,\]}]")
_QUOTE, _COMMA, _COLON, _BACKSLASH = b'",:\\'
_OPENING, _CLOSING = b"[{", b"]}"


def check_values(raw: bytes) -> None:
    """TooLarge, if it is longer, or has more values, than any job. Texts may hold as many commas as they like."""
    if len(raw) > ITEM_BYTES:
        raise _item_too_large(ITEM_BYTES)
    if _count(raw) > MOST_VALUES and _has_more_values(raw, MOST_VALUES):
        refuse_depth(raw)
        raise TooLarge(f"more than {MOST_VALUES} values, the maximum for one job")


def _has_more_values(raw: bytes, most: int) -> bool:
    """Outside of texts. In windows, because a megabyte of quotes or backslashes in one call holds every thread for as
    long as it takes."""
    found, start, in_text = 0, 0, False
    while start < len(raw) and found <= most:
        window = raw[start : start + WINDOW]
        backslashes = len(window) - len(window.rstrip(b"\\"))
        if backslashes % 2 and start + WINDOW < len(raw):  # what the last one escapes is in the next window
            window = window[:-1]
        parts = window.replace(rb"\\", b"").replace(rb"\"", b"").split(b'"')
        found += sum(map(_count, parts[in_text::2]))
        in_text ^= len(parts) % 2 == 0
        start += len(window)
    return found > most


def refuse_depth(raw: bytes) -> None:
    """What is nested for ever is no JSON that anybody could read, however many values it has."""
    depth = 0
    for found in _STRUCTURE.finditer(raw, 0, WINDOW):
        if raw[found.start()] != _QUOTE:
            depth += 1 if raw[found.start()] in _OPENING else -1
        if depth > DEEPEST:
            raise _too_deep()


def _count(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")


def array_items(raw: bytes, start: int = 0, ended: Callable[[int], object] = lambda _: None) -> Iterator[bytes]:
    """The items of the list that begins at `start`, as they are written; `ended` is told where it does."""
    position = _solid(raw, start)
    if raw[position] != _OPENING[0]:
        raise Unreadable("the body is not valid JSON: expected a list")
    position = _solid(raw, position + 1)
    if raw[position] == _CLOSING[0]:
        ended(position + 1)
        return
    while True:
        end = _value_end(raw, position, len(raw))
        yield raw[position:end]
        position = _solid(raw, end)
        if raw[position] == _CLOSING[0]:
            ended(position + 1)
            return
        if raw[position] != _COMMA:
            raise _broken(position)
        position = _solid(raw, position + 1)


def object_parts(raw: bytes, listed: bytes, field_bytes: int = WINDOW) -> Iterator[tuple[bytes | None, bytes]]:
    """(name, value) of the object, as they are written; the list called `listed` is empty there, and each of its items
    comes after it, without a name. `field_bytes`: how long a value beside that list may be."""
    position = _solid(raw, 0)
    if raw[position] != _OPENING[1]:
        raise Unreadable("the body is not valid JSON: expected an object")
    position = _solid(raw, position + 1)
    if raw[position] != _CLOSING[1]:
        while True:
            if raw[position] != _QUOTE:
                raise _broken(position)
            end = _text_end(raw, position + 1)
            name = raw[position:end]
            position = _solid(raw, end)
            if raw[position] != _COLON:
                raise _broken(position)
            position = _solid(raw, position + 1)
            if name == listed and raw[position] == _OPENING[0]:
                ends: list[int] = []
                yield name, b"[]"
                for item in array_items(raw, position, ends.append):
                    yield None, item
                position = ends[0]
            else:
                end = _value_end(raw, position, field_bytes)
                yield name, raw[position:end]
                position = end
            position = _solid(raw, position)
            if raw[position] == _CLOSING[1]:
                break
            if raw[position] != _COMMA:
                raise _broken(position)
            position = _solid(raw, position + 1)
    if _next_solid(raw, position + 1) is not None:
        raise _broken(position + 1)


def after_list(raw: bytes, end: int) -> None:
    """Nothing may follow the list."""
    if _next_solid(raw, end) is not None:
        raise _broken(end)


def line_items(raw: bytes) -> Iterator[bytes]:
    """The lines that are not blank."""
    start = _next_solid(raw, 0)
    while start is not None:
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        yield raw[start:end]
        start = _next_solid(raw, end)


def _next_solid(raw: bytes, position: int) -> int | None:
    while position < len(raw):
        found = _SOLID.search(raw, position, position + WINDOW)
        if found is not None:
            return found.start()
        position += WINDOW
    return None


def _solid(raw: bytes, position: int) -> int:
    found = _next_solid(raw, position)
    if found is None:
        raise Unreadable("the body is not valid JSON: unexpected end of input")
    return found


def _value_end(raw: bytes, start: int, most: int) -> int:
    first = raw[start]
    if first == _QUOTE:
        end = _text_end(raw, start + 1)
    elif first in _OPENING:
        end = _container_end(raw, start, most)
    else:
        found = _SCALAR_END.search(raw, start, start + WINDOW)
        if found is None or found.start() == start:
            raise _broken(start)
        end = found.start()
    if end - start > most:
        raise _item_too_large(most)
    return end


def _container_end(raw: bytes, start: int, most: int) -> int:
    position, depth = start + 1, 1
    while depth:
        if position - start > most:
            raise _item_too_large(most)
        found = _STRUCTURE.search(raw, position, position + WINDOW)
        if found is None:
            position += WINDOW
            if position >= len(raw):
                raise Unreadable("the body is not valid JSON: unexpected end of input")
            continue
        position = found.end()
        character = raw[position - 1]
        if character == _QUOTE:
            position = _text_end(raw, position)
        else:
            depth += 1 if character in _OPENING else -1
            if depth > DEEPEST:
                raise _too_deep()
    return position


def _text_end(raw: bytes, position: int) -> int:
    """After the quote that closes the text: one that no odd number of backslashes stands before."""
    start = position
    while True:
        end = raw.find(b'"', position)
        if end < 0:
            raise Unreadable("the body is not valid JSON: unterminated string")
        before = end
        while before > start and raw[before - 1] == _BACKSLASH:
            before -= 1
        if (end - before) % 2 == 0:
            return end + 1
        position = end + 1


def _too_deep() -> Unreadable:
    return Unreadable("the body is nested too deeply")


def _broken(position: int) -> Unreadable:
    return Unreadable(f"the body is not valid JSON: unexpected character at byte {position}")


def _item_too_large(most: int) -> TooLarge:
    return TooLarge(f"an item is larger than {most // 1024} KiB, the maximum per item")
