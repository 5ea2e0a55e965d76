"""Step Functions as its API answers, with executions that end when a test says so. A service of FakeAws."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.services.fake_aws import Refusal

__all__ = ["MACHINE", "FakeStepFunctions"]

MACHINE = "arn:aws:states:eu-west-1:123456789012:stateMachine:report"
_FIELDS = {
    "StartExecution": {"stateMachineArn", "name", "input", "traceHeader"},
    "DescribeExecution": {"executionArn"},
    "StopExecution": {"executionArn", "error", "cause"},
    "ListExecutions": {"stateMachineArn", "statusFilter", "maxResults", "nextToken"},
    "ListStateMachines": {"maxResults", "nextToken"},
}
_CODES = {401: "ExpiredTokenException", 403: "AccessDeniedException", 404: "UnknownOperationException"}


class FakeStepFunctions:
    """`executions` by name."""

    def __init__(self, machine: str = MACHINE) -> None:
        self.machine = machine
        self.executions: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []
        self.page = 1000
        self.refuses: tuple[int, str] | None = None  # with this status, what has this in what is given

    def __call__(self, operation: str, given: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(operation)
        if operation not in _FIELDS or set(given) - _FIELDS[operation]:
            raise Refusal(400, "ValidationException", f"{operation} {sorted(given)}")
        if self.refuses is not None and self.refuses[1] in json.dumps(given):
            raise Refusal(self.refuses[0], _CODES[self.refuses[0]])
        answer: dict[str, Any] = getattr(self, f"_{operation}")(**given)
        return answer

    def end(self, name: str, status: str = "SUCCEEDED", **told: Any) -> None:
        self.executions[name] |= {"status": status, "stopDate": time.time(), **told}

    def going(self) -> list[str]:
        return [name for name, found in self.executions.items() if found["status"] == "RUNNING"]

    def _StartExecution(self, stateMachineArn: str, name: str, input: str, traceHeader: str) -> dict[str, Any]:  # noqa: A002, N802, N803
        if stateMachineArn != self.machine:
            raise Refusal(400, "StateMachineDoesNotExist", f"State Machine Does Not Exist: '{stateMachineArn}'")
        json.loads(input)
        found = self.executions.get(name)
        if found is not None and (found["status"] != "RUNNING" or found["input"] != input):
            raise Refusal(400, "ExecutionAlreadyExists", f"Execution Already Exists: '{found['executionArn']}'")
        if found is None:
            found = self.executions[name] = {
                "executionArn": f"{self.machine.replace('stateMachine', 'execution')}:{name}",
                "stateMachineArn": self.machine,
                "name": name,
                "status": "RUNNING",
                "startDate": time.time(),
                "input": input,
                "traceHeader": traceHeader,
            }
        return {"executionArn": found["executionArn"], "startDate": found["startDate"]}

    def _found(self, arn: str) -> dict[str, Any]:
        found = self.executions.get(arn.rpartition(":")[2])
        if found is None or found["executionArn"] != arn:
            raise Refusal(400, "ExecutionDoesNotExist", f"Execution Does Not Exist: '{arn}'")
        return found

    def _DescribeExecution(self, executionArn: str) -> dict[str, Any]:  # noqa: N802, N803
        return self._found(executionArn)

    def _StopExecution(self, executionArn: str, error: str, cause: str) -> dict[str, Any]:  # noqa: N802, N803
        found = self._found(executionArn)
        if found["status"] == "RUNNING":
            self.end(found["name"], "ABORTED", error=error, cause=cause)
        return {"stopDate": found["stopDate"]}

    def _ListExecutions(self, stateMachineArn: str, statusFilter: str, maxResults: int, nextToken: str = "0") -> Any:  # noqa: N802, N803
        if stateMachineArn != self.machine:
            raise Refusal(400, "StateMachineDoesNotExist", f"State Machine Does Not Exist: '{stateMachineArn}'")
        all_going = [found for found in self.executions.values() if found["status"] == statusFilter]
        first, size = int(nextToken), min(maxResults, self.page)
        shown = ("executionArn", "stateMachineArn", "name", "status", "startDate")
        page = [{name: found[name] for name in shown} for found in all_going[first : first + size]]
        more = {"nextToken": str(first + size)} if first + size < len(all_going) else {}
        return {"executions": page, **more}

    def _ListStateMachines(self, maxResults: int) -> dict[str, Any]:  # noqa: N802, N803
        return {"stateMachines": []}
