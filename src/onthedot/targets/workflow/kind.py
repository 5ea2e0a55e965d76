"""Workflows: an execution of a workflow engine, named `<run id>-<try>`, and followed to its end.

The execution belongs to the engine. A node that stops lets go of it, and the next one finds it by its name; only a
time-out and a cancel stop it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from onthedot.clock import Clock, SystemClock
from onthedot.errors import Invalid
from onthedot.model.run import Outcome
from onthedot.model.targets import WorkflowTarget
from onthedot.model.targets.workflow import STEP_FUNCTIONS
from onthedot.settings import AwsSetting, WorkflowSetting
from onthedot.targets.aws.service import AwsService
from onthedot.targets.contract import NOT_BEGUN, Call, Ended, Profile, TargetDiagnosis
from onthedot.targets.coroutine import CoroutineKind
from onthedot.targets.registry import names
from onthedot.targets.setup import KindSetup
from onthedot.targets.workflow.airflow import Airflow
from onthedot.targets.workflow.argo import Argo
from onthedot.targets.workflow.engine import EngineDown, StartRefused, WorkflowEngine
from onthedot.targets.workflow.following import FIRST, EndWatch
from onthedot.targets.workflow.outages import words_of
from onthedot.targets.workflow.recognized import RecognizedEngine
from onthedot.targets.workflow.run import STOP_WITHIN, WorkflowRun, mark_of
from onthedot.targets.workflow.step_functions import StepFunctions
from onthedot.telemetry import emit

__all__ = ["Workflows"]

DIAGNOSE_WITHIN = 5.0
CONNECTIONS, ANSWERS_WITHIN = 16, 15.0
_ENGINES: dict[str | None, Callable[[str, WorkflowSetting], WorkflowEngine]] = {
    "airflow": Airflow,
    "argo": Argo,
    None: RecognizedEngine,
}


class Workflows(CoroutineKind):
    """The kind `workflow`."""

    spec = WorkflowTarget

    def __init__(
        self,
        settings: Mapping[str, WorkflowSetting],
        aws: AwsSetting,
        *,
        executes: bool = True,
        clock: Clock | None = None,
        first_look: float = FIRST,
    ) -> None:
        """`executes`: whether this node runs workflows, or only lets jobs be made."""
        self.profile = Profile(survives_node=True, stop_within=STOP_WITHIN)
        self._executes, self._clock = executes, clock or SystemClock()
        self._settings = settings
        self._aws = aws
        self._service = _step_functions(aws)
        self._engines: dict[str, WorkflowEngine] = {
            name: _ENGINES[setting.type](name, setting) for name, setting in settings.items()
        }
        self._step_functions = StepFunctions(self._service, aws) if self._service.is_usable else None
        if self._step_functions is not None:
            self._engines[STEP_FUNCTIONS] = self._step_functions
        self._watches = {
            name: EndWatch(engine, self._clock, first=first_look) for name, engine in self._engines.items()
        }
        self._installation = "unknown"
        self._used: defaultdict[str, set[str]] = defaultdict(set)  # workflows that this node has used, by engine
        self._left: defaultdict[str, list[tuple[WorkflowEngine, str]]] = defaultdict(list)

    @classmethod
    def of(cls, setup: KindSetup) -> Workflows:
        settings = setup.settings
        return cls(settings.workflows, settings.aws, executes="executor" in settings.roles)

    def belong_to(self, installation: str) -> None:
        self._installation = installation

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for watch in self._watches.values():
            await watch.close()
        for engine in self._engines.values():
            await engine.close()

    def capabilities(self) -> list[str]:
        engines = self._engines.values()
        places = [*(engine.place for engine in engines), *(engine.former_place for engine in engines)]
        return [f"{self.tag}:{what}" for what in (*self._engines, *places) if what is not None]

    def adopted_by(self, target: WorkflowTarget) -> str:
        engine = self._engines.get(target.engine)
        return target.capability() if engine is None else f"{self.tag}:{engine.place}"

    # whoever makes jobs

    def check(self, target: WorkflowTarget, tenant: int = 1) -> None:
        if target.engine == STEP_FUNCTIONS:
            self._service.refuse_if_unusable("target.engine", target.engine)
        engine = self._engines.get(target.engine)
        if engine is None:
            known = names([*self._settings, STEP_FUNCTIONS])
            accepted = f"{known}; others by [workflows.NAME] in onthedot.toml"
            raise Invalid.one("target.engine", "is not configured on this node", given=target.engine, accepted=accepted)
        if problem := engine.problem(target.workflow):
            raise Invalid.one("target.workflow", problem[0], given=target.workflow[:200], accepted=problem[1])

    def problem(self, target: WorkflowTarget, tenant: int = 1) -> str | None:
        return self.refusal(target, tenant)

    async def diagnose(self) -> Sequence[TargetDiagnosis]:
        if not self._executes:
            return ()
        made = [(name, _ENGINES[setting.type](name, setting)) for name, setting in self._settings.items()]
        if self._service.is_usable and self._aws.region is not None:
            made.append((STEP_FUNCTIONS, StepFunctions(_step_functions(self._aws), self._aws)))
        return await asyncio.gather(*(_diagnosis(name, engine) for name, engine in made))

    # runs

    async def send(self, call: Call) -> Outcome | Ended:
        target = call.target
        assert isinstance(target, WorkflowTarget)
        refused = self.problem(target)
        if refused is not None and not call.adopted:
            return Outcome(kind="refused", error=refused)
        if target.engine not in self._engines:
            return NOT_BEGUN
        self._used[target.engine].add(target.workflow)
        engine, watch = self._engines[target.engine], self._watches[target.engine]
        return await WorkflowRun(call, target, engine, watch, self._installation, self._clock).carry_out()

    # what is left

    async def inventory(self) -> Sequence[str]:
        """Those that go on, as far as the engines list them."""
        if self._step_functions is not None and self._executes:
            await self._step_functions.find_account()
        self._left.clear()
        for engine_name, engine in self._engines.items():
            for workflow, name in await self._left_on(engine_name, engine):
                self._left[name].append((engine, workflow))
        return list(self._left)

    async def _left_on(self, engine_name: str, engine: WorkflowEngine) -> list[tuple[str, str]]:
        """What can't be listed does not hide the rest."""
        found: list[tuple[str, str]] = []
        try:
            places = list(await engine.lists(self._used[engine_name]))
        except Exception as error:
            emit("leftover.kept", kind=self.tag, error=f"{engine_name}: {words_of(error)}")
            return found
        for listed in places:
            try:
                found += await engine.left(listed)
            except Exception as error:
                emit("leftover.kept", kind=self.tag, error=f"{engine_name}: {words_of(error)}")
        return found

    async def remove(self, name: str) -> bool:
        """Stopped only if its mark says that it is ours. What has ended stays in the history of the engine."""
        removed = False
        for engine, workflow in self._left[name]:
            found = await engine.look(workflow, name)
            if found is not None and found.state == "going" and found.mark == mark_of(self._installation, name):
                await engine.stop(workflow, name)
                removed = True
        return removed


def _step_functions(aws: AwsSetting) -> AwsService:
    return AwsService("stepfunctions", "workflows", aws, connections=CONNECTIONS, read_within=ANSWERS_WITHIN)


async def _diagnosis(name: str, engine: WorkflowEngine) -> TargetDiagnosis:
    try:
        async with asyncio.timeout(DIAGNOSE_WITHIN):
            about = await engine.hello()
    except TimeoutError:
        why = f"no response within {DIAGNOSE_WITHIN:g} s"
    except (EngineDown, StartRefused) as error:
        why = str(error)
    else:
        found = f"{name}: {engine.title} at {engine.address} is reachable, login accepted ({about})"
        return TargetDiagnosis("workflows", found)
    finally:
        await engine.close()
    table = "[aws]" if name == STEP_FUNCTIONS else f"[workflows.{name}]"
    advice = f"check that it is running, and that the address and the login of {table} are correct"
    return TargetDiagnosis("workflows", f"{name}: {engine.title} at {engine.address}: {why}", advice)
