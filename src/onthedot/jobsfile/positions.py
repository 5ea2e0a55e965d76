"""Finds the line of a field in a file, for error messages.

No parser keeps both values and positions, so the text is scanned a second time. Paths are written as in problems:
`jobs[2].key`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]  # the json module's own scanner, not in its stubs

import yaml

__all__ = ["line_of", "lines_of"]

_BLANK = re.compile(r"[\s,:]*")
_SCALAR = re.compile(r"[^\s,:\[\]{}\"]+")
_LAST = re.compile(r"(?:\.?[^.\[\]]+|\[\d+\])$")
_TOML_HEAD = re.compile(r"\s*\[\[\s*jobs\s*\]\]")
_TOML_TABLE = re.compile(r"\s*\[+\s*([^\]]*?)\s*\]")
_TOML_FIELD = re.compile(r"""\s*([A-Za-z0-9_.\-"']+)\s*=""")

Entry = tuple[str, int]


def lines_of(text: str, extension: str) -> list[Entry]:
    """(path, line) of every field in file order; duplicate fields appear twice."""
    scan = {"json": _json, "toml": _toml}.get(extension, _yaml)
    return list(scan(text))


def line_of(path: str, lines: dict[str, int]) -> int | None:
    """The line of the field, or of the nearest enclosing element in the file."""
    while path:
        if path in lines:
            return lines[path]
        shorter = _LAST.sub("", path)
        path = shorter if shorter != path else path[:-1]  # a name may contain dots and brackets
    return None


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _json(text: str) -> Iterator[Entry]:
    """Scan JSON that is known to be valid."""
    newlines = [match.start() for match in re.finditer("\n", text)]

    def line(position: int) -> int:
        return bisect_left(newlines, position) + 1

    stack: list[tuple[str, int | None]] = []  # (path of the container, next index of a list or None for an object)
    name: str | None = None
    position = 0
    while position < len(text):
        gap = _BLANK.match(text, position)
        position = gap.end() if gap else position
        if position >= len(text):
            return
        character, start = text[position], position
        if character in "]}":
            stack.pop()
            position += 1
            continue
        value: str | None = None
        if character == '"':
            value, position = scanstring(text, position + 1, True)
        elif character in "[{":
            position += 1
        else:
            scalar = _SCALAR.match(text, position)
            position = scalar.end() if scalar else position + 1
        if stack and stack[-1][1] is None and name is None:
            name = value
            yield _join(stack[-1][0], str(name)), line(start)
            continue
        path = ""
        if stack:
            container, index = stack[-1]
            path = _join(container, str(name)) if index is None else f"{container}[{index}]"
            if index is not None:
                stack[-1] = (container, index + 1)
                yield path, line(start)
        name = None
        if character in "[{":
            stack.append((path, 0 if character == "[" else None))


def _yaml(text: str) -> Iterator[Entry]:
    root = yaml.compose(text, Loader=yaml.SafeLoader)  # the number of aliases was checked when it was read
    if root is not None:
        yield from _yaml_node(root, "", frozenset())


def _yaml_node(node: yaml.Node, path: str, above: frozenset[int]) -> Iterator[Entry]:
    if id(node) in above:  # an alias to an enclosing node
        return
    above |= {id(node)}
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = _join(path, str(key.value))
            yield inner, key.start_mark.line + 1
            yield from _yaml_node(value, inner, above)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield f"{path}[{index}]", item.start_mark.line + 1
            yield from _yaml_node(item, f"{path}[{index}]", above)


def _toml(text: str) -> Iterator[Entry]:
    """The TOML parser keeps no positions, so use the `[[jobs]]` headers and the names at the start of lines."""
    index, inside = -1, ""
    for number, line in enumerate(text.splitlines(), 1):
        if _TOML_HEAD.match(line):
            index += 1
            inside = f"jobs[{index}]"
            yield inside, number
        elif table := _TOML_TABLE.match(line):
            inside = re.sub(r"^jobs\b", f"jobs[{index}]", _unquoted(table[1]))
            yield inside, number
        elif field := _TOML_FIELD.match(line):
            yield _join(inside, _unquoted(field[1])), number


def _unquoted(name: str) -> str:
    return name.replace('"', "").replace("'", "")
