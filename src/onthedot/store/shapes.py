"""Rows with names. A shape is a struct whose fields are columns, declared once for both databases and for Python.

SQL names the shape, not its columns one by one, so a column that is added to a shape is in every statement:

    {columns NewRun}       id, tenant, job_id, …
    {columns NewRun r}     r.id, r.tenant, r.job_id, …
    {columns NewRun r n=0} the same, but of `n` what is said here
    {rows NewRun}          the rows of a `Rows` argument, as a table `x` with these columns ({rows NewRun place}: on
                           PostgreSQL also with the number of each)
    {values NewRun}        the columns of one row that is an argument itself, as parameters
    {NewRun.slot}          one of those parameters

Such an argument is always the last one of its statement: its parameters follow those that the statement numbers itself,
so a column more moves no other. On PostgreSQL rows are one array per column, on SQLite one JSON text.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec

__all__ = ["Rows", "Shape", "fill_in", "spread"]


class Shape(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row that goes to the database, or comes from it by the thousand. Each subclass is known by its name."""


spread: Callable[[Shape], tuple[Any, ...]] = msgspec.structs.astuple
"""The values of a row, in the order in which it declares them."""


class Rows:
    """Many rows of one shape as one argument: one round trip for a whole group, however large."""

    __slots__ = ("rows",)

    def __init__(self, rows: Sequence[Shape]) -> None:
        if not rows:
            raise ValueError("Rows without rows: the statement has nothing to do")
        self.rows = rows

    def columns(self) -> list[list[Any]]:
        """One list for each column."""
        return list(map(list, zip(*map(spread, self.rows), strict=True)))


_NONE = type(None)
_TYPES = {str: "text", int: "bigint", bool: "boolean"}
_PLACE = re.compile(
    r"\{(columns|rows|values) ([A-Z]\w+)(?: (\w+))?(?: (\w+)=([^}]+))?\}"  # {columns NewRun r n=0}
    r"|\{([A-Z][a-z]\w*)\.(\w+)\}"  # {NewRun.slot}
)
_PARAMETER = {"sqlite": re.compile(r"\?(\d+)"), "postgres": re.compile(r"\$(\d+)")}


def _below(shape: type[Shape]) -> Iterator[type[Shape]]:
    for each in shape.__subclasses__():
        yield each
        yield from _below(each)


def fill_in(text: str, dialect: str) -> str:
    """The statement with its shapes' columns and parameters written out."""
    if not _PLACE.search(text):
        return text
    shapes = {shape.__name__: shape for shape in _below(Shape)}
    first = max((int(number) for number in _PARAMETER[dialect].findall(text)), default=0) + 1

    def write(match: re.Match[str]) -> str:
        what, shape, other, instead, value, owner, field = match.groups()
        types = _columns(shapes[shape or owner])
        if what == "columns":
            columns = {column: f"{other}.{column}" if other else column for column in types}
            if instead is not None:
                columns[instead] = f"{value} AS {instead}"
            return ", ".join(columns.values())
        if what == "rows":
            return _rows(dialect, types, first, other)
        parameters = _parameters(dialect, types, first)
        return parameters[field] if field else ", ".join(parameters.values())

    return _PLACE.sub(write, text)


@cache
def _columns(shape: type[Shape]) -> dict[str, str]:
    """Its columns with their types on PostgreSQL."""
    return {name: _type(hint) for name, hint in typing.get_type_hints(shape).items()}


def _type(hint: Any) -> str:
    """Of `int | None` that of int, of a Literal that of its words."""
    if hint in _TYPES:
        return _TYPES[hint]
    (kind,) = {_type(type(part) if isinstance(part, str) else part) for part in typing.get_args(hint) if part != _NONE}
    return kind


def _rows(dialect: str, types: dict[str, str], first: int, place: str | None) -> str:
    """place: also the number of each row, under this name."""
    if dialect == "postgres":
        arrays = ", ".join(f"${first + nth}::{kind}[]" for nth, kind in enumerate(types.values()))
        names = ", ".join([*types, place] if place else types)
        return f"unnest({arrays}) {'WITH ORDINALITY ' if place else ''}AS x ({names})"
    values = ", ".join(f"value ->> {nth} AS {name}" for nth, name in enumerate(types))
    return f"(SELECT {values} FROM json_each(?{first})) AS x"  # noqa: S608  # names of fields, and a number


def _parameters(dialect: str, types: dict[str, str], first: int) -> dict[str, str]:
    mark, cast = ("$", "::{}") if dialect == "postgres" else ("?", "")
    return {name: f"{mark}{first + nth}{cast.format(kind)}" for nth, (name, kind) in enumerate(types.items())}
