"""Is there what a target names? Seen from outside: nothing of a user's module is imported or run to find out.

What can't be known like that (a module that makes its names when it is imported) is taken to be there.
"""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from onthedot.settings import CommandSetting

__all__ = ["function_problem", "program_problem"]

LARGEST = 2 << 20
_MAKES_NAMES = {"exec", "globals", "setattr", "vars", "__import__"}


def function_problem(function: str, import_paths: Sequence[str]) -> str | None:
    """What is wrong with "package.module:function", or None."""
    module, _, name = function.partition(":")
    importlib.invalidate_caches()
    found: ModuleSpec | None = None
    places: Sequence[str] | None = [*import_paths, *sys.path]
    whole = ""
    for part in module.split("."):
        whole = f"{whole}.{part}" if whole else part
        found = None if places is None else PathFinder.find_spec(part, places)
        if found is None:
            return None if whole in sys.builtin_module_names else _nowhere(whole, import_paths)
        if found.origin is None:  # a folder without __init__.py: it knows its place only while it is being imported
            places = [str(Path(place, part)) for place in places or () if Path(place, part).is_dir()]
        else:
            places = found.submodule_search_locations
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return None  # compiled, or a package without a file of its own
    return _defined(Path(found.origin), name)


def _nowhere(module: str, import_paths: Sequence[str]) -> str:
    parent, _, name = module.rpartition(".")
    if parent:
        return f"module {name!r} not found in {parent!r}"
    looked = ", ".join(dict.fromkeys(import_paths))
    return f"module {module!r} not found (searched {looked} and the installed packages)"


def _defined(file: Path, name: str) -> str | None:
    try:
        status = file.stat()
        if status.st_size > LARGEST:
            return None
        names = _names(file, status.st_mtime_ns, status.st_size)
    except OSError as error:
        return f"can't read {file}: {error.strerror}"
    except SyntaxError as error:
        return f"{file}:{error.lineno}: {error.msg}"
    except (ValueError, RecursionError):
        return None
    return None if names is None or name in names else f"{file} does not define a function {name!r}"


@lru_cache(maxsize=256)
def _names(file: Path, modified: int, size: int) -> frozenset[str] | None:
    """The names that a module has once it is imported; None: only importing it would tell."""
    found: set[str] = set()
    for node in _at_the_top(ast.parse(file.read_bytes(), str(file)).body):
        match node:
            case ast.FunctionDef(name="__getattr__") | ast.ImportFrom(names=[ast.alias(name="*")]):
                return None
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                found.update(alias.asname or alias.name.partition(".")[0] for alias in aliases)
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.Call(func=ast.Name(id=called)) if called in _MAKES_NAMES:
                return None
    return frozenset(found)


def _at_the_top(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All of a module but the insides of its functions and classes."""
    for node in nodes:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from _at_the_top(ast.iter_child_nodes(node))


def program_problem(command: CommandSetting) -> str | None:
    """What is wrong with the program of a command, or None."""
    program = command.argv[0]
    folder = Path(command.folder or ".")
    if not folder.is_dir():
        return f"working directory {str(folder)!r} of {program!r} does not exist"
    if os.sep in program:
        file = folder / program
        if not file.exists():
            return f"program {program!r} not found"
        return None if os.access(file, os.X_OK) and file.is_file() else f"{program!r} is not executable"
    path = command.env.get("PATH") or os.environ.get("PATH")
    return None if shutil.which(program, path=path) else f"program {program!r} not found in PATH ({path})"
