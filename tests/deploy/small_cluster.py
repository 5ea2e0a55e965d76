"""A stand-in for a cluster that helm and kubectl talk to: `python -m tests.deploy.small_cluster PORT HOME`.

It keeps objects, checks each against the strict schemas of the oldest and the newest Kubernetes that we support, and
answers for controllers and a kubelet: the container of a Job, and those of the witness, run here as processes with the
environment of the pod; other pods are only said to be ready. No byte goes through a forwarded port.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml
from aiohttp import web

from tests.services.process import COMMAND
from tests.services.waiting import until

Object = dict[str, Any]
Key = tuple[str, str, str]  # group/version/resource, namespace, name
VERSIONS = ("1.29", "1.37")
KINDS = {
    "v1": {
        "namespaces": "Namespace",
        "secrets": "Secret",
        "services": "Service",
        "serviceaccounts": "ServiceAccount",
        "configmaps": "ConfigMap",
        "pods": "Pod",
    },
    "apps/v1": {"deployments": "Deployment", "replicasets": "ReplicaSet"},
    "batch/v1": {"jobs": "Job"},
    "policy/v1": {"poddisruptionbudgets": "PodDisruptionBudget"},
    "networking.k8s.io/v1": {"networkpolicies": "NetworkPolicy", "ingresses": "Ingress"},
}
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
PATH = re.compile(r"/(?:api|apis)/(v1|[^/]+/v1)(?:/namespaces/([^/]+)(?=/.))?/([^/]+)(?:/([^/]+))?(?:/([^/]+))?")
LOAD = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/onthedot/pods/*/onthedot_load"
ADAPTER_RULE = {"matches": "^onthedot_load$", "as": "onthedot_load"}


class SmallCluster:
    def __init__(self, home: Path) -> None:
        self._home = home
        self._objects: dict[Key, Object] = {}
        self._version = 1
        self._changed = asyncio.Condition()
        self._history: list[tuple[int, str, Key, Object]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._processes: list[asyncio.subprocess.Process] = []

    async def close(self, _: web.Application) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.kill()
        os._exit(0)  # what is still watched, followed or forwarded would go on

    async def answer(self, request: web.Request) -> web.StreamResponse:
        sys.stdout.write(f"{request.method} {request.path_qs}\n")
        path = request.path.rstrip("/")
        if told := _discovered(path):
            return web.json_response(told)
        if path == LOAD:
            return self._loads()
        found = PATH.fullmatch(path)
        if found is None or found[3] not in KINDS.get(found[1], {}):
            return _refused(404, "NotFound", f"nothing at {path}")
        version, namespace, resource, name, part = found.groups()
        if resource == "namespaces":
            namespace = None
        key = (f"{version}/{resource}", namespace or "", name or "")
        if part == "log":
            return await self._log(request, key)
        if part == "portforward":
            return await _forwarded(request)
        return await self._about(request, key, KINDS[version][resource])

    async def _about(self, request: web.Request, key: Key, kind: str) -> web.StreamResponse:
        if request.method == "GET" and not key[2]:
            return await self._listed(request, key, kind)
        if request.method == "GET":
            found = self._objects.get(key)
            return web.json_response(found) if found else _missing(key)
        if request.method == "DELETE":
            found = self._objects.pop(key, None)
            if found is None:
                return _missing(key)
            await self._told("DELETED", key, found)
            return web.json_response(found)
        body = _body(await request.read())
        key = (key[0], key[1], key[2] or body["metadata"]["name"])
        there = self._objects.get(key)
        if request.method == "POST" and there:
            return _refused(409, "AlreadyExists", f'{key[0]} "{key[2]}" already exists')
        if key[1] and ("v1/namespaces", "", key[1]) not in self._objects:
            return _refused(404, "NotFound", f'namespaces "{key[1]}" not found')
        merge = request.method == "PATCH" and request.content_type != "application/apply-patch+yaml"
        wanted: Object = {**(there or {}), **body} if merge else body
        try:
            for version in VERSIONS:
                kubernetes_validate.validate(wanted, version, strict=True)
        except kubernetes_validate.ValidationError as wrong:
            return _refused(422, "Invalid", wrong.message)
        wanted["metadata"] |= {"uid": f"uid-{self._version}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        if key[1]:
            wanted["metadata"]["namespace"] = key[1]
        if kind == "Secret":
            texts = wanted.pop("stringData", {})
            encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
            wanted["data"] = wanted.get("data", {}) | encoded
        await self._keep(key, wanted)
        if kind in ("Job", "Deployment") and not there:
            task = asyncio.create_task(self._controlled(key, wanted, kind))
            self._tasks.add(task)
        return web.json_response(wanted, status=201 if not there else 200)

    async def _keep(self, key: Key, wanted: Object) -> None:
        event = "MODIFIED" if key in self._objects else "ADDED"
        self._version += 1
        wanted["metadata"]["resourceVersion"] = str(self._version)
        self._objects[key] = wanted
        await self._told(event, key, wanted)

    async def _told(self, event: str, key: Key, found: Object) -> None:
        async with self._changed:
            self._history.append((self._version, event, key, json.loads(json.dumps(found))))
            self._changed.notify_all()

    async def _listed(self, request: web.Request, key: Key, kind: str) -> web.StreamResponse:
        def fits(at: Key, found: Object) -> bool:
            return at[0] == key[0] and key[1] in ("", at[1]) and _selected(request, found)

        version = key[0].rpartition("/")[0]
        if "watch" not in request.query:
            items = [each for at, each in self._objects.items() if fits(at, each)]
            listed = {"resourceVersion": str(self._version)}
            return web.json_response({"apiVersion": version, "kind": f"{kind}List", "metadata": listed, "items": items})
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        first = request.query.get("sendInitialEvents") == "true"
        since = int(request.query.get("resourceVersion") or 0)
        if first:
            since = self._version
            for at, each in list(self._objects.items()):
                if fits(at, each):
                    await _say(response, "ADDED", each)
            noted = {"resourceVersion": str(since), "annotations": {"k8s.io/initial-events-end": "true"}}
            await _say(response, "BOOKMARK", {"apiVersion": version, "kind": kind, "metadata": noted})
        async for event, at, found in self._events(since):
            if fits(at, found):
                await _say(response, event, found)
        return response

    async def _events(self, since: int) -> AsyncIterator[tuple[str, Key, Object]]:
        seen = sum(number <= since for number, *_ in self._history)
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda seen=seen: len(self._history) > seen)  # type: ignore[misc]
            for _, event, at, found in self._history[seen:]:
                yield event, at, found
            seen = len(self._history)

    async def _controlled(self, key: Key, owner: Object, kind: str) -> None:
        """What controllers and a kubelet make of it."""
        template, count = owner["spec"]["template"], owner["spec"].get("replicas", 1)
        for number in range(count):
            name = f"{key[2]}-{number}"
            metadata = {"name": name, "namespace": key[1], "labels": template["metadata"]["labels"]}
            state = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"], "status": state}
            await self._keep(("v1/pods", key[1], name), pod)
            if kind == "Job" or "witness" in key[2]:
                process = await self._started(name, key[1], template["spec"]["containers"][0])
                if kind == "Job":
                    done = await process.wait() == 0
                    conditions = [{"type": "Complete" if done else "Failed", "status": "True"}]
                    began = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:00:01Z"}
                    owner["status"] = {**began, "conditions": conditions, "succeeded": int(done), "active": 0}
        if kind == "Deployment":
            owner["status"] = {"replicas": count, "readyReplicas": count, "availableReplicas": count}
        if self._objects.get(key) is owner:
            await self._keep(key, owner)

    async def _started(self, name: str, namespace: str, container: Object) -> asyncio.subprocess.Process:
        env = {"PATH": os.environ["PATH"], "HOME": str(self._home)}
        for entry in container["env"]:
            if "value" in entry:
                env[entry["name"]] = entry["value"]
            elif wanted := entry["valueFrom"].get("secretKeyRef"):
                secret = self._objects[("v1/secrets", namespace, wanted["name"])]["data"]
                if wanted["key"] in secret:
                    env[entry["name"]] = base64.b64decode(secret[wanted["key"]]).decode()
        program, *_ = container["command"]
        assert program == "onthedot"
        with (self._home / f"{name}.log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                COMMAND, *container["args"], cwd=self._home, env=env, stdout=log, stderr=log
            )
        self._processes.append(process)
        return process

    async def _log(self, request: web.Request, key: Key) -> web.StreamResponse:
        log = self._home / f"{key[2]}.log"
        if not log.exists():
            return _missing(key)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        with log.open("rb") as lines:
            await response.write(lines.read())
            while request.query.get("follow") == "true":
                await response.write(await until(lines.read, "more of the log", within=3600))
        return response

    def _loads(self) -> web.Response:
        """What the adapter would serve, once it has been given its rule."""
        texts = [
            text for key, each in self._objects.items() if key[0] == "v1/configmaps" for text in each["data"].values()
        ]
        rules = [rule for text in texts for rule in (yaml.safe_load(text) or {}).get("rules", [])]
        if not any(rule.get("name") == ADAPTER_RULE for rule in rules):
            return _refused(404, "NotFound", "no such metric")
        described = {"kind": "Pod", "namespace": "onthedot", "name": "onthedot-executor-0", "apiVersion": "/v1"}
        item = {"describedObject": described, "metricName": "onthedot_load", "value": "250m"}
        return web.json_response(
            {"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta1", "metadata": {}, "items": [item]}
        )


def _discovered(path: str) -> Object | None:
    if path == "/version":
        return {"major": "1", "minor": "37", "gitVersion": "v1.37.0"}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        named = [version.split("/") for version in KINDS if "/" in version]
        groups = [
            {"name": group, "versions": [each], "preferredVersion": each}
            for group, version in named
            for each in [{"groupVersion": f"{group}/{version}", "version": version}]
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
    if path == "/openapi/v3":
        return {"paths": {at: {"serverRelativeURL": f"/openapi/v3/{at}?hash=1"} for at in map(_root, KINDS)}}
    if path.startswith("/openapi/v3/"):
        return _described(path.removeprefix("/openapi/v3/"))
    version = path.removeprefix("/apis/").removeprefix("/api/")
    if version not in KINDS:
        return None
    resources = [
        {"name": name, "singularName": kind.lower(), "namespaced": kind != "Namespace", "kind": kind, "verbs": VERBS}
        for name, kind in KINDS[version].items()
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": resources}


def _root(version: str) -> str:
    return f"apis/{version}" if "/" in version else f"api/{version}"


def _described(at: str) -> Object:
    """Only that fields are validated here, so that nobody does it himself."""
    (version,) = [each for each in KINDS if _root(each) == at]
    *group, number = version.split("/")
    paths = {}
    for name, kind in KINDS[version].items():
        known = {"group": "".join(group), "version": number, "kind": kind}
        parameters = [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}]
        told = {"x-kubernetes-group-version-kind": known, "parameters": parameters, "responses": {}}
        paths[f"/{at}/{name}/{{name}}"] = {"patch": told}
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.37.0"}, "paths": paths}


def _body(content: bytes) -> Object:
    """YAML, JSON, or what kubectl sends of Namespaces and Secrets: protobuf in an envelope."""
    if not content.startswith(b"k8s\0"):
        loaded: Object = yaml.safe_load(content)
        return loaded
    envelope = dict(_fields(content[4:]))
    version, kind = (text.decode() for _, text in _fields(envelope[1]))
    inside = list(_fields(envelope[2]))
    metadata = {number: text for number, text in _fields(dict(inside)[1]) if number in (1, 3)}
    body: Object = {"apiVersion": version, "kind": kind, "metadata": {"name": metadata[1].decode()}}
    if kind == "Secret":
        pairs = [dict(_fields(text)) for number, text in inside if number == 2]
        body["data"] = {pair[1].decode(): base64.b64encode(pair[2]).decode() for pair in pairs}
        body["type"] = dict(inside)[3].decode() if 3 in dict(inside) else "Opaque"
    else:
        assert kind == "Namespace", kind
    return body


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Of a protobuf message: number and bytes of each field that has bytes."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = number()
        size = number()
        if tag & 7 == 2:
            yield tag >> 3, message[at : at + size]
            at += size


def _selected(request: web.Request, found: Object) -> bool:
    labels, name = found["metadata"].get("labels", {}), found["metadata"]["name"]
    field = request.query.get("fieldSelector", "")
    if field.startswith("metadata.name=") and field != f"metadata.name={name}":
        return False
    for each in filter(None, re.split(r",(?![^(]*\))", request.query.get("labelSelector", ""))):
        if inside := re.fullmatch(r"(\S+) in \((.*)\)", each):
            if labels.get(inside[1]) not in inside[2].split(","):
                return False
        else:
            label, value = re.split("==?", each, maxsplit=1)
            if labels.get(label) != value:
                return False
    return True


async def _say(response: web.StreamResponse, event: str, found: Object) -> None:
    await response.write(json.dumps({"type": event, "object": found}).encode() + b"\n")


async def _forwarded(request: web.Request) -> web.StreamResponse:
    """The protocol is changed, and nothing more is said."""
    assert request.transport is not None
    request.transport.write(
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
        b"X-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n"
    )
    await asyncio.Event().wait()  # until the client hangs up
    return web.Response()


def _missing(key: Key) -> web.Response:
    return _refused(404, "NotFound", f'{key[0].rpartition("/")[2]} "{key[2]}" not found')


def _refused(code: int, reason: str, message: str) -> web.Response:
    told = {"apiVersion": "v1", "kind": "Status", "status": "Failure"}
    return web.json_response({**told, "reason": reason, "message": message, "code": code}, status=code)


def main() -> None:
    port, home = int(sys.argv[1]), Path(sys.argv[2])
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    app = web.Application(client_max_size=2**24)
    cluster = SmallCluster(home)
    app.router.add_route("*", "/{path:.*}", cluster.answer)
    app.on_shutdown.append(cluster.close)
    web.run_app(app, host="127.0.0.1", port=port, print=None, shutdown_timeout=0)


if __name__ == "__main__":
    main()
