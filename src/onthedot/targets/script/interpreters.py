"""Interpreters: programs that the operator lists by name, and what each needs to see in a sandbox."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

__all__ = ["Interpreter", "interpreters", "interpreters_of_image"]

SYSTEM_PYTHON = "/usr/bin/python3"
UNBUFFERED = "-u"
"""Python keeps what it prints back until it has a lot of it, unless a person reads along: a log should not wait."""


class Interpreter(msgspec.Struct, frozen=True):
    argv: tuple[str, ...]
    roots: tuple[str, ...]  # what it needs besides /usr

    @property
    def is_installed(self) -> bool:
        return os.access(self.argv[0], os.X_OK)


def interpreters(listed: Mapping[str, tuple[str, ...]]) -> dict[str, Interpreter]:
    """By name. Without a list: `python`, the one of the system, or else the one that runs the node, without its
    packages."""
    if not listed:
        program = SYSTEM_PYTHON if Path(SYSTEM_PYTHON).exists() else _own_python()
        listed = {"python": (program, UNBUFFERED)}
    return {name: Interpreter(_argv(argv), tuple(_roots(argv[0]))) for name, argv in listed.items()}


def interpreters_of_image(listed: Mapping[str, tuple[str, ...]]) -> dict[str, Interpreter]:
    """The same where scripts run in an image: its programs, of which nothing is known here."""
    listed = listed or {"python": ("python3", UNBUFFERED)}
    return {name: Interpreter(_argv(argv), ()) for name, argv in listed.items()}


def _own_python() -> str:
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def _argv(argv: tuple[str, ...]) -> tuple[str, ...]:
    """A Python without arguments of its own writes its output as it comes."""
    is_python = Path(argv[0]).name.startswith("python")
    return (*argv, UNBUFFERED) if is_python and len(argv) == 1 else argv


def _roots(program: str) -> Iterator[str]:
    """Where it is installed: the folder above its `bin`. A virtual environment also needs the Python it was made of."""
    found: dict[Path, None] = {}
    for file in dict.fromkeys((Path(program), Path(os.path.realpath(program)))):
        root = _root_of(file)
        found[root] = None
        home = _home(root)
        if home is not None:
            found[_root_of(Path(os.path.realpath(home)) / "python3")] = None
            found[_root_of(home / "python3")] = None
    for root in found:
        is_of_the_system = root.is_relative_to("/usr") and not root.is_relative_to("/usr/local")
        if not is_of_the_system and root.exists():
            yield str(root)


def _root_of(file: Path) -> Path:
    """The prefix, if the file is in a folder `bin` below one; else the file alone."""
    prefix = file.parent.parent
    return prefix if file.parent.name == "bin" and len(prefix.parts) > 1 else file


def _home(root: Path) -> Path | None:
    try:
        lines = (root / "pyvenv.cfg").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    named = [line.partition("=")[2].strip() for line in lines if line.partition("=")[0].strip() == "home"]
    return Path(named[0]) if named and named[0].startswith("/") else None
