"""Functions: Python functions of modules that the operator registered, run in worker processes.

User code never runs in the node's process, not even its imports: `check` looks at the registration only, and a function
that does not exist is a failed run that says so. Workers are started when first needed and kept warm; each takes one
call at a time, is killed with all it started when the call is cancelled, and is replaced after 1,000 calls.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import Self

from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.target import FunctionTarget
from onthedot.targets.call import Call, run_environment
from onthedot.targets.registry import names
from onthedot.targets.worker import WorkerDied
from onthedot.targets.workers import Workers

__all__ = ["Functions"]

_SHAPE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):([A-Za-z]\w*)", re.ASCII)
ACCEPTED = '"package.module:function", a function that the module defines'


class Functions:
    """The kind `function`. `registered` holds modules ("reports.daily") and single functions ("reports.daily:send")."""

    def __init__(self, registered: Iterable[str], *, processes: int, import_paths: Sequence[str] = ()) -> None:
        self._registered: dict[str, set[str] | None] = {}  # module → its functions; None: all it defines
        self.register(registered)
        self._workers = Workers(processes, import_paths)

    def register(self, registered: Iterable[str]) -> None:
        """These and no others, from now on."""
        self._registered = {}
        for entry in registered:
            module, _, name = entry.partition(":")
            known = self._registered.setdefault(module, set())
            if name and known is not None:
                known.add(name)
            else:
                self._registered[module] = None

    @property
    def offers(self) -> list[str]:
        return [f"function:{module}" for module in self._registered]

    def check(self, target: FunctionTarget) -> None:
        match = _SHAPE.fullmatch(target.function)
        if match is None:
            problem = "is not the name of a function"
            raise Invalid.one("target.function", problem, given=target.function, accepted=ACCEPTED)
        if not self._knows(*match.groups()):
            problem = "is not registered by the operator"
            raise Invalid.one("target.function", problem, given=target.function, accepted=names(self._entries()))

    def _knows(self, module: str, name: str) -> bool:
        if module not in self._registered:
            return False
        known = self._registered[module]
        return known is None or name in known

    def _entries(self) -> list[str]:
        return [
            entry
            for module, known in self._registered.items()
            for entry in ([f"{module}:…"] if known is None else [f"{module}:{name}" for name in known])
        ]

    async def send(self, call: Call) -> Outcome:
        target = call.target
        assert isinstance(target, FunctionTarget)
        match = _SHAPE.fullmatch(target.function)
        if match is None or not self._knows(*match.groups()):
            return Outcome(kind="refused", error=f"{target.function} is not registered on this node")
        module, name = match.groups()
        request = {"module": module, "name": name, "params": call.params, "environment": run_environment(call)}
        try:
            async with self._workers.one() as worker:
                answer = await worker.call(request, call.log)
        except WorkerDied as error:
            return Outcome(kind="error", retryable=True, error=str(error))
        except OSError as error:
            return Outcome(kind="error", retryable=True, error=f"no worker process can be started: {error}")
        if answer.get("ok") is True:
            return Outcome(kind="ok", detail={"result": answer["result"]} if "result" in answer else {})
        return Outcome(kind="error", retryable=bool(answer.get("retryable")), error=str(answer.get("error")))

    async def reload(self) -> None:
        """Let idle workers go, so that the next calls import their modules afresh."""
        await self._workers.refresh()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.shield(self._workers.close())
