"""What is behind the stand-in for an API server: its objects with their versions, a controller that makes one pod for
each Job, and a kubelet that runs pods as processes of this machine."""

from __future__ import annotations

import asyncio
import copy
import os
import random
import re
import signal
import time
import uuid
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.services.kubernetes_strict import Refused, checked_body

__all__ = ["Cluster", "RunningPod"]

Object = dict[str, Any]
Key = tuple[str, str, str]  # jobs, pods or events; namespace; name
PULL_FAILED = 'failed to pull and unpack image "{}": not found'


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Cluster:
    """All on one loop. The image of a pod decides what happens to it: `missing`, `unschedulable`, `hungry` and
    `forbidden` in its name are what they say; everything else runs."""

    def __init__(self, home: Path, loop: asyncio.AbstractEventLoop) -> None:
        self._home, self._loop = home, loop
        self.objects: dict[Key, Object] = {}
        self.version, self.compacted = 100, 0
        self.changed = asyncio.Event()
        self._history: list[tuple[int, Key, str, Object]] = []
        self.started: Counter[str] = Counter()  # processes by the name of their Job, whatever became of it
        self._pods: dict[str, RunningPod] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        for pod in self._pods.values():
            pod.kill()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(pod.ended() for pod in self._pods.values() if pod.has_begun))

    # objects and their versions

    async def strictly(self, content: bytes) -> Object:
        return checked_body(content)

    def compact(self) -> None:
        """What was before is forgotten: who watches from there must list."""
        self.version += 1
        self.compacted = self.version
        self._history.clear()

    def put(self, key: Key, found: Object, what: str = "MODIFIED") -> None:
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        if what == "DELETED":
            self.objects.pop(key, None)
        else:
            self.objects[key] = found
        self._history.append((self.version, key, what, copy.deepcopy(found)))
        self.changed.set()
        self.changed = asyncio.Event()

    def get(self, kind: str, namespace: str, name: str) -> Object:
        found = self.objects.get((kind, namespace, name))
        if found is None:
            raise Refused(404, "NotFound", f'{kind} "{name}" not found')
        return found

    def select(self, kind: str, namespace: str, labels: str | None, fields: str | None) -> list[Object]:
        return [
            found
            for key, found in sorted(self.objects.items())
            if key[:2] == (kind, namespace) and _has_labels(found, labels) and _has_fields(found, fields)
        ]

    def since(self, version: int, kind: str, namespace: str, labels: str | None) -> list[Object]:
        return [
            {"type": what, "object": found}
            for at, key, what, found in self._history
            if at > version and key[:2] == (kind, namespace) and _has_labels(found, labels)
        ]

    # Jobs

    def create_job(self, namespace: str, body: Object) -> Object:
        name = body["metadata"]["name"]
        key = ("jobs", namespace, name)
        if key in self.objects:
            raise Refused(409, "AlreadyExists", f'jobs.batch "{name}" already exists')
        body["metadata"] |= {"namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": now()}
        body["status"] = {}
        self.put(key, body, "ADDED")
        self._task(self._controlled(key, body))
        return body

    def delete_job(self, namespace: str, name: str, options: Object) -> Object:
        job = self.get("jobs", namespace, name)
        wanted = (options.get("preconditions") or {}).get("uid")
        if wanted not in (None, job["metadata"]["uid"]):
            raise Refused(409, "Conflict", "the UID in the precondition does not match the UID in record")
        if options.get("propagationPolicy") == "Foreground":
            job["metadata"] |= {"deletionTimestamp": now(), "finalizers": ["foregroundDeletion"]}
            self.put(("jobs", namespace, name), job)
        else:
            self.put(("jobs", namespace, name), job, "DELETED")
        self._task(self._collected(namespace, job))
        return job

    async def _collected(self, namespace: str, job: Object) -> None:
        """As the garbage collector does it: the pods first."""
        uid = job["metadata"]["uid"]
        for key, pod in list(self.objects.items()):
            if key[0] == "pods" and pod["metadata"]["ownerReferences"][0]["uid"] == uid:
                pod["metadata"]["deletionTimestamp"] = now()
                self.put(key, pod)
                if key[2] in self._pods:
                    await self._pods[key[2]].terminate()
                self.put(key, pod, "DELETED")
        key = ("jobs", namespace, job["metadata"]["name"])
        found = self.objects.get(key)
        if found is not None and found["metadata"]["uid"] == uid:
            self.put(key, found, "DELETED")

    async def _controlled(self, key: Key, job: Object) -> None:
        _, namespace, name = key
        spec = job["spec"]
        image = spec["template"]["spec"]["containers"][0]["image"]
        job["status"] = {"startTime": now(), "active": 1}
        self.put(key, job)
        if "forbidden" in image:
            self._event(namespace, name, "FailedCreate", 'pods "x" is forbidden: exceeded quota: small')
            return
        pod_name = f"{name}-{''.join(random.choices('bcdfghjklmnp', k=5))}"
        pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod_name,
                "namespace": namespace,
                "uid": str(uuid.uuid4()),
                "creationTimestamp": now(),
                "labels": {**spec["template"]["metadata"]["labels"], "batch.kubernetes.io/job-name": name},
                "ownerReferences": [{"kind": "Job", "name": name, "uid": job["metadata"]["uid"]}],
            },
            "spec": spec["template"]["spec"],
            "status": {"phase": "Pending"},
        }
        pod_key = ("pods", namespace, pod_name)
        self.put(pod_key, pod, "ADDED")
        if "unschedulable" in image:
            message = "0/3 nodes are available: 3 Insufficient memory."
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            pod["status"]["conditions"] = [condition]
            self._event(namespace, pod_name, "FailedScheduling", message)
            self.put(pod_key, pod)
            return
        main = spec["template"]["spec"]["containers"][0]["name"]
        if "missing" in image:
            waiting = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
            pod["status"]["containerStatuses"] = [{"name": main, "state": {"waiting": waiting}}]
            self._event(namespace, pod_name, "Failed", f'Failed to pull image "{image}": {PULL_FAILED.format(image)}')
            self.put(pod_key, pod)
            return
        waiting = {"reason": "ContainerCreating"}
        pod["status"]["containerStatuses"] = [{"name": main, "state": {"waiting": waiting}}]
        self.put(pod_key, pod)
        running = self._pods[pod_name] = RunningPod(pod["spec"]["containers"][0], self._home)
        await running.start()
        self.started[name] += 1
        started = now()
        self._look(pod_key, pod, "Running", {"running": {"startedAt": started}})
        deadline = spec.get("activeDeadlineSeconds")
        try:
            async with asyncio.timeout(deadline):
                code = await running.ended()
        except TimeoutError:
            await running.terminate()
            self._failed(key, job, "DeadlineExceeded", "Job was active longer than specified deadline")
            return
        reason = "OOMKilled" if "hungry" in image else "Completed" if code == 0 else "Error"
        code = 137 if reason == "OOMKilled" else code
        ended = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now()}
        if pod_key not in self.objects or pod["metadata"].get("deletionTimestamp"):
            return
        if running.evicted:
            condition = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
            }
            pod["status"]["conditions"] = [condition]
        self._look(pod_key, pod, "Succeeded" if code == 0 else "Failed", {"terminated": ended})
        if running.evicted:
            self._failed(key, job, "PodFailurePolicy", "Pod failed matching FailJob rule at index 0")
        elif code:
            self._failed(key, job, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        else:
            self._over(key, job, "SuccessCriteriaMet", "Complete", "CompletionsReached", "Reached expected number")
            job["status"] |= {"succeeded": 1}

    def _look(self, key: Key, pod: Object, phase: str, state: Object) -> None:
        name = pod["spec"]["containers"][0]["name"]
        pod["status"] |= {"phase": phase, "containerStatuses": [{"name": name, "state": state}]}
        self.put(key, pod)

    def _failed(self, key: Key, job: Object, reason: str, message: str) -> None:
        self._over(key, job, "FailureTarget", "Failed", reason, message)

    def _over(self, key: Key, job: Object, first: str, then: str, reason: str, message: str) -> None:
        """In two steps, as controllers since 1.31 do it."""
        for what in (first, then):
            if key not in self.objects or self.objects[key] is not job:
                return
            condition = {"type": what, "status": "True", "reason": reason, "message": message}
            condition["lastTransitionTime"] = now()
            job["status"].setdefault("conditions", []).append(condition)
            job["status"].pop("active", None)
            if what == "Complete":
                job["status"]["completionTime"] = now()
            self.put(key, job)

    def evict(self, job_name: str) -> None:
        for name, pod in self._pods.items():
            if name.startswith(job_name):
                pod.evicted = True
                pod.kill()

    def running(self, namespace: str, name: str, container: str) -> RunningPod:
        pod = self.get("pods", namespace, name)
        if name not in self._pods or container != pod["spec"]["containers"][0]["name"]:
            message = f'container "{container}" in pod "{name}" is waiting to start: ContainerCreating'
            raise Refused(400, "BadRequest", message)
        return self._pods[name]

    def age(self, name: str, seconds: float, namespace: str = "jobs") -> None:
        """As if its Job had ended that long ago."""
        job = self.get("jobs", namespace, name)
        stamp = datetime.fromtimestamp(time.time() - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for condition in job["status"]["conditions"]:
            condition["lastTransitionTime"] = stamp
        if "completionTime" in job["status"]:
            job["status"]["completionTime"] = stamp
        self.put(("jobs", namespace, name), job)

    def _event(self, namespace: str, about: str, reason: str, message: str) -> None:
        name = f"{about}.{uuid.uuid4().hex[:12]}"
        event: Object = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {"name": about},
            "type": "Warning",
            "reason": reason,
            "message": message,
            "lastTimestamp": now(),
        }
        self.put(("events", namespace, name), event, "ADDED")

    def _task(self, coroutine: Any) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class RunningPod:
    """One container, as a process; its output with times, both streams in one."""

    def __init__(self, container: Object, home: Path) -> None:
        self._home, self.evicted = home, False
        self._env = {each["name"]: each.get("value", "") for each in container.get("env", ())}
        words = [*container.get("command", ()), *container.get("args", ())] or ["true"]
        self._words = [_expanded(word, self._env) for word in words]
        self._grace = 10.0
        self._process: asyncio.subprocess.Process | None = None
        self._lines: list[tuple[int, bytes]] = []  # nanoseconds since the epoch
        self._printed = asyncio.Event()
        self._over = False
        self._code = 0
        self._reading: asyncio.Task[int] | None = None

    async def start(self) -> None:
        env = {"PATH": os.environ["PATH"], "HERE": str(self._home)}
        env |= {name: _expanded(value, self._env) for name, value in self._env.items()}
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._words,
                env=env,
                cwd=self._home,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                limit=8 << 20,
            )
        except OSError:
            self._line(f"exec: {self._words[0]}: not found\n".encode())
        self._reading = asyncio.ensure_future(self._read())

    @property
    def has_begun(self) -> bool:
        return self._reading is not None

    async def ended(self) -> int:
        assert self._reading is not None
        return await asyncio.shield(self._reading)

    async def _read(self) -> int:
        code = 127
        if self._process is not None:
            assert self._process.stdout is not None
            async for line in self._process.stdout:
                self._line(line)
            code = await self._process.wait()
        self._over = True
        self._tell()
        return code if code >= 0 else 128 - code

    def _line(self, text: bytes) -> None:
        self._lines.append((time.time_ns(), text))
        self._tell()

    def _tell(self) -> None:
        self._printed.set()
        self._printed = asyncio.Event()

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                if number == signal.SIGKILL:
                    os.killpg(self._process.pid, number)
                else:  # the first process of a container alone
                    self._process.send_signal(number)

    async def terminate(self) -> None:
        self.kill(signal.SIGTERM)
        try:
            async with asyncio.timeout(self._grace):
                await self.ended()
        except TimeoutError:
            self.kill()
            await self.ended()

    async def log(self, query: dict[str, str]) -> AsyncIterator[bytes]:
        first = 0
        if since := query.get("sinceTime"):
            at = int(datetime.fromisoformat(since).timestamp() * 1_000_000_000)
            first = sum(stamp < at for stamp, _ in self._lines)
        if tail := query.get("tailLines"):
            first = max(first, len(self._lines) - int(tail))
        while True:
            printed = self._printed
            for stamp, text in self._lines[first:]:
                yield (_stamp(stamp) + b" " if query.get("timestamps") == "true" else b"") + text
            first = len(self._lines)
            if self._over or query.get("follow") != "true":
                return
            await printed.wait()


def _stamp(nanoseconds: int) -> bytes:
    at = datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{at}.{nanoseconds % 1_000_000_000:09}Z".encode()


def _expanded(text: str, env: dict[str, str]) -> str:
    """`$(NAME)` as Kubernetes replaces it; `$$` stands for one dollar."""

    def replaced(match: re.Match[str]) -> str:
        return match[0][1:] if match[0].startswith("$$") else env.get(match[1], match[0])

    return re.sub(r"\$\$\(|\$\(([A-Za-z_][A-Za-z0-9_]*)\)", replaced, text)


def _has_labels(found: Object, selector: str | None) -> bool:
    labels = found["metadata"].get("labels") or {}
    return all(labels.get(name) == value for name, _, value in _terms(selector))


def _has_fields(found: Object, selector: str | None) -> bool:
    for name, _, value in _terms(selector):
        assert name == "involvedObject.name", selector
        if found["involvedObject"]["name"] != value:
            return False
    return True


def _terms(selector: str | None) -> list[tuple[str, str, str]]:
    return [term.partition("=") for term in (selector or "").split(",") if term]
