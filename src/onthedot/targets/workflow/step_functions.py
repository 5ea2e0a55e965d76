"""AWS Step Functions. An execution has the name, the input, and the mark as the root of its trace.

Only standard workflows: express ones have no names, and can't be asked how they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec

from onthedot.settings import AwsSetting
from onthedot.targets.aws.failure import AwsFailed
from onthedot.targets.aws.service import AwsService
from onthedot.targets.workflow.account import found_account
from onthedot.targets.workflow.engine import (
    AlreadyThere,
    EngineDown,
    EngineNotReached,
    Execution,
    NewExecution,
    StartRefused,
)

__all__ = ["StepFunctions"]

PAGE, MOST_PAGES = 1000, 10
_MACHINE = re.compile(
    r"arn:aws[a-z-]*:states:(?P<region>[a-z0-9-]{5,30}):[0-9]{12}:stateMachine:(?P<name>[\w.+=@-]{1,80})(:[\w-]{1,80})?",
    re.ASCII,
)
_ROOT = re.compile(r"Root=1-([0-9a-f]{8})-([0-9a-f]{24})")
_ENDED = ("FAILED", "TIMED_OUT", "ABORTED")


class StepFunctions:
    title = "AWS Step Functions"

    def __init__(self, service: AwsService, setting: AwsSetting) -> None:
        self._service, self._setting = service, setting
        self.address = service.address
        self.place = f"stepfunctions@{service.region}"
        self.former_place: str | None = None

    async def find_account(self) -> None:
        """Until it is known, and for what was recorded before that, the region is the whole place."""
        if self.former_place is None and (account := await found_account(self._setting)) is not None:
            self.former_place, self.place = self.place, f"{self.place}/{account}"

    def problem(self, workflow: str) -> tuple[str, str] | None:
        found = _MACHINE.fullmatch(workflow)
        if found is None:
            accepted = "the ARN of a state machine: arn:aws:states:REGION:ACCOUNT:stateMachine:NAME"
            return "not the ARN of a state machine", accepted
        if found["region"] != self._service.region:
            return f"in another region than this node uses ({self._service.region})", "a state machine of its region"
        return None

    async def start(self, new: NewExecution) -> None:
        try:
            answer = await self._service.ask(
                "start_execution",
                stateMachineArn=new.workflow,
                name=new.name,
                input=msgspec.json.encode(new.input).decode(),
                traceHeader=f"Root=1-{new.mark[:8]}-{new.mark[8:]}",
            )
        except AwsFailed as failed:
            if failed.code == "ExecutionAlreadyExists":
                raise AlreadyThere from None
            raise _told(failed) from None
        if ":express:" in answer["executionArn"]:
            raise StartRefused("it is an express workflow, which can't be followed: use a standard one")

    async def look(self, workflow: str, name: str) -> Execution | None:
        try:
            found = await self._service.ask("describe_execution", executionArn=_execution(workflow, name))
        except AwsFailed as failed:
            if failed.code == "ExecutionDoesNotExist":
                return None
            raise _told(failed) from None
        status = found["status"]
        root = _ROOT.match(found.get("traceHeader") or "")
        arn = found["executionArn"]
        region = workflow.split(":")[3]
        return Execution(
            state="ok" if status == "SUCCEEDED" else "failed" if status in _ENDED else "going",
            mark=root[1] + root[2] if root else None,
            input=_json(found.get("input")),
            started_at=_epoch_ms(found.get("startDate")),
            ended_at=_epoch_ms(found.get("stopDate")),
            result=_json(found.get("output")),
            error=_error(status, found) if status in _ENDED else None,
            detail={
                "status": status,
                "link": f"https://{region}.console.aws.amazon.com/states/home?region={region}"
                f"#/v2/executions/details/{arn}",
            },
        )

    async def going(self, workflow: str) -> set[str]:
        found: set[str] = set()
        asked: dict[str, Any] = {"stateMachineArn": workflow, "statusFilter": "RUNNING", "maxResults": PAGE}
        for _ in range(MOST_PAGES):
            try:
                page = await self._service.ask("list_executions", **asked)
            except AwsFailed as failed:
                raise _told(failed) from None
            found.update(each["name"] for each in page["executions"])
            if not page.get("nextToken"):
                break
            asked["nextToken"] = page["nextToken"]
        return found

    async def lists(self, used: Collection[str]) -> Collection[str]:
        """To list all state machines, and the executions of each, would be too many requests."""
        return {workflow for workflow in used if self.problem(workflow) is None}

    async def left(self, listed: str) -> list[tuple[str, str]]:
        try:
            return [(listed, name) for name in await self.going(listed)]
        except MachineMissing:
            return []

    async def stop(self, workflow: str, name: str) -> None:
        try:
            await self._service.ask(
                "stop_execution",
                executionArn=_execution(workflow, name),
                error="Stopped",
                cause="Stopped by On the Dot",
            )
        except AwsFailed as failed:
            if failed.code != "ExecutionDoesNotExist":
                raise _told(failed) from None

    async def hello(self) -> str:
        try:
            await self._service.ask("list_state_machines", maxResults=1)
        except AwsFailed as failed:
            if not failed.is_denied:
                raise _told(failed) from None
        return f"region {self._service.region}"

    async def close(self) -> None:
        await self._service.close()


class MachineMissing(StartRefused):
    """There is no such state machine."""


def _told(failed: AwsFailed) -> EngineDown | StartRefused:
    if failed.code == "StateMachineDoesNotExist":
        return MachineMissing(str(failed))
    if failed.is_login:
        return StartRefused(str(failed), retryable=True)
    if not failed.was_sent:
        return EngineNotReached(str(failed))
    return EngineDown(str(failed)) if failed.retryable else StartRefused(str(failed))


def _execution(workflow: str, name: str) -> str:
    """A version or an alias of the state machine is no part of it."""
    return ":".join(workflow.split(":")[:7]).replace(":stateMachine:", ":execution:", 1) + f":{name}"


def _error(status: str, found: dict[str, Any]) -> str:
    parts = [status, *(str(found[name]) for name in ("error", "cause") if found.get(name))]
    return ": ".join(parts)[:2000]


def _json(text: Any) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, TypeError, RecursionError):
        return None


def _epoch_ms(instant: Any) -> int | None:
    return round(instant.timestamp() * 1000) if isinstance(instant, datetime) else None
