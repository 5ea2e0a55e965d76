"""The part of the Docker Engine API that is needed, as Docker and Podman answer it.

What can be asked twice is: an answer may be lost. Creating what exists is `NameTaken`, starting what runs and stopping
what has ended are no errors, and what is not there is None.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from onthedot.clock import SystemClock
from onthedot.targets.container_engine.access import EngineAddress
from onthedot.targets.container_engine.http_client import EngineAway, EngineHttp, EngineResponse

__all__ = [
    "ContainerEngine",
    "EngineAbout",
    "EngineRefused",
    "FoundContainer",
    "ImageMissing",
    "ListedContainer",
    "NameTaken",
]

NEWEST = (1, 44)
"""The newest version of the API that is asked for; an engine that speaks an older one is asked for that."""
ASK_WITHIN = 30.0
_GOING = ("created", "configured", "initialized", "running", "paused", "restarting")
T = TypeVar("T")
_wall = SystemClock().now_ms


class EngineRefused(Exception):
    """The engine answered that it did not do it; the message is its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NameTaken(EngineRefused):
    """There is a container of this name."""


class ImageMissing(EngineRefused):
    """The engine does not have this image."""


class EngineAbout(msgspec.Struct, frozen=True):
    """Who it is. `lacks`: why it can't keep containers within their limits; None: it can."""

    title: str  # Docker 28.5
    place: str  # where its containers are found again: the same for every node that reaches it
    has_init: bool
    lacks: str | None = None
    has_checks: bool = True  # it makes health checks by itself; Podman leaves them to systemd


class ContainerState(msgspec.Struct, frozen=True, rename="pascal"):
    status: str = ""
    exit_code: int = 0
    oom_killed: bool = msgspec.field(default=False, name="OOMKilled")
    error: str = ""
    started_at: str = ""
    finished_at: str = ""


class ContainerConfig(msgspec.Struct, frozen=True, rename="pascal"):
    labels: dict[str, str] | None = None


class FoundContainer(msgspec.Struct, frozen=True, rename="pascal"):
    state: ContainerState
    id: str = ""
    config: ContainerConfig = ContainerConfig()
    now: float = 0.0  # the engine's clock, in seconds since the epoch

    @property
    def is_new(self) -> bool:
        """It was never started."""
        return self.state.status in ("created", "configured", "initialized")

    @property
    def is_over(self) -> bool:
        return self.state.status in ("exited", "dead", "stopped")

    @property
    def started_ago(self) -> float:
        """Seconds."""
        return _ago(self.state.started_at, self.now)

    @property
    def ended_ago(self) -> float:
        return _ago(self.state.finished_at, self.now)

    @property
    def lasted(self) -> float:
        """Seconds that it ran, if it is over."""
        return self.started_ago - self.ended_ago

    def label(self, name: str) -> str | None:
        return (self.config.labels or {}).get(name)


class _Created(msgspec.Struct, rename="pascal"):
    id: str


class _Listed(msgspec.Struct, rename="pascal"):
    id: str
    names: list[str]
    state: str = ""
    labels: dict[str, str] | None = None
    created: int = 0


class ListedContainer(msgspec.Struct, frozen=True):
    name: str
    id: str
    state: str
    labels: dict[str, str]
    created_ago: float  # seconds, by the engine's clock

    @property
    def is_going(self) -> bool:
        """It runs, or was never started."""
        return self.state in _GOING


class _Component(msgspec.Struct, rename="pascal"):
    name: str = ""


class _Version(msgspec.Struct, rename="pascal"):
    version: str = ""
    api_version: str = "1.41"
    components: list[_Component] | None = None


class _Commit(msgspec.Struct, frozen=True, rename="pascal"):
    id: str = msgspec.field(default="", name="ID")


class _Info(msgspec.Struct, rename="pascal"):
    id: str = msgspec.field(default="", name="ID")
    name: str = ""
    docker_root_dir: str = ""
    memory_limit: bool = True
    pids_limit: bool = True
    init_binary: str = ""
    init_commit: _Commit = _Commit()


class _ErrorBody(msgspec.Struct):
    message: str = ""
    error: str = ""


class ContainerEngine:
    def __init__(self, address: EngineAddress) -> None:
        self._http = EngineHttp(address)
        self._version = ""

    @property
    def address(self) -> str:
        return self._http.address

    async def about(self) -> EngineAbout:
        version = await self._read("GET", "/version", _Version, within=5.0)
        newest = tuple(int(part) for part in version.api_version.split(".")[:2] if part.isdigit())
        self._version = "/v{}.{}".format(*min(NEWEST, newest)) if len(newest) == 2 else ""
        info = await self._read("GET", "/info", _Info)  # Podman asks its programs, which takes seconds
        podman = any("podman" in part.name.lower() for part in version.components or ())
        place = info.id.replace(":", "").lower()
        if podman or not place:  # Podman makes up another id whenever it is asked
            place = sha256(f"{info.name} {info.docker_root_dir}".encode()).hexdigest()[:16]
        missing = [what for what, has in (("memory", info.memory_limit), ("pids", info.pids_limit)) if not has]
        lacks = f"it can't limit {' and '.join(missing)} of containers" if missing else None
        has_init = bool(info.init_binary) and info.init_commit.id != "N/A"
        return EngineAbout(f"{'Podman' if podman else 'Docker'} {version.version}", place, has_init, lacks, not podman)

    async def inspect(self, name: str) -> FoundContainer | None:
        async with self._ask("GET", f"/containers/{_quoted(name)}/json") as response:
            if response.status == 404:
                return None
            found = _decoded(await _checked(response), FoundContainer)
            return msgspec.structs.replace(found, now=_date(response))

    async def create(self, name: str, body: dict[str, Any]) -> str:
        """Its id."""
        try:
            return (await self._read("POST", f"/containers/create?{urlencode({'name': name})}", _Created, body)).id
        except EngineRefused as refused:
            said = str(refused).lower()
            if refused.status == 409 or "already in use" in said:  # Podman 4 answers 500
                raise NameTaken(409, str(refused)) from None
            if refused.status == 404 or "no such image" in said:
                raise ImageMissing(404, str(refused)) from None
            raise

    async def start(self, container: str) -> None:
        """By its id: a name may be another container's by the time that the engine reads this."""
        await self._done("POST", f"/containers/{_quoted(container)}/start")

    async def stop(self, name: str, grace: float) -> None:
        """SIGTERM, and SIGKILL after `grace` seconds. What is not there has ended."""
        path = f"/containers/{_quoted(name)}/stop?{urlencode({'t': int(grace)})}"
        await self._done("POST", path, missing_ok=True, within=ASK_WITHIN + grace)

    async def kill(self, name: str, signal: str = "SIGKILL") -> None:
        path = f"/containers/{_quoted(name)}/kill?signal={signal}"
        await self._done("POST", path, missing_ok=True, ended_ok=True)

    async def wait(self, name: str, within: float) -> None:
        """Until it does not run, or the time is up; `inspect` says which."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._done("POST", f"/containers/{_quoted(name)}/wait", within=None)

    async def remove(self, name: str) -> None:
        """With its own volumes, and killed if it runs."""
        await self._done("DELETE", f"/containers/{_quoted(name)}?force=1&v=1", missing_ok=True, ended_ok=True)

    async def remove_idle(self, name: str) -> None:
        """With its own volumes; refused if it runs."""
        await self._done("DELETE", f"/containers/{_quoted(name)}?v=1", missing_ok=True)

    async def labelled(self, label: str) -> list[ListedContainer]:
        """The containers that have this label, or this value of it (`name=value`), running or not."""
        query = urlencode({"all": 1, "filters": msgspec.json.encode({"label": [label]}).decode()})
        async with self._ask("GET", f"/containers/json?{query}") as response:
            found = _decoded(await _checked(response), list[_Listed])
            now = _date(response)
        return [
            ListedContainer(
                each.names[0].lstrip("/"), each.id, each.state.lower(), each.labels or {}, max(0.0, now - each.created)
            )
            for each in found
            if each.names
        ]

    async def put_files(self, container: str, folder: str, tar: bytes) -> None:
        """Into a container, also one that was not started."""
        path = f"/containers/{_quoted(container)}/archive?{urlencode({'path': folder})}"
        async with self._ask("PUT", path, tar, headers={"Content-Type": "application/x-tar"}) as response:
            await _checked(response)

    @asynccontextmanager
    async def output(self, container: str) -> AsyncIterator[EngineResponse]:
        """What it prints from now on, as it comes."""
        path = f"/containers/{_quoted(container)}/attach?stream=1&stdout=1&stderr=1"
        async with self._ask("POST", path, within=None) as response:
            if response.status != 200:
                await _checked(response)
            yield response

    async def feed(self, container: str, content: bytes) -> None:
        """Its standard input, all of it."""
        path = f"/containers/{_quoted(container)}/attach?stream=1&stdin=1"
        async with self._ask("POST", path) as response:
            if response.status != 200:
                await _checked(response)
            await response.send(content)

    async def pull(self, reference: str, login: str | None = None) -> None:
        """Raises what the engine says at the end of it: it answers 200 before it begins."""
        path = f"/images/create?{urlencode({'fromImage': reference})}"
        headers = {} if login is None else {"X-Registry-Auth": login}
        async with self._ask("POST", path, headers=headers, within=None) as response:
            if response.status >= 400:
                await _checked(response)
            last, rest = b"", b""
            async for portion in response.portions():
                *lines, rest = (rest + portion).split(b"\n")
                for line in lines:
                    if b'"error"' in line:
                        last = line
                rest = rest[-65536:]
            if b'"error"' in rest:
                last = rest
        if last:
            raise EngineRefused(404, _message(last))

    @asynccontextmanager
    async def logs(self, name: str, **options: str) -> AsyncIterator[EngineResponse]:
        async with self._ask("GET", f"/containers/{_quoted(name)}/logs?{urlencode(options)}", within=None) as response:
            if response.status != 200:
                await _checked(response)
            yield response

    @asynccontextmanager
    async def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: dict[str, str] | None = None,
        within: float | None = ASK_WITHIN,
    ) -> AsyncIterator[EngineResponse]:
        async with self._http.ask(method, f"{self._version}{path}", body, headers=headers, within=within) as response:
            yield response

    async def _read(
        self, method: str, path: str, kind: type[T], body: object = None, *, within: float = ASK_WITHIN
    ) -> T:
        async with self._ask(method, path, body, within=within) as response:
            return _decoded(await _checked(response), kind)

    async def _done(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        missing_ok: bool = False,
        ended_ok: bool = False,
        within: float | None = ASK_WITHIN,
    ) -> None:
        async with self._ask(method, path, body, within=within) as response:
            if not (missing_ok and response.status == 404) and not (ended_ok and response.status == 409):
                await _checked(response)


async def _checked(response: EngineResponse) -> bytes:
    body = await response.body()
    if response.status >= 400:
        raise EngineRefused(response.status, _message(body) or f"status {response.status}")
    return body


def _message(body: bytes) -> str:
    try:
        said = msgspec.json.decode(body, type=_ErrorBody)
    except msgspec.MsgspecError:
        return body.decode("utf-8", "replace").strip()[:500]
    return (said.message or said.error).strip()[:500]


def _decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise EngineAway(f"the response is not that of a container engine: {error}") from None


def _quoted(name: str) -> str:
    return quote(name, safe="")


def _date(response: EngineResponse) -> float:
    """The engine's clock, to the second; ours, where that says the same, to the millisecond."""
    ours = _wall() / 1000
    try:
        theirs = parsedate_to_datetime(response.headers["date"]).timestamp()
    except (KeyError, ValueError):
        return ours
    return ours if -0.5 <= ours - theirs <= 2.0 else theirs


def _ago(instant: str, now: float) -> float:
    try:
        return max(0.0, now - datetime.fromisoformat(instant).timestamp())
    except ValueError:
        return 0.0
