"""Airflow (both versions of its API) and the server of Argo Workflows, as their APIs answer: small and strict. What is
not known, a wrong login and a field that the real one does not have are refused. They can be restarted."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Self

from aiohttp import web

__all__ = ["FakeAirflow", "FakeArgo"]

TOKEN, USER, PASSWORD = "a-token", "scheduler", "a password"


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


class _Server:
    """In this process, on a port that it keeps when it is restarted."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.swallows = 0  # so many answers to what was done are not given
        self.refuses: tuple[int, str] | None = None  # with this status, what has this in its path
        self._port = 0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def routes(self) -> list[web.RouteDef]:
        raise NotImplementedError

    async def start(self) -> None:
        app = web.Application()
        app.router.add_routes(self.routes())
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    def told(self, request: web.Request) -> None:
        self.requests.append(f"{request.method} {request.path}")

    def refused(self, request: web.Request) -> web.Response | None:
        if self.refuses is None or self.refuses[1] not in request.path:
            return None
        return _refused(self.refuses[0], "as the test wants it")

    def answer(self, request: web.Request, body: Any, status: int = 200) -> web.Response:
        if self.swallows and request.method == "POST":
            self.swallows -= 1
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(body, status=status)


Handler = Callable[[web.Request], Awaitable[web.Response]]


def _refused(status: int, why: str) -> web.Response:
    return web.json_response({"title": why, "status": status, "detail": why}, status=status)


class FakeAirflow(_Server):
    """`dags` that there are; `runs` by dag and id."""

    def __init__(self, version: int = 2) -> None:
        super().__init__()
        self.version = version
        self.dags = {"nightly"}
        self.runs: dict[str, dict[str, Any]] = {}
        self.tokens = {TOKEN}
        self.failed_tasks: list[str] = []

    def routes(self) -> list[web.RouteDef]:
        base = f"/api/v{self.version}"
        found = [
            web.get(f"{base}/dags", self._guarded(self._dags)),
            web.post(f"{base}/dags/~/dagRuns/list", self._guarded(self._list)),
            web.post(f"{base}/dags/{{dag}}/dagRuns", self._guarded(self._trigger)),
            web.get(f"{base}/dags/{{dag}}/dagRuns/{{run}}", self._guarded(self._read)),
            web.patch(f"{base}/dags/{{dag}}/dagRuns/{{run}}", self._guarded(self._change)),
            web.get(f"{base}/dags/{{dag}}/dagRuns/{{run}}/taskInstances", self._guarded(self._tasks)),
        ]
        if self.version == 2:
            found += [web.get("/api/v2/version", self._version), web.post("/auth/token", self._token)]
        else:
            found += [web.get("/api/v1/version", self._version)]
        return found

    def end(self, name: str, state: str = "success") -> None:
        self.runs[name] |= {"state": state, "end_date": _now()}

    def _guarded(self, handle: Handler) -> Handler:
        async def guard(request: web.Request) -> web.Response:
            self.told(request)
            kind, _, given = request.headers.get("authorization", "").partition(" ")
            basic = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            known = (kind == "Bearer" and given in self.tokens) or (
                kind == "Basic" and self.version == 1 and given == basic
            )
            if not known:
                return _refused(401, "Unauthorized")
            return self.refused(request) or await handle(request)

        return guard

    async def _version(self, request: web.Request) -> web.Response:
        version = "3.1.0" if self.version == 2 else "2.10.4"
        return web.json_response({"version": version, "git_version": None})

    async def _token(self, request: web.Request) -> web.Response:
        if await request.json() != {"username": USER, "password": PASSWORD}:
            return _refused(401, "Invalid credentials")
        token = f"jwt{len(self.tokens)}"
        self.tokens.add(token)
        return web.json_response({"access_token": token}, status=201)

    async def _dags(self, request: web.Request) -> web.Response:
        return web.json_response({"dags": [], "total_entries": 0})

    async def _trigger(self, request: web.Request) -> web.Response:
        dag, body = request.match_info["dag"], await request.json()
        fields = {"dag_run_id", "conf", "note"} | ({"logical_date"} if self.version == 2 else set())
        if set(body) != fields or not isinstance(body["conf"], dict):
            return _refused(422 if self.version == 2 else 400, f"fields {sorted(body)}")
        if dag not in self.dags:
            return _refused(404, f"The DAG with dag_id: `{dag}` was not found")
        name = body["dag_run_id"]
        if name in self.runs:
            return _refused(409, "DAGRun already exists")
        self.runs[name] = {
            "dag_id": dag,
            "dag_run_id": name,
            "conf": body["conf"],
            "note": body["note"],
            "state": "queued",
            "start_date": _now(),
            "end_date": None,
        }
        return self.answer(request, self.runs[name])

    async def _read(self, request: web.Request) -> web.Response:
        found = self.runs.get(request.match_info["run"])
        return _refused(404, "DAGRun not found") if found is None else web.json_response(found)

    async def _change(self, request: web.Request) -> web.Response:
        if await request.json() != {"state": "failed"}:
            return _refused(400, "not a state")
        found = self.runs.get(request.match_info["run"])
        if found is None:
            return _refused(404, "DAGRun not found")
        self.end(found["dag_run_id"], "failed")
        return web.json_response(found)

    async def _list(self, request: web.Request) -> web.Response:
        body = await request.json()
        if set(body) - {"dag_ids"} != {"states", "page_limit", "page_offset"} or body["page_limit"] > 100:
            return _refused(400, f"fields {sorted(body)}")
        dags = body.get("dag_ids", self.dags)
        found = [run for run in self.runs.values() if run["dag_id"] in dags and run["state"] in body["states"]]
        page = found[body["page_offset"] : body["page_offset"] + body["page_limit"]]
        return web.json_response({"dag_runs": page, "total_entries": len(found)})

    async def _tasks(self, request: web.Request) -> web.Response:
        assert request.query["state"] == "failed"
        return web.json_response({"task_instances": [{"task_id": name} for name in self.failed_tasks]})


class FakeArgo(_Server):
    """`templates` that there are; `workflows` by name."""

    def __init__(self) -> None:
        super().__init__()
        self.templates = {"jobs/report"}
        self.workflows: dict[str, dict[str, Any]] = {}

    def routes(self) -> list[web.RouteDef]:
        base = "/api/v1/workflows/{namespace}"
        return [
            web.post(base, self._guarded(self._create)),
            web.get(base, self._guarded(self._list)),
            web.get(f"{base}/{{name}}", self._guarded(self._read)),
            web.put(f"{base}/{{name}}/terminate", self._guarded(self._terminate)),
            web.get("/api/v1/version", self._guarded(self._version)),
            web.get("/api/{rest:.*}", self._unknown),
        ]

    def end(self, name: str, phase: str = "Succeeded", **status: Any) -> None:
        found = self.workflows[name]
        found["metadata"]["labels"]["workflows.argoproj.io/completed"] = "true"
        found["status"] |= {"phase": phase, "finishedAt": _now(), **status}

    def _guarded(self, handle: Handler) -> Handler:
        async def guard(request: web.Request) -> web.Response:
            self.told(request)
            if request.headers.get("authorization") != f"Bearer {TOKEN}":
                return web.json_response({"code": 16, "message": "token not valid"}, status=401)
            return self.refused(request) or await handle(request)

        return guard

    async def _version(self, request: web.Request) -> web.Response:
        about = {"version": "v3.6.2", "buildDate": "2024-12-02T14:00:00Z", "gitTreeState": "clean"}
        return web.json_response(about | {"platform": "linux/amd64"})

    async def _unknown(self, request: web.Request) -> web.Response:
        return web.json_response({"code": 5, "message": "Not Found", "details": []}, status=404)

    async def _create(self, request: web.Request) -> web.Response:
        body, namespace = await request.json(), request.match_info["namespace"]
        workflow = body["workflow"]
        spec = workflow["spec"]
        assert set(body) == {"namespace", "workflow"}, body
        assert set(workflow) == {"apiVersion", "kind", "metadata", "spec"}, workflow
        assert set(workflow["metadata"]) == {"name", "labels"}, workflow
        assert not set(spec) - {"workflowTemplateRef", "arguments", "activeDeadlineSeconds"}, spec
        assert all(len(label) <= 63 for label in workflow["metadata"]["labels"].values())
        template, name = spec["workflowTemplateRef"]["name"], workflow["metadata"]["name"]
        if f"{namespace}/{template}" not in self.templates:
            message = f'workflowtemplates.argoproj.io "{template}" not found'
            return web.json_response({"code": 5, "message": message}, status=404)
        if name in self.workflows:
            message = f'workflows.argoproj.io "{name}" already exists'
            return web.json_response({"code": 6, "message": message}, status=409)
        workflow["status"] = {"phase": "Running", "startedAt": _now()}
        self.workflows[name] = workflow
        return self.answer(request, workflow)

    async def _read(self, request: web.Request) -> web.Response:
        found = self.workflows.get(request.match_info["name"])
        if found is None:
            return web.json_response({"code": 5, "message": "not found"}, status=404)
        return web.json_response(found)

    async def _list(self, request: web.Request) -> web.Response:
        wanted = request.query.get("listOptions.labelSelector")
        if wanted not in (None, "onthedot/managed=true,workflows.argoproj.io/completed!=true"):
            return web.json_response({"code": 3, "message": "unable to parse requirement"}, status=400)
        going = [
            {"metadata": {"name": name}}
            for name, found in self.workflows.items()
            if "workflows.argoproj.io/completed" not in found["metadata"]["labels"]
        ]
        first, most = int(request.query.get("listOptions.continue", "0")), int(request.query["listOptions.limit"])
        page, following = going[first : first + most], first + most
        more = {"continue": str(following)} if following < len(going) else {}
        return web.json_response({"metadata": more, "items": page or None})

    async def _terminate(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if await request.json() != {"name": name, "namespace": request.match_info["namespace"]}:
            return web.json_response({"code": 3, "message": "not valid"}, status=400)
        if name not in self.workflows:
            return web.json_response({"code": 5, "message": "not found"}, status=404)
        self.end(name, "Failed", message="Stopped with strategy 'Terminate'")
        return web.json_response(self.workflows[name])
