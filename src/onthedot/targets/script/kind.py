"""Scripts: code that came by the API, run by an interpreter that the operator listed, in a sandbox or not at all.

A script gets its params as JSON on its standard input and in ONTHEDOT_PARAMS, next to the other variables that commands
get. Exit code 0 is done, and the last line of its standard output is the result if it is JSON; everything else is an
error that is tried again. Cancelled, it gets SIGTERM, two seconds to tidy up, and SIGKILL. It dies with its node.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Self

import msgspec

from onthedot.errors import Invalid, NotAvailable, ObjectMissing, ObjectStoreUnavailable
from onthedot.model.image import ImageName
from onthedot.model.run import Outcome
from onthedot.model.size import format_size
from onthedot.model.targets import ScriptTarget
from onthedot.objects import ObjectStore, open_objects
from onthedot.settings import ScriptSetting, Settings
from onthedot.targets.container_engine.access import EngineAddress
from onthedot.targets.container_engine.labels import run_labels
from onthedot.targets.contract import NOT_BEGUN, Call, Ended, Profile, TargetDiagnosis, run_environment
from onthedot.targets.coroutine import CoroutineKind, take_cancel
from onthedot.targets.exhaustion import lack_of
from onthedot.targets.process.last_line import LastLine
from onthedot.targets.process.output import ProcessOutput
from onthedot.targets.registry import names
from onthedot.targets.script.code_cache import CodeCache
from onthedot.targets.script.engine_creation import EngineChoice
from onthedot.targets.script.interpreters import Interpreter, interpreters
from onthedot.targets.script.limits import Hits, ScriptLimits
from onthedot.targets.script.probe import NoSandbox, Probed, probe
from onthedot.targets.script.sandbox import Launch, Sandbox, SandboxAway, SandboxFailed, SandboxRun
from onthedot.targets.script.verdict import outcome_of
from onthedot.targets.setup import KindSetup
from onthedot.telemetry import emit

__all__ = ["Scripts"]

GRACE = 2.0
LOOK_AGAIN = 10.0
KILLED_WITHIN = 5.0
"""Seconds in which a killed script is gone with all its processes, unless the kernel itself waits for something."""
LONGEST_VARIABLE = 100_000
"""Bytes of params in the environment: Linux allows no more than 128 KB for one variable."""
_ENVIRONMENT = {"HOME": "/tmp", "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "USER": "script"}  # noqa: S108


class Scripts(CoroutineKind):
    """The kind `script`."""

    spec = ScriptTarget

    def __init__(
        self,
        setting: ScriptSetting,
        objects: ObjectStore,
        *,
        executes: bool = True,
        probed: Probed | None = None,
        grace: float = GRACE,
        capacity: int | None = None,
        choice: EngineChoice | None = None,
    ) -> None:
        """`executes`: whether this node runs scripts, or only lets jobs be made. `probed`: what is known already.
        `choice`: of containers, for where nothing else isolates scripts."""
        self.profile = Profile(
            capacity=capacity,
            shares_workers=True,
            leaves_behind=choice is not None,
            stop_within=grace + KILLED_WITHIN,
        )
        self._choice, self._installation = choice, "unknown"
        self._looking: asyncio.Task[None] | None = None
        self._setting, self._executes, self._grace = setting, executes, grace
        self._interpreters = interpreters(setting.interpreters)
        self._codes = CodeCache(objects)
        self._known = probed

    @classmethod
    def of(cls, setup: KindSetup) -> Scripts:
        settings = setup.settings
        return cls(
            settings.scripts,
            open_objects(settings.object_store),
            executes="executor" in settings.roles,
            capacity=settings.function_processes,
            choice=_choice(settings),
        )

    def belong_to(self, installation: str) -> None:
        self._installation = installation

    async def __aenter__(self) -> Self:
        probed = await asyncio.to_thread(self._probed)
        if isinstance(probed.sandbox, Sandbox):
            await self._has(probed, probed.sandbox)
        else:
            emit("scripts.no_sandbox", reason=probed.sandbox.why, remedy=probed.sandbox.remedy)
            if self._choice is not None and self._executes:
                self._looking = asyncio.create_task(self._look_again(self._choice), name="onthedot-script-sandbox")
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        if self._known is not None and isinstance(self._known.sandbox, Sandbox):
            await self._known.sandbox.close()

    async def _has(self, probed: Probed, sandbox: Sandbox) -> None:
        sandbox = sandbox.of_node()
        await sandbox.open()
        self._known = msgspec.structs.replace(probed, sandbox=sandbox)
        emit("scripts.sandbox", sandbox=sandbox.description, broken=probed.broken)

    async def _look_again(self, choice: EngineChoice) -> None:
        """The container engine may have been started after the node."""
        while True:
            await asyncio.sleep(LOOK_AGAIN)
            probed = await asyncio.to_thread(probe, self._setting.interpreters, choice, again=True)
            if isinstance(probed.sandbox, Sandbox):
                await self._has(probed, probed.sandbox)
                return

    def capabilities(self) -> list[str]:
        """Nothing unless a sandbox works, and only what does run in it; which is tried when the node begins."""
        probed = self._known
        if probed is None or isinstance(probed.sandbox, NoSandbox) or not probed.sandbox.is_there:
            return []
        working = [name for name in self._interpreters if name not in probed.broken]
        networks = ("", ":network") if self._setting.network else ("",)
        return [f"script:{name}{network}" for name in working for network in networks]

    async def diagnose(self) -> Sequence[TargetDiagnosis]:
        if not self._executes:
            return ()
        probed = await asyncio.to_thread(self._probed)
        if isinstance(probed.sandbox, NoSandbox):
            found = f"not available: {probed.sandbox.why}"
            return (TargetDiagnosis("scripts", found, probed.sandbox.remedy, is_error=False),)
        working = ", ".join(name for name in self._interpreters if name not in probed.broken) or "no interpreter"
        found = f"{working} in {probed.sandbox.description}"
        if probed.broken:
            why = "; ".join(f"{name}: {why}" for name, why in probed.broken.items())
            advice = "install it, or correct [scripts] interpreters in the settings"
            return (TargetDiagnosis("scripts", f"{found}; {why}", advice),)
        return (TargetDiagnosis("scripts", found),)

    def _probed(self) -> Probed:
        if self._known is None:
            self._known = probe(self._setting.interpreters, self._choice)
        return self._known

    def check(self, target: ScriptTarget, tenant: int = 1) -> None:
        if target.interpreter not in self._interpreters:
            accepted = names(list(self._interpreters))
            problem = "is not enabled by the operator"
            raise Invalid.one("target.interpreter", problem, given=target.interpreter, accepted=accepted)
        if target.network and not self._setting.network:
            accepted = "false, unless the operator sets network = true in [scripts]"
            raise Invalid.one(
                "target.network", "scripts have no network access on this node", given=True, accepted=accepted
            )
        if target.memory_bytes > self._setting.memory:
            accepted = f"at most {format_size(self._setting.memory)}, the limit that the operator set in [scripts]"
            raise Invalid.one("target.memory", "too large", given=target.memory, accepted=accepted)
        if self._executes and (obstacle := self._obstacle(target)) is not None:
            raise obstacle

    def _obstacle(self, target: ScriptTarget) -> NotAvailable | None:
        """What keeps this node from running it."""
        probed = self._probed()
        if isinstance(probed.sandbox, NoSandbox):
            message = f"not available: no sandbox works on this node ({probed.sandbox.why})"
            return _not_available("target.type", message, target.type, probed.sandbox.remedy)
        if (why := probed.broken.get(target.interpreter)) is not None:
            return _not_available("target.interpreter", f"not available: {why}", target.interpreter, "install it first")
        return None

    def problem(self, target: ScriptTarget, tenant: int = 1) -> str | None:
        return self.refusal(target, tenant)

    async def send(self, call: Call) -> Outcome | Ended:
        assert isinstance(call.target, ScriptTarget)
        target, probed = call.target, self._probed()
        if (why := self.problem(target)) is not None or not isinstance(probed.sandbox, Sandbox):
            return Outcome(kind="refused", error=why)
        try:
            code = await self._codes.code_of(call.tenant, target)
        except ObjectMissing:
            why = "on several machines, all nodes need the same OBJECT_STORE"
            error = f"script {target.script} is not in the object store of this node; {why}"
            return Outcome(kind="error", retryable=True, error=error)
        except ObjectStoreUnavailable as unavailable:
            return Outcome(kind="error", retryable=True, error=str(unavailable))
        limits = ScriptLimits(memory=target.memory_bytes, cpus=target.cpus)
        interpreter = probed.interpreters.get(target.interpreter, self._interpreters[target.interpreter])
        launch = _launch(call, target, interpreter, code, limits, self._installation)
        return await self._run(call, probed.sandbox, launch)

    async def _run(self, call: Call, sandbox: Sandbox, launch: Launch) -> Outcome | Ended:
        printed, complained = LastLine(call.log), LastLine(call.log)
        outputs: list[ProcessOutput] = []
        run: SandboxRun | None = None
        hits = Hits()
        try:
            outputs.extend(ProcessOutput(heard.write) for heard in (printed, complained))
            run = await sandbox.start(launch, outputs[0].write_fd, outputs[1].write_fd)
            for output in outputs:
                output.close_write()
            code = await run.wait()
        except asyncio.CancelledError:
            take_cancel()
            if run is not None:
                await self._end(run)
            raise
        except SandboxAway:
            return NOT_BEGUN
        except SandboxFailed as error:
            return Outcome(kind="error", retryable=True, error=str(error))
        except (OSError, MemoryError, RuntimeError) as error:
            if run is None and (lack := lack_of(error, starting=True)) is not None:
                call.lacks(lack)
                return NOT_BEGUN
            raise
        finally:
            if run is not None:
                hits = await run.clean_up()
            for output in outputs:
                output.finish()
        return outcome_of(code, hits, launch.limits, printed, complained)

    async def _end(self, run: SandboxRun) -> None:
        """Ask it to go; when the time is up, or on a second cancel, it is killed."""
        try:
            run.terminate()
            with contextlib.suppress(TimeoutError, SandboxFailed):
                async with asyncio.timeout(self._grace):
                    await run.wait()
        finally:
            run.kill()

    # what a node that was killed has left behind

    async def inventory(self) -> Sequence[str]:
        return () if (sandbox := self._sandbox) is None else await sandbox.left_behind(self._installation)

    async def remove(self, name: str) -> bool | None:
        if (sandbox := self._sandbox) is not None:
            await sandbox.remove(name)
        return None

    async def end_overdue(self) -> Sequence[str]:
        return () if (sandbox := self._sandbox) is None else await sandbox.end_overdue()

    @property
    def _sandbox(self) -> Sandbox | None:
        known = self._known
        return known.sandbox if known is not None and isinstance(known.sandbox, Sandbox) else None


def _choice(settings: Settings) -> EngineChoice | None:
    image, containers = settings.scripts.image, settings.containers
    if image is None:
        return None
    return EngineChoice(EngineAddress.of(containers), str(ImageName.parse(image)), containers.network or "bridge")


def _launch(
    call: Call, target: ScriptTarget, interpreter: Interpreter, code: bytes, limits: ScriptLimits, installation: str
) -> Launch:
    params = msgspec.json.encode(call.params)
    own = run_environment(call)
    if len(params) > LONGEST_VARIABLE:
        del own["ONTHEDOT_PARAMS"]
    return Launch(
        argv=interpreter.argv,
        roots=interpreter.roots,
        code=code,
        file_name="script.py" if "python" in target.interpreter else "script",
        args=tuple(target.args),
        env=_ENVIRONMENT | target.env | own,
        stdin=params,
        limits=limits,
        network=target.network,
        name=f"{call.run_id}-{call.try_number}",
        labels=run_labels(installation, call.run_id, call.try_number, call.key or str(call.job_id), call.tenant),
        timeout=None if call.timeout is None else call.timeout + GRACE,
    )


def _not_available(path: str, message: str, given: str, accepted: str) -> NotAvailable:
    error = NotAvailable.one(path, message, given=given, accepted=accepted)
    assert isinstance(error, NotAvailable)
    return error
