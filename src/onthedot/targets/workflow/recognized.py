"""An engine whose table of the settings does not say what it is: it is asked, before the first thing that is wanted of
it.

Airflow 3 tells its version below /api/v2. Below /api/v1, Airflow 2 and Argo Workflows both tell theirs, each with
fields of its own; an Argo that refuses the login says so with a number, as gRPC does.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from onthedot.settings import WorkflowSetting
from onthedot.targets.workflow.airflow import Airflow
from onthedot.targets.workflow.argo import Argo
from onthedot.targets.workflow.engine import EngineDown, EngineNotReached, Execution, NewExecution, StartRefused
from onthedot.targets.workflow.http import EngineApi

__all__ = ["RecognizedEngine"]


class RecognizedEngine:
    former_place: str | None = None

    def __init__(self, name: str, setting: WorkflowSetting) -> None:
        self._airflow, self._argo = Airflow(name, setting), Argo(name, setting)
        self._http = EngineApi(setting, basic=True)
        self._found: Airflow | Argo | None = None
        self.title = "The workflow engine"
        self.address, self.place = self._airflow.address, self._airflow.place

    def problem(self, workflow: str) -> tuple[str, str] | None:
        if self._found is not None:
            return self._found.problem(workflow)
        dag, template = self._airflow.problem(workflow), self._argo.problem(workflow)
        if dag is None or template is None:
            return None
        return f"{dag[0]}, and {template[0]}", f"Airflow: {dag[1]}; Argo: {template[1]}"

    async def start(self, new: NewExecution) -> None:
        try:
            engine = await self._engine()
        except EngineDown as down:
            raise EngineNotReached(str(down)) from None  # it was asked for nothing but its name
        if problem := engine.problem(new.workflow):
            raise StartRefused(f"{new.workflow[:200]!r} is {problem[0]}")
        await engine.start(new)

    async def look(self, workflow: str, name: str) -> Execution | None:
        return await (await self._engine()).look(workflow, name)

    async def going(self, workflow: str) -> set[str]:
        return await (await self._engine()).going(workflow)

    async def lists(self, used: Collection[str]) -> Collection[str]:
        return await (await self._engine()).lists(used)

    async def left(self, listed: str) -> list[tuple[str, str]]:
        return await (await self._engine()).left(listed)

    async def stop(self, workflow: str, name: str) -> None:
        await (await self._engine()).stop(workflow, name)

    async def hello(self) -> str:
        return f"{await (await self._engine()).hello()}; recognized, because its type is not set"

    async def close(self) -> None:
        for each in (self._http, self._airflow, self._argo):
            await each.close()

    async def _engine(self) -> Airflow | Argo:
        if self._found is None:
            self._found = await self._recognized()
            self.title = self._found.title
            await self._http.close()
        return self._found

    async def _recognized(self) -> Airflow | Argo:
        second = await self._http.ask("GET", "/api/v2/version")
        if _has(second.body, "version"):
            return self._airflow
        first = await self._http.ask("GET", "/api/v1/version")
        if _has(first.body, "git_version"):
            return self._airflow
        if _has(first.body, "buildDate") or (isinstance(first.body, dict) and isinstance(first.body.get("code"), int)):
            return self._argo
        why = f"/api/v2/version is HTTP {second.status} and /api/v1/version HTTP {first.status}"
        raise EngineDown(f"it is neither Airflow nor Argo Workflows ({why}); check its url, or set its type")


def _has(body: Any, name: str) -> bool:
    return isinstance(body, dict) and name in body
