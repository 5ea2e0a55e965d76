"""Functions of AWS Lambda. With `request` the function's answer is the end of the run, and its result; with `event`
Lambda has stored the call, and calls the function later: that is done, unless the function tells by a callback how it
ended.

A call whose answer is lost is repeated, with the same run id: whoever must not do a thing twice can know it by that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from onthedot.model.body_template import MissingParam
from onthedot.model.run import Outcome
from onthedot.model.targets import LambdaTarget
from onthedot.settings import AwsSetting
from onthedot.targets.aws.failure import AwsFailed
from onthedot.targets.aws.service import AwsService, NotAllowedYet
from onthedot.targets.aws_lambda.invocation import invocation
from onthedot.targets.aws_lambda.verdict import log_tail, of_answer, of_failure
from onthedot.targets.contract import NOT_BEGUN, Call, Ended, Profile, TargetDiagnosis
from onthedot.targets.coroutine import CoroutineKind
from onthedot.targets.setup import KindSetup

__all__ = ["Lambdas"]

ANSWERS_WITHIN = 960.0
"""Seconds: a function may take fifteen minutes."""
TAKEN_WITHIN = 30.0
"""… in which Lambda has stored a call for later."""


class Lambdas(CoroutineKind):
    """The kind `lambda`."""

    spec = LambdaTarget
    profile = Profile(has_destinations=True)

    def __init__(self, setting: AwsSetting, *, connections: int = 1000, executes: bool = True) -> None:
        self._executes = executes
        self._service = AwsService("lambda", "lambda", setting, connections=connections, read_within=ANSWERS_WITHIN)

    @classmethod
    def of(cls, setup: KindSetup) -> Lambdas:
        settings = setup.settings
        return cls(settings.aws, connections=settings.concurrency, executes="executor" in settings.roles)

    def capabilities(self) -> list[str]:
        return [self.tag] if self._service.is_usable else []

    def destination(self, target: LambdaTarget) -> str | None:
        return target.function

    def answered(self, outcome: Outcome) -> bool | None:
        """A function that raises is there. What it can't do for one run, it may do for others."""
        return True if "function_error" in outcome.detail else super().answered(outcome)

    def check(self, target: LambdaTarget, tenant: int = 1) -> None:
        self._service.refuse_if_unusable("target.type", target.type)

    def problem(self, target: LambdaTarget, tenant: int = 1) -> str | None:
        return self.refusal(target, tenant)

    async def send(self, call: Call) -> Outcome | Ended:
        target = call.target
        assert isinstance(target, LambdaTarget)
        if not self._service.is_usable:
            return Outcome(kind="refused", error="AWS is not available on this node")
        try:
            asked = invocation(call, target)
        except MissingParam as missing:
            return Outcome(kind="refused", error=f"target.payload: {missing}")
        within = TAKEN_WITHIN if target.invocation == "event" else ANSWERS_WITHIN
        try:
            async with asyncio.timeout(within):
                answer = await self._service.ask("invoke", may_begin=call.may_begin, **asked)
        except NotAllowedYet:
            return NOT_BEGUN
        except TimeoutError:
            error = f"AWS Lambda did not answer within {within:g} s"
            return Outcome(kind="timeout", retryable=True, error=error)
        except AwsFailed as failed:
            return of_failure(failed)
        if tail := log_tail(answer):
            call.log(tail)
        return of_answer(answer)

    async def diagnose(self) -> Sequence[TargetDiagnosis]:
        return await self._service.diagnosis("list_functions", MaxItems=1) if self._executes else ()

    async def __aenter__(self) -> Self:
        if self._executes:
            await self._service.warm_up()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._service.close()
