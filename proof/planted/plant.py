"""Put a bug in, and take it out again: replaced attributes, other code in a function, other text in a statement.

What is to be replaced must be there exactly once, or as often as is said. A bug that has nothing left to bite on is an
error, never a pass.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any
from unittest.mock import patch

import msgspec

from onthedot.store.queries import Queries
from proof.planted.focus import Focus

__all__ = ["Bug", "Code", "Edit", "NotPlantable", "Sql", "Swap", "code", "planted", "sql"]


class NotPlantable(LookupError):
    """The product has changed: the bug must be written anew."""


class Swap(msgspec.Struct, frozen=True):
    """Another value for an attribute: `Swap("onthedot.plan.outcome:POISON", 99)`."""

    where: str
    instead: Any


class Code(msgspec.Struct, frozen=True):
    """Other text in a function's source. Its code is replaced: whoever imported the function has the bug, too."""

    where: str
    part: str
    instead: str
    times: int = 1  # how often the part is there


class Sql(msgspec.Struct, frozen=True):
    """Other text in a statement, when it is loaded."""

    statement: str
    part: str
    instead: str
    dialect: str = "sqlite"
    times: int = 1  # how often the part is there


Edit = Swap | Code | Sql


class Bug(msgspec.Struct, frozen=True, kw_only=True):
    """faults: what the nemesis does meanwhile; None: everything. shows: the kinds of violation that count; (): any.
    focus: what users do most of all; None: everything.

    tests: not the simulation finds it but these, with `unseen`: why the simulation can't. blind: why nobody finds it.
    """

    name: str
    what: str
    edits: tuple[Edit, ...]
    faults: tuple[str, ...] | None = ()
    shows: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    minutes: float = 0.0
    focus: Focus | None = None
    tests: tuple[str, ...] = ()
    unseen: str = ""
    blind: str = ""


def code(name: str, what: str, where: str, part: str, instead: str, *, times: int = 1, **more: Any) -> Bug:
    """A bug that is one edit of one function."""
    return Bug(name=name, what=what, edits=(Code(where, part, instead, times),), **more)


def sql(name: str, what: str, statement: str, part: str, instead: str, *, times: int = 1, **more: Any) -> Bug:
    """A bug that is one edit of one statement."""
    return Bug(name=name, what=what, edits=(Sql(statement, part, instead, times=times),), **more)


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    """The bug is in."""
    with ExitStack() as stack:
        for edit in bug.edits:
            match edit:
                case Swap():
                    _swap(stack, bug, edit)
                case Code():
                    _recode(stack, bug, edit)
        statements = [edit for edit in bug.edits if isinstance(edit, Sql)]
        if statements:
            stack.enter_context(patch.object(Queries, "__init__", _loading(bug, statements)))
        yield


def _swap(stack: ExitStack, bug: Bug, edit: Swap) -> None:
    owner, name = _owner(bug, edit.where)
    if not hasattr(owner, name):
        raise NotPlantable(f"{bug.name}: there is no {edit.where} any more")
    stack.enter_context(patch.object(owner, name, edit.instead))


def _recode(stack: ExitStack, bug: Bug, edit: Code) -> None:
    owner, name = _owner(bug, edit.where)
    found = inspect.getattr_static(owner, name, None)
    function = found.fget if isinstance(found, property) else inspect.unwrap(getattr(found, "__func__", found))
    if not isinstance(function, FunctionType):
        raise NotPlantable(f"{bug.name}: {edit.where} is no function")
    lines = textwrap.dedent(inspect.getsource(function)).splitlines(keepends=True)
    while not lines[0].startswith(("def ", "async def ")):  # decorators are on the outside of it
        lines.pop(0)
    source = "".join(lines)
    changed = _compiled(bug, edit, function, _replaced(bug, edit.where, source, edit))
    before = function.__code__
    function.__code__ = changed
    stack.callback(setattr, function, "__code__", before)


def _compiled(bug: Bug, edit: Code, function: FunctionType, source: str) -> Any:
    made: dict[str, Any] = {}
    exec(compile(f"from __future__ import annotations\n{source}", f"<{bug.name}>", "exec"), function.__globals__, made)
    changed = made[function.__name__].__code__
    if changed.co_freevars != function.__code__.co_freevars:
        raise NotPlantable(f"{bug.name}: {edit.where} needs {function.__code__.co_freevars} from around it")
    return changed


def _loading(bug: Bug, edits: list[Sql]) -> Any:
    """`Queries.__init__`, and after it statements of that dialect are others. (Tests make some of their own text.)"""
    original = Queries.__init__

    def load(self: Queries, dialect: str, now: str, texts: Any = None, **more: Any) -> None:
        original(self, dialect, now, texts, **more)
        for edit in edits if texts is None else ():
            if edit.dialect == dialect:
                statements = self._statements
                if edit.statement not in statements:
                    raise NotPlantable(f"{bug.name}: there is no statement {edit.statement} any more")
                text = statements[edit.statement]
                statements[edit.statement] = _replaced(bug, edit.statement, text, edit)

    return load


def _replaced(bug: Bug, where: str, text: str, edit: Code | Sql) -> str:
    times = text.count(edit.part)
    if times != edit.times:
        raise NotPlantable(f"{bug.name}: {edit.part!r} is {times} times in {where}, must be there {edit.times} times")
    return text.replace(edit.part, edit.instead)


def _owner(bug: Bug, where: str) -> tuple[Any, str]:
    module, _, path = where.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part, None)
        if owner is None:
            raise NotPlantable(f"{bug.name}: there is no {where} any more")
    return owner, name
