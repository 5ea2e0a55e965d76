"""An image with the Python of this machine, and nothing else: what scripts need that run in containers."""

from __future__ import annotations

import io
import subprocess
import tarfile
from functools import lru_cache
from pathlib import Path

from tests.services.container_engine import EngineServer

__all__ = ["PYTHON_IMAGE", "import_python"]

PYTHON_IMAGE = "registry.test/team/python:3"
_PYTHON = Path("/usr/bin/python3")
_UNNEEDED = {
    *("test", "idlelib", "lib2to3", "pydoc_data", "ensurepip", "distutils", "tkinter", "unittest", "venv", "xml"),
    *("asyncio", "email", "multiprocessing", "sqlite3", "dbm", "curses", "wsgiref", "xmlrpc", "http", "concurrent"),
}
_EXTENSIONS = ("_ctypes.*", "_json.*", "_opcode.*", "mmap.*", "_posixsubprocess.*", "resource.*", "_contextvars.*")


def import_python(engine: EngineServer) -> None:
    name, _, tag = PYTHON_IMAGE.rpartition(":")
    engine.ask("POST", f"/images/create?fromSrc=-&repo={name}&tag={tag}", _layer())


@lru_cache
def _layer() -> bytes:
    program = _PYTHON.resolve()
    library = Path("/usr/lib") / program.name
    extensions = [file for pattern in _EXTENSIONS for file in (library / "lib-dynload").glob(pattern)]
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        needed = _libraries([program, Path("/usr/bin/true"), Path("/usr/bin/sh"), *extensions])
        places = {f"usr{folder}" for file in needed for folder in _folders(file)}
        open_to_all = dict.fromkeys((".", "usr", "usr/bin", "usr/lib", *sorted(places)), 0o755)
        for name, mode in {**open_to_all, "tmp": 0o1777, "root": 0o700}.items():
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            tar.addfile(folder)
        for name in ("bin", "lib", "lib64"):  # as on this machine
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
        for name, to in (("usr/bin/python3", program.name), ("usr/bin/python", program.name)):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, to
            tar.addfile(link)
        tar.add(program, f"usr/bin/{program.name}")
        for file in needed:
            tar.add(file.resolve(), f"usr{_below_usr(file.resolve())}")
            if _below_usr(file) != _below_usr(file.resolve()):
                link = tarfile.TarInfo(f"usr{_below_usr(file)}")
                link.type, link.linkname = tarfile.SYMTYPE, str(file.resolve())
                tar.addfile(link)
        for tool in ("true", "sh", "sleep"):
            tar.add(Path(f"/usr/bin/{tool}").resolve(), f"usr/bin/{tool}")
        tar.add(library, f"usr/lib/{library.name}", filter=_needed)
    return made.getvalue()


def _below_usr(file: Path) -> str:
    """/lib is a link to /usr/lib."""
    return str(file).removeprefix("/usr")


def _folders(file: Path) -> list[str]:
    files = (Path(_below_usr(file)), Path(_below_usr(file.resolve())))
    return [str(folder) for each in files for folder in each.parents if str(folder) != "/"]


def _libraries(programs: list[Path]) -> list[Path]:
    told = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    words = {word for line in told.splitlines() for word in line.split() if word.startswith("/") and ".so" in word}
    return sorted(Path(word) for word in words if not word.endswith(":"))


def _needed(file: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = set(Path(file.name).parts)
    is_unneeded = parts & _UNNEEDED or any(part.startswith("config-") for part in parts)
    is_other = "lib-dynload/" in file.name and not any(Path(file.name).match(pattern) for pattern in _EXTENSIONS)
    return None if is_unneeded or is_other or file.name.endswith((".a", ".opt-2.pyc")) else file
