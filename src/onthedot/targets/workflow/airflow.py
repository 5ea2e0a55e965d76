"""Airflow by its REST API: version 2 (Airflow 3), or 1 (Airflow 2) where there is no other.

A DAG run has the name as its id, the input as its `conf`, and the mark in its note.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from onthedot.settings import WorkflowSetting
from onthedot.targets.workflow.engine import AlreadyThere, EngineDown, Execution, NewExecution, StartRefused
from onthedot.targets.workflow.http import EngineApi, HttpAnswer

__all__ = ["Airflow", "epoch_ms"]

PAGE, MOST_PAGES = 100, 20
_DAG = re.compile(r"[\w.-]{1,250}")
_MARK = re.compile(r"\[([0-9a-f]{32})\]")
_GOING = ("queued", "running")
_ALL = "~"


class Airflow:
    title = "Airflow"
    former_place: str | None = None

    def __init__(self, name: str, setting: WorkflowSetting) -> None:
        self.address, self.place = setting.url, f"{name}@{setting.host}"
        self._setting = setting
        self._http = EngineApi(setting)
        self._version: int | None = None

    def problem(self, workflow: str) -> tuple[str, str] | None:
        return None if _DAG.fullmatch(workflow) else ("not the ID of a DAG", "letters, digits, ., _ and -")

    async def start(self, new: NewExecution) -> None:
        body: dict[str, Any] = {
            "dag_run_id": new.name,
            "conf": new.input,
            "note": f"Started by On the Dot, {_words(new.labels)} [{new.mark}]",
        }
        if await self._found_version() == 2:
            body["logical_date"] = None
        answer = await self._ask("POST", f"/dags/{quote(new.workflow)}/dagRuns", body)
        if answer.status == 409:
            raise AlreadyThere
        if answer.status not in (200, 201):
            raise answer.refused()

    async def look(self, workflow: str, name: str) -> Execution | None:
        answer = await self._ask("GET", self._path(workflow, name))
        if answer.status == 404:
            await self._check_it_is_there()
            answer = await self._ask("GET", self._path(workflow, name))  # it may have been back only since
            if answer.status == 404:
                return None
        found = _object(answer)
        if found.get("dag_run_id") != name:
            raise EngineDown("the response is not a DAG run; check that url is the URL of the API")
        state = found.get("state")
        mark = _MARK.search(found.get("note") or "")
        execution = Execution(
            state="going" if state in _GOING else "ok" if state == "success" else "failed",
            mark=mark[1] if mark else None,
            input=found.get("conf"),
            started_at=epoch_ms(found.get("start_date")),
            ended_at=epoch_ms(found.get("end_date")),
            detail={"status": state, "link": self._link(workflow, name)},
        )
        if execution.state != "failed":
            return execution
        return _with_error(execution, await self._failed_tasks(workflow, name))

    async def _failed_tasks(self, workflow: str, name: str) -> str:
        """Airflow says of a DAG run only that it failed."""
        try:
            answer = await self._ask("GET", f"{self._path(workflow, name)}/taskInstances?state=failed&limit=5")
            tasks = [task["task_id"] for task in _object(answer)["task_instances"]]
        except (EngineDown, StartRefused, KeyError, TypeError):
            tasks = []
        return f"tasks failed: {', '.join(tasks)}" if tasks else "no task has failed: it was marked so, or timed out"

    async def going(self, workflow: str) -> set[str]:
        return {each["dag_run_id"] for each in await self._listed({"dag_ids": [workflow]})}

    async def lists(self, used: Collection[str]) -> Collection[str]:
        return (_ALL,)

    async def left(self, listed: str) -> list[tuple[str, str]]:
        """Of all DAGs that the login may see, what has a mark."""
        runs = await self._listed({})
        return [(each["dag_id"], each["dag_run_id"]) for each in runs if _MARK.search(each.get("note") or "")]

    async def _listed(self, which: dict[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for number in range(MOST_PAGES):
            body = which | {"states": list(_GOING), "page_limit": PAGE, "page_offset": number * PAGE}
            page = _object(await self._ask("POST", f"/dags/{_ALL}/dagRuns/list", body)).get("dag_runs") or []
            found += page
            if len(page) < PAGE:
                break
        return found

    async def _check_it_is_there(self) -> None:
        """A proxy, or an Airflow that has left the version of the API which we use, does not find anything."""
        try:
            await self.hello()
        except StartRefused:
            self._version = None  # it is found out anew
            raise

    async def stop(self, workflow: str, name: str) -> None:
        found = await self.look(workflow, name)
        if found is None or found.state != "going":
            return
        answer = await self._ask("PATCH", self._path(workflow, name), {"state": "failed"})
        if answer.status not in (200, 404, 409):
            raise answer.refused()

    async def hello(self) -> str:
        version = await self._found_version()
        _object(await self._ask("GET", "/dags?limit=1"))
        return f"API version {version}"

    async def close(self) -> None:
        await self._http.close()

    def _path(self, workflow: str, name: str) -> str:
        return f"/dags/{quote(workflow)}/dagRuns/{quote(name)}"

    def _link(self, workflow: str, name: str) -> str:
        run = f"/runs/{quote(name)}" if self._version == 2 else f"/grid?dag_run_id={quote(name)}"
        return f"{self._setting.url}/dags/{quote(workflow)}{run}"

    async def _found_version(self) -> int:
        if self._version is None:
            answer = await self._http.ask("GET", "/api/v2/version", login=False)
            self._version = 1 if answer.status == 404 else 2
            self._http.basic = self._version == 1
        return self._version

    async def _ask(self, method: str, path: str, body: Any = None) -> HttpAnswer:
        version = await self._found_version()
        makes_token = version == 2 and self._setting.user is not None
        if makes_token and self._http.token is None:
            await self._make_token()
        answer = await self._http.ask(method, f"/api/v{version}{path}", body)
        if answer.status == 401 and makes_token:  # tokens are good for a day
            await self._make_token()
            answer = await self._http.ask(method, f"/api/v{version}{path}", body)
        return answer

    async def _make_token(self) -> None:
        body = {"username": self._setting.user, "password": self._setting.secret("password")}
        answer = await self._http.ask("POST", "/auth/token", body, login=False)
        token = answer.body.get("access_token") if isinstance(answer.body, dict) else None
        if answer.status not in (200, 201) or not isinstance(token, str):
            raise answer.refused()
        self._http.token = token


def _words(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in labels.items())


def _object(answer: HttpAnswer) -> dict[str, Any]:
    if answer.status >= 300:
        raise answer.refused()
    if not isinstance(answer.body, dict):
        raise EngineDown("the response is not JSON; check that url is the URL of the API")
    return answer.body


def _with_error(execution: Execution, error: str) -> Execution:
    return Execution(
        state=execution.state,
        mark=execution.mark,
        input=execution.input,
        started_at=execution.started_at,
        ended_at=execution.ended_at,
        error=error,
        detail=execution.detail,
    )


def epoch_ms(text: Any) -> int | None:
    """Of an instant as RFC 3339 writes it."""
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (TypeError, ValueError):
        return None
