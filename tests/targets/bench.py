"""Functions in real worker processes, for tests: whatever is defined may be called."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from onthedot.model.run import Outcome
from onthedot.model.targets import FunctionTarget
from onthedot.targets import Call
from onthedot.targets.function.kind import Functions
from tests.targets.sending import send_until_begun

WARM = 60  # calls after which a short function is known to be short


class Bench:
    """Functions with everything in `tmp_path` registered as it is written."""

    def __init__(self, directory: Path, module: Callable[[str], str], make_call: Callable[..., Call]) -> None:
        self.functions = Functions([], processes=2, import_paths=[str(directory)])
        self._module, self._make_call = module, make_call

        self._jobs = count(1)  # each call is another job's: one alone is kept from the last worker

    def define(self, source: str) -> str:
        name = self._module(source)
        self.functions._registered[name] = None
        return name

    async def call(self, function: str, log: Callable[[str], None] | None = None, **params: Any) -> Outcome:
        extra = {} if log is None else {"log": log}
        target, job_id = FunctionTarget(function=function), next(self._jobs)
        return await send_until_begun(
            self.functions, lambda: self._make_call(target, params=params, job_id=job_id, **extra)
        )

    async def run(self, source: str, **params: Any) -> Outcome:
        """Define a module with a function `work`, and call it."""
        return await self.call(f"{self.define(source)}:work", **params)

    async def warm(self, function: str, **params: Any) -> None:
        """Until it is sent ahead: the machine may be so busy that a short call takes long now and then."""
        for _ in range(20):
            for _ in range(WARM):
                await self.call(function, **params)
            if self.functions.ahead() > 0:
                return
        raise AssertionError("never short")

    def tell(self, function: str, begun: Callable[[float], None], job_id: int | None = None, **params: Any) -> Call:
        """A call as the engine makes it: it listens for when it begins."""
        job_id = next(self._jobs) if job_id is None else job_id
        return self._make_call(FunctionTarget(function=function), params=params, begun=begun, job_id=job_id)

    @property
    def pids(self) -> list[int]:
        return self.functions._workers.pids
