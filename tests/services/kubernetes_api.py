"""A stand-in for the API server of a cluster, strict about what it is sent, with a Job controller and a kubelet that
runs pods as processes of this machine.

No API server of a present Kubernetes can be had as a package. Every body is checked against the strict schemas of
`kubernetes-validate`, of the oldest and the newest version that we support, names and labels as the real one does,
parameters by name. It has resource versions, watches with bookmarks, 410 for versions that were compacted, paged lists,
401, 403 and 409, logs with timestamps, and events. It can be restarted (what it knows stays, as in etcd), hang, lose
answers and cut streams.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import yaml
from aiohttp import web

from tests.services.kubernetes_cluster import Cluster
from tests.services.kubernetes_strict import Refused, checked_query, status_body
from tests.services.ports import free_port

__all__ = ["CLUSTER_UID", "TOKEN", "KubernetesServer", "running_kubernetes"]

TOKEN = "token-of-the-node"
CLUSTER_UID = "6f9b0c1e-0000-4000-8000-00000000beef"
JOBS = "/apis/batch/v1/namespaces/{namespace}/jobs"
PODS = "/api/v1/namespaces/{namespace}/pods"
BOOKMARK_EVERY = 0.2
T = TypeVar("T")


class KubernetesServer:
    """From any thread, except what begins with an underscore."""

    def __init__(self, home: Path, tls: tuple[str, str, Path] | None = None) -> None:
        self.home, self.port = home, free_port()
        self.scheme = "http" if tls is None else "https"
        self._tls = tls
        self.tokens = {TOKEN}
        self.denied: set[tuple[str, str]] = set()  # (verb, resource)
        self.uid = CLUSTER_UID
        self._thawed = asyncio.Event()
        self._thawed.set()
        self.lost_answers: Counter[str] = Counter()  # by the beginning of "METHOD path": done, and never told
        self.refusals: dict[str, list[int]] = {}  # by the same: statuses to answer instead
        self.requests: list[str] = []
        self.most_per_page = 500
        self.gone_as_event = True
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kubernetes", daemon=True)
        self._runner: web.AppRunner | None = None
        self._streams: set[asyncio.Task[Any]] = set()
        self._ended: WeakSet[asyncio.Task[Any]] = WeakSet()  # of them: without cutting the connection
        self.cluster = Cluster(home, self._loop)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    # for tests

    def open(self) -> None:
        self._thread.start()
        self.start()

    def start(self) -> None:
        self._run(self._start())

    def stop(self, *, kill: bool = False) -> None:
        self._run(self._stop())

    def restart(self, *, kill: bool = False) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        self.stop()
        self._run(self.cluster.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def freeze(self) -> None:
        """It takes requests, and does not answer."""
        self.call(self._thawed.clear)

    def thaw(self) -> None:
        self.call(self._thawed.set)

    def drop_streams(self) -> None:
        """Watches and logs, in the middle of whatever they say."""
        self.call(lambda: [task.cancel() for task in self._streams])

    def end_watches(self) -> None:
        """In an orderly way, as if they had lasted long enough."""
        self.call(self._end_watches)

    def _end_watches(self) -> None:
        for task in self._streams:
            if task.get_name() == "watch" and task.cancel():
                self._ended.add(task)

    def call(self, what: Callable[[], T]) -> T:
        async def made() -> T:
            return what()

        made_there: T = self._run(made())
        return made_there

    def job(self, name: str, namespace: str = "jobs") -> dict[str, Any] | None:
        return self.call(lambda: self.cluster.objects.get(("jobs", namespace, name)))

    def jobs(self) -> list[str]:
        return self.call(lambda: sorted(name for kind, _, name in self.cluster.objects if kind == "jobs"))

    def count(self, beginning: str) -> int:
        return sum(each.startswith(beginning) for each in list(self.requests))

    def kubeconfig(self, *, token: str | None = TOKEN, namespace: str = "jobs", **user: str) -> Path:
        """A file that leads here."""
        cluster: dict[str, Any] = {"server": self.url}
        if self._tls is not None:
            cluster["certificate-authority"] = str(self._tls[2])
        who = {**user, **({"token": token} if token is not None else {})}
        context = {"cluster": "here", "user": "node", "namespace": namespace}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "main",
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": "node", "user": who}],
            "contexts": [{"name": "main", "context": context}],
        }
        path = self.home / f"kubeconfig-{uuid.uuid4().hex[:8]}"
        path.write_text(yaml.safe_dump(config))
        return path

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    # the server

    async def _start(self) -> None:
        app = web.Application(client_max_size=2 << 20)
        app.add_routes(
            [
                web.get("/version", self._answered(self._version)),
                web.get("/api/v1/namespaces/{name}", self._answered(self._namespace)),
                web.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", self._answered(self._access_review)),
                web.post(JOBS, self._answered(self._create_job)),
                web.get(JOBS, self._answered(self._list_jobs)),
                web.get(JOBS + "/{name}", self._answered(self._get_job)),
                web.delete(JOBS + "/{name}", self._answered(self._delete_job)),
                web.get(PODS, self._answered(self._list_pods)),
                web.get(PODS + "/{name}/log", self._answered(self._log)),
                web.get("/api/v1/namespaces/{namespace}/events", self._answered(self._list_events)),
            ]
        )
        self._runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=0.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._ssl(), reuse_address=True).start()

    def _ssl(self) -> ssl.SSLContext | None:
        if self._tls is None:
            return None
        cert, key, authority = self._tls
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        context.load_verify_locations(authority)
        context.verify_mode = ssl.CERT_OPTIONAL
        return context

    async def _stop(self) -> None:
        self._thawed.set()
        for task in list(self._streams):
            task.cancel()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _answered(self, handler: Callable[[web.Request], Any]) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.StreamResponse:
            said = f"{request.method} {request.path_qs}"
            self.requests.append(said)
            await self._thawed.wait()
            try:
                self._authenticated(request)
                self._refuse(said)
                response: web.StreamResponse = await handler(request)
            except Refused as refused:
                response = web.json_response(status_body(refused), status=refused.status)
            for beginning in [each for each, left in self.lost_answers.items() if left and said.startswith(each)]:
                self.lost_answers[beginning] -= 1
                assert request.transport is not None
                request.transport.abort()
            return response

        return answer

    def _refuse(self, said: str) -> None:
        for beginning, statuses in self.refusals.items():
            if said.startswith(beginning) and statuses:
                raise Refused(statuses.pop(0), "Planned", "as the test wants it")

    def _authenticated(self, request: web.Request) -> None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        transport = request.transport
        peer = transport.get_extra_info("peercert") if transport is not None else None
        if not peer and (kind != "Bearer" or token not in self.tokens):
            raise Refused(401, "Unauthorized", "Unauthorized")

    def _authorized(self, verb: str, resource: str) -> None:
        if (verb, resource) in self.denied:
            message = f'{resource} is forbidden: User "node" cannot {verb} resource "{resource}"'
            raise Refused(403, "Forbidden", message)

    # what it answers

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"major": "1", "minor": "33", "gitVersion": "v1.33.1"})

    async def _namespace(self, request: web.Request) -> web.Response:
        self._authorized("get", "namespaces")
        meta = {"name": request.match_info["name"], "uid": self.uid}
        return web.json_response({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})

    async def _access_review(self, request: web.Request) -> web.Response:
        body = await self.cluster.strictly(await request.read())
        asked = body["spec"]["resourceAttributes"]
        name = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        allowed = (asked["verb"], name) not in self.denied
        return web.json_response({**body, "status": {"allowed": allowed}}, status=201)

    async def _create_job(self, request: web.Request) -> web.Response:
        self._authorized("create", "jobs")
        query = checked_query(request, {"fieldValidation", "fieldManager"})
        if query.get("fieldValidation") != "Strict":
            raise Refused(400, "BadRequest", "this test wants strict field validation")
        body = await self.cluster.strictly(await request.read())
        return web.json_response(self.cluster.create_job(request.match_info["namespace"], body), status=201)

    async def _get_job(self, request: web.Request) -> web.Response:
        self._authorized("get", "jobs")
        checked_query(request, set())
        return web.json_response(self.cluster.get("jobs", **request.match_info))

    async def _delete_job(self, request: web.Request) -> web.Response:
        self._authorized("delete", "jobs")
        checked_query(request, set())
        options = await self.cluster.strictly(await request.read())
        return web.json_response(self.cluster.delete_job(options=options, **request.match_info))

    async def _list_jobs(self, request: web.Request) -> web.StreamResponse:
        return await self._list(request, "jobs", "batch/v1", "JobList")

    async def _list_pods(self, request: web.Request) -> web.StreamResponse:
        return await self._list(request, "pods", "v1", "PodList")

    async def _list_events(self, request: web.Request) -> web.StreamResponse:
        return await self._list(request, "events", "v1", "EventList")

    async def _list(self, request: web.Request, kind: str, version: str, name: str) -> web.StreamResponse:
        known = {"labelSelector", "fieldSelector", "limit", "continue"}
        watch_only = {"watch", "resourceVersion", "allowWatchBookmarks", "timeoutSeconds"}
        query = checked_query(request, known | watch_only)
        self._authorized("watch" if query.get("watch") else "list", kind)
        if query.get("watch"):
            if not self.gone_as_event and int(query["resourceVersion"]) < self.cluster.compacted:
                raise self._gone(int(query["resourceVersion"]))
            return await self._streamed(request, self._watch(request, kind, query))
        namespace = request.match_info["namespace"]
        found = self.cluster.select(kind, namespace, query.get("labelSelector"), query.get("fieldSelector"))
        first = int(query.get("continue") or 0)
        size = min(int(query.get("limit", "500")), self.most_per_page)
        meta: dict[str, Any] = {"resourceVersion": str(self.cluster.version)}
        if first + size < len(found):
            meta["continue"] = str(first + size)
        items = found[first : first + size]
        return web.json_response({"apiVersion": version, "kind": name, "metadata": meta, "items": items})

    def _gone(self, version: int) -> Refused:
        return Refused(410, "Expired", f"too old resource version: {version} ({self.cluster.compacted})")

    async def _streamed(self, request: web.Request, stream: Any) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "application/json"})
        await response.prepare(request)
        name = "watch" if "watch" in request.query else "log"
        task = asyncio.create_task(self._copied(stream, response), name=name)
        self._streams.add(task)
        try:
            await asyncio.wait({task})
            if task.cancelled() and task not in self._ended and request.transport is not None:
                request.transport.abort()
        finally:
            self._streams.discard(task)
            task.cancel()
            await stream.aclose()
        return response

    @staticmethod
    async def _copied(stream: Any, response: web.StreamResponse) -> None:
        async for line in stream:
            await response.write(line)

    async def _watch(self, request: web.Request, kind: str, query: dict[str, str]) -> Any:
        cluster, namespace = self.cluster, request.match_info["namespace"]
        seen = int(query["resourceVersion"])
        if seen < cluster.compacted:
            yield json.dumps({"type": "ERROR", "object": status_body(self._gone(seen))}).encode() + b"\n"
            return
        ends = self._loop.time() + float(query.get("timeoutSeconds", "1800"))
        while (left := ends - self._loop.time()) > 0:
            changed = cluster.changed
            for event in cluster.since(seen, kind, namespace, query.get("labelSelector")):
                yield json.dumps(event).encode() + b"\n"
            seen = cluster.version
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, BOOKMARK_EVERY)):
                    await changed.wait()
                continue
            if query.get("allowWatchBookmarks") == "true":
                meta = {"resourceVersion": str(seen)}
                yield json.dumps({"type": "BOOKMARK", "object": {"kind": kind, "metadata": meta}}).encode() + b"\n"

    async def _log(self, request: web.Request) -> web.StreamResponse:
        self._authorized("get", "pods/log")
        known = {"container", "follow", "timestamps", "sinceTime", "tailLines"}
        query = checked_query(request, known)
        pod = self.cluster.running(request.match_info["namespace"], request.match_info["name"], query["container"])
        return await self._streamed(request, pod.log(query))


@contextmanager
def running_kubernetes(home: Path, tls: tuple[str, str, Path] | None = None) -> Iterator[KubernetesServer]:
    """`tls`: the files of its certificate and key, and of the authority that it trusts."""
    server = KubernetesServer(home, tls)
    server.open()
    try:
        yield server
    finally:
        server.close()
