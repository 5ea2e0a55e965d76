"""Loads a module of the user, by file or by name: what is configured in Python has no other description."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from onthedot.errors import Unreadable

__all__ = ["PythonSource", "json_problem", "load_python"]


class PythonSource(msgspec.Struct, frozen=True):
    module: ModuleType
    chosen: Any = None  # the object named after the colon


def load_python(reference: str) -> PythonSource:
    """`file.py`, `package.module`, or one of them with `:name`. Runs the module's code. Raises Unreadable."""
    place, _, name = reference.rpartition(":") if ":" in reference[2:] else (reference, "", "")
    module = _module(place)
    chosen: Any = module
    for part in name.split(".") if name else ():
        if not hasattr(chosen, part):
            raise Unreadable(f"{reference}: {place} has no {name!r}")
        chosen = getattr(chosen, part)
    return PythonSource(module, None if chosen is module else chosen)


def _module(place: str) -> ModuleType:
    path = Path(place)
    by_file = path.suffix == ".py"
    if by_file and not path.is_file():
        raise Unreadable(f"{place}: no such file")
    if not by_file and (path.is_dir() or not all(part.isidentifier() for part in place.split("."))):
        raise Unreadable(f"{place}: not a Python file, nor the name of a module")
    sys.path.insert(0, str(path.resolve().parent if by_file else Path.cwd()))
    try:
        return _executed(path) if by_file else importlib.import_module(place)
    except ImportError as error:
        install = f" (install {error.name!r} where onthedot is installed)" if error.name else ""
        raise Unreadable(f"{place}: can't be imported: {error}{install}") from error
    except Exception as error:
        raise Unreadable(f"{place}: failed with {type(error).__name__}: {error}") from error


def _executed(path: Path) -> ModuleType:
    """The file as the module of its name, so that its functions can be found again by it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def json_problem(value: Any) -> str | None:
    """Why a value of Python can't be kept in a job, or None."""
    try:
        again = msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        return f"not JSON: {error}"
    same = again == value or again == [*value] if isinstance(value, tuple) else again == value
    return None if same else f"{value!r} can't be written as JSON"[:300]
