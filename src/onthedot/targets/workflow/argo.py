"""Argo Workflows by the API of its server.

A workflow is made of a template that the operator has put there, with the name, labels, the input as arguments, and a
deadline of its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from onthedot.settings import WorkflowSetting
from onthedot.targets.workflow.airflow import epoch_ms
from onthedot.targets.workflow.engine import AlreadyThere, EngineDown, Execution, NewExecution
from onthedot.targets.workflow.http import EngineApi, HttpAnswer

__all__ = ["Argo"]

MARK = "onthedot/mark"
MANAGED = "onthedot/managed"
PAGE, MOST_PAGES = 500, 10
_TEMPLATE = re.compile(r"([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/)?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
_STATES = {"Succeeded": "ok", "Failed": "failed", "Error": "failed"}
_FIELDS = (
    "metadata.name,metadata.labels,spec.arguments,"
    "status.phase,status.message,status.startedAt,status.finishedAt,status.outputs"
)
_NOT_FOUND = 5  # of gRPC


class Argo:
    title = "Argo Workflows"
    former_place: str | None = None

    def __init__(self, name: str, setting: WorkflowSetting) -> None:
        self.address, self.place = setting.url, f"{name}@{setting.host}"
        self._setting = setting
        self._http = EngineApi(setting, basic=True)

    def problem(self, workflow: str) -> tuple[str, str] | None:
        if _TEMPLATE.fullmatch(workflow):
            return None
        return "not the name of a workflow template", "TEMPLATE or NAMESPACE/TEMPLATE, as Kubernetes names them"

    async def start(self, new: NewExecution) -> None:
        namespace, template = self._template(new.workflow)
        spec: dict[str, Any] = {"workflowTemplateRef": {"name": template}}
        if new.input:
            spec["arguments"] = {"parameters": _parameters(new.input)}
        if new.seconds is not None:
            spec["activeDeadlineSeconds"] = max(1, round(new.seconds))
        labels = {f"onthedot/{name}": value for name, value in new.labels.items()}
        metadata = {"name": new.name, "labels": labels | {MARK: new.mark, MANAGED: "true"}}
        workflow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": spec}
        answer = await self._http.ask(
            "POST", f"/api/v1/workflows/{namespace}", {"namespace": namespace, "workflow": workflow}
        )
        if answer.status == 409:
            raise AlreadyThere
        _object(answer)

    async def look(self, workflow: str, name: str) -> Execution | None:
        namespace, _ = self._template(workflow)
        answer = await self._http.ask(
            "GET", f"/api/v1/workflows/{namespace}/{quote(name)}?{urlencode({'fields': _FIELDS})}"
        )
        if answer.status == 404 and isinstance(answer.body, dict) and answer.body.get("code") == _NOT_FOUND:
            return None
        found = _object(answer)
        if (found.get("metadata") or {}).get("name") != name:
            raise EngineDown("the response is not a workflow; check that url is the URL of the server")
        status = found.get("status") or {}
        state: Any = _STATES.get(status.get("phase") or "", "going")
        parameters = (status.get("outputs") or {}).get("parameters") or []
        phase = status.get("phase")
        return Execution(
            state=state,
            mark=(found.get("metadata", {}).get("labels") or {}).get(MARK, ""),
            started_at=epoch_ms(status.get("startedAt")),
            ended_at=epoch_ms(status.get("finishedAt")),
            result={each["name"]: each.get("value") for each in parameters} or None,
            error=f"{phase}: {status.get('message') or 'no reason given'}" if state == "failed" else None,
            detail={"status": phase, "link": f"{self._setting.url}/workflows/{namespace}/{quote(name)}"},
        )

    async def going(self, workflow: str) -> set[str]:
        """Of all templates of its namespace."""
        namespace, _ = self._template(workflow)
        asked = {
            "listOptions.labelSelector": f"{MANAGED}=true,workflows.argoproj.io/completed!=true",
            "listOptions.limit": str(PAGE),
            "fields": "metadata,items.metadata.name",
        }
        found: set[str] = set()
        for _ in range(MOST_PAGES):
            page = _object(await self._http.ask("GET", f"/api/v1/workflows/{namespace}?{urlencode(asked)}"))
            found.update(each["metadata"]["name"] for each in page.get("items") or [])
            following = (page.get("metadata") or {}).get("continue")
            if not following:
                break
            asked["listOptions.continue"] = following
        return found

    async def lists(self, used: Collection[str]) -> Collection[str]:
        """Namespaces, as names of templates in them."""
        return {f"{namespace}/" for namespace in (self._setting.namespace, *(self._template(name)[0] for name in used))}

    async def left(self, listed: str) -> list[tuple[str, str]]:
        return [(listed, name) for name in await self.going(listed)]

    async def stop(self, workflow: str, name: str) -> None:
        namespace, _ = self._template(workflow)
        answer = await self._http.ask(
            "PUT",
            f"/api/v1/workflows/{namespace}/{quote(name)}/terminate",
            {"name": name, "namespace": namespace},
        )
        if answer.status >= 300 and answer.status not in (400, 404, 409):  # 400: it has ended
            raise answer.refused()

    async def hello(self) -> str:
        asked = urlencode({"listOptions.limit": "1", "fields": "metadata"})
        _object(await self._http.ask("GET", f"/api/v1/workflows/{self._setting.namespace}?{asked}"))
        return f"namespace {self._setting.namespace}"

    async def close(self) -> None:
        await self._http.close()

    def _template(self, workflow: str) -> tuple[str, str]:
        namespace, _, template = workflow.rpartition("/")
        return namespace or self._setting.namespace, template


def _parameters(given: dict[str, Any]) -> list[dict[str, str]]:
    """Parameters are texts; what is none goes out as JSON."""
    return [
        {"name": name, "value": value if isinstance(value, str) else msgspec.json.encode(value).decode()}
        for name, value in given.items()
    ]


def _object(answer: HttpAnswer) -> dict[str, Any]:
    if answer.status >= 300:
        raise answer.refused()
    if not isinstance(answer.body, dict):
        raise EngineDown("the response is not JSON; check that url is the URL of the server")
    return answer.body
