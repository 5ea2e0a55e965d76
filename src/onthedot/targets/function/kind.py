"""Functions: Python functions of modules that the operator registered, run in worker processes.

User code never runs in the node's process, not even its imports: `check` looks at the registration only, and a function
that does not exist is a failed run that says so. Workers are started when first needed and kept warm; each runs one
call at a time, is killed with all it started when that call is cancelled, and is replaced when it grows.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from onthedot.errors import Invalid
from onthedot.model.instant import format_instant
from onthedot.model.targets import FunctionTarget
from onthedot.settings import Settings
from onthedot.targets.contract import Call, Done, Handle, Kind, Profile
from onthedot.targets.function.pending_call import PendingCall
from onthedot.targets.function.pool import WorkerPool
from onthedot.targets.presence import function_problem
from onthedot.targets.registry import names
from onthedot.targets.setup import FileGrants, KindSetup

__all__ = ["Functions"]

_SHAPE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z]\w*)", re.ASCII)
_MANY = 10_000
ACCEPTED = '"package.module:function", a function that the module defines'


class Functions(Kind):
    """The kind `function`. `registered` holds modules ("reports.daily") and single functions ("reports.daily:send")."""

    spec = FunctionTarget

    def __init__(self, registered: Iterable[str], *, processes: int, import_paths: Sequence[str] = ()) -> None:
        self._registered: dict[str, set[str] | None] = {}  # module → its functions; None: all it defines
        self._own: dict[int, frozenset[str]] = {}  # tenant → "module:function"
        self._calls: dict[tuple[int, str], str] = {}
        self.allow(registered)
        self._import_paths = tuple(import_paths)
        self._workers = WorkerPool(processes, import_paths)
        self.profile = Profile(capacity=processes, shares_workers=True)

    @classmethod
    def of(cls, setup: KindSetup) -> Kind:
        processes = setup.settings.function_processes
        return setup.in_process or cls(setup.settings.functions, processes=processes, import_paths=setup.import_paths)

    def register(self, settings: Settings, granted: Mapping[int, FileGrants]) -> None:
        own = {
            tenant: [target.function for target in grants.targets if isinstance(target, FunctionTarget)]
            for tenant, grants in granted.items()
        }
        self.allow(settings.functions, own)

    def allow(self, registered: Iterable[str], own: Mapping[int, Iterable[str]] | None = None) -> None:
        """These and no others, from now on. `own`: single functions that one tenant may call besides."""
        self._registered = {}
        self._calls = {}
        self._own = {tenant: frozenset(functions) for tenant, functions in (own or {}).items()}
        for entry in registered:
            module, _, name = entry.partition(":")
            known = self._registered.setdefault(module, set())
            if name and known is not None:
                known.add(name)
            else:
                self._registered[module] = None

    def capabilities(self) -> list[str]:
        own = sorted({entry.partition(":")[0] for entries in self._own.values() for entry in entries})
        return [f"function:{module}" for module in dict.fromkeys((*self._registered, *own))]

    def check(self, target: FunctionTarget, tenant: int = 1) -> None:
        match = _SHAPE.fullmatch(target.function)
        if match is None:
            problem = "is not a valid function name"
            raise Invalid.one("target.function", problem, given=target.function, accepted=ACCEPTED)
        if not self._knows(tenant, *match.groups()):
            problem = "is not registered by the operator"
            raise Invalid.one("target.function", problem, given=target.function, accepted=names(self._entries(tenant)))

    def problem(self, target: FunctionTarget, tenant: int = 1) -> str | None:
        """What is not registered here is another node's."""
        module, _, name = target.function.partition(":")
        return function_problem(target.function, self._import_paths) if self._knows(tenant, module, name) else None

    def _knows(self, tenant: int, module: str, name: str) -> bool:
        if f"{module}:{name}" in self._own.get(tenant, ()):
            return True
        if module not in self._registered:
            return False
        known = self._registered[module]
        return known is None or name in known

    def _entries(self, tenant: int) -> list[str]:
        for_all = [
            entry
            for module, known in self._registered.items()
            for entry in ([f"{module}:…"] if known is None else [f"{module}:{name}" for name in known])
        ]
        return list(dict.fromkeys((*for_all, *self._own.get(tenant, ()))))

    def ahead(self) -> int:
        """Short ones are sent ahead."""
        return self._workers.ahead

    def is_brief(self, target: FunctionTarget) -> bool:
        return self._workers.is_brief(target.function)

    def start(self, call: Call, at: float, done: Done) -> Handle:
        """Without a task that waits: that alone would cost as much as the rest."""
        target = call.target
        assert isinstance(target, FunctionTarget)
        name = self._called(call.tenant, target.function)
        now = asyncio.get_running_loop().time()
        asked = PendingCall(self._workers, call, target.function, _message(name, call) if name else b"", at, now, done)
        if name is None:
            self._workers.refuse(asked, f"{target.function} is not registered on this node")
        else:
            self._workers.submit(asked)
        return asked

    def _called(self, tenant: int, function: str) -> str | None:
        """Module and name as `worker_process` wants them; None: it may not be called. Looked up once for each."""
        called = self._calls.get((tenant, function))
        if called is None:
            match = _SHAPE.fullmatch(function)
            if match is None or not self._knows(tenant, *match.groups()):
                return None
            called = "\0".join(match.groups())
            if len(self._calls) >= _MANY:
                self._calls.clear()  # names come from jobs: no bound but this
            self._calls[tenant, function] = called
        return called

    async def reload(self) -> None:
        """Let idle workers go, so that the next calls import their modules afresh."""
        await self._workers.refresh()

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.shield(self._workers.close())


def _message(name: str, call: Call) -> bytes:
    """What `worker_process` takes apart. There is no NUL in any of these but perhaps in the last."""
    params = msgspec.json.encode(call.params).decode() if call.params else "{}"
    parts = (name, call.run_id, str(call.job_id), format_instant(call.slot), str(call.attempt), params)
    return "\0".join((*parts, call.key or "")).encode()
