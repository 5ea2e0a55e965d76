"""The part of the Kubernetes API that is needed: Jobs, their pods, logs and events.

What can be asked twice is: an answer may be lost. Creating what exists is `JobTaken`, deleting what is not there is no
error, and what is not there is None.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from onthedot.clock import SystemClock
from onthedot.targets.kubernetes.access import ClusterAccess, NoAccess
from onthedot.targets.kubernetes.objects import ClusterEvent, KubeJob, KubePod, ObjectList

if TYPE_CHECKING:
    import aiohttp

__all__ = ["ApiAway", "ApiRefused", "JobTaken", "KubernetesApi", "VersionGone"]

ASK_WITHIN = 30.0
CONNECT_WITHIN = 5.0
TOKEN_LASTS = 30.0
"""Seconds after which the file of a token is read again: tokens are replaced while they are still valid."""
PAGE = 500
LONGEST_LINE = 8 << 20
LARGEST_BODY = 64 << 20
T = TypeVar("T")
_wall = SystemClock().now_ms


class ApiAway(Exception):
    """The API server can't be reached, or can't answer now: nobody knows whether it did what it was asked."""


class ApiRefused(Exception):
    """The API server answered that it did not do it; the message is its own."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class JobTaken(ApiRefused):
    """There is a Job of this name."""


class VersionGone(ApiRefused):
    """What was asked for is so long ago that it must be listed anew."""


class _Status(msgspec.Struct):
    message: str = ""
    reason: str = ""
    code: int = 0


class _ServerVersion(msgspec.Struct, rename="camel"):
    git_version: str = ""


class _NamedObject(msgspec.Struct):
    metadata: dict[str, Any]


class _ReviewStatus(msgspec.Struct):
    allowed: bool = False
    reason: str = ""


class _Review(msgspec.Struct):
    status: _ReviewStatus


class _Connections:
    """Those made with one set of credentials. They are closed when nobody uses them any more: who reads from one that
    aiohttp closes waits for ever."""

    def __init__(self, access: ClusterAccess) -> None:
        import aiohttp

        tls = True if access.tls is None else access.tls
        connector = aiohttp.TCPConnector(limit=0, ssl=tls)  # each log that is followed has one
        self._session = aiohttp.ClientSession(connector=connector, trust_env=False)
        self._users, self._is_retired = 0, False

    @asynccontextmanager
    async def used(self) -> AsyncIterator[aiohttp.ClientSession]:
        self._users += 1
        try:
            yield self._session
        finally:
            self._users -= 1
            if self._is_retired and not self._users:
                await self._session.close()

    async def retire(self) -> None:
        self._is_retired = True
        if not self._users:
            await self._session.close()


class KubernetesApi:
    """`load`: how it is reached, read from files in a thread of its own, and again by `reload`."""

    def __init__(self, load: Callable[[], ClusterAccess]) -> None:
        self._load = load
        self.access: ClusterAccess | None = None
        self.now = 0.0  # the clock of the API server when it last answered, in seconds since the epoch
        self._connections: _Connections | None = None
        self._token: str | None = None
        self._token_read = 0.0

    @property
    def address(self) -> str:
        return "Kubernetes" if self.access is None else self.access.server

    async def reload(self) -> None:
        """ApiRefused if there is no way to a cluster here."""
        try:
            access = await asyncio.to_thread(self._load)
        except NoAccess as why:
            raise ApiRefused(0, "NoAccess", str(why)) from why
        self.access, self._token, self._token_read = access, access.token, time.monotonic()
        await self.close()

    async def close(self) -> None:
        """What is under way goes on."""
        if self._connections is not None:
            connections, self._connections = self._connections, None
            await connections.retire()

    # who it is

    async def version(self) -> str:
        return (await self._read("GET", "/version", _ServerVersion, within=5.0)).git_version

    async def cluster_uid(self) -> str:
        """Of the namespace that each cluster has, and that is never deleted."""
        found = await self._read("GET", "/api/v1/namespaces/kube-system", _NamedObject)
        return str(found.metadata.get("uid", ""))

    async def may(self, verb: str, namespace: str, resource: str, group: str = "", part: str = "") -> bool:
        asked = {"verb": verb, "namespace": namespace, "resource": resource, "group": group}
        if part:
            asked["subresource"] = part
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        return (await self._read("POST", path, _Review, body=body)).status.allowed

    # Jobs

    async def job(self, namespace: str, name: str) -> KubeJob | None:
        try:
            return await self._read("GET", f"{_jobs(namespace)}/{name}", KubeJob)
        except ApiRefused as refused:
            if refused.status == 404:
                return None
            raise

    async def create_job(self, namespace: str, body: dict[str, Any]) -> KubeJob:
        """`fieldValidation`: what the server does not know is refused, not dropped."""
        try:
            query = {"fieldValidation": "Strict", "fieldManager": "onthedot"}
            return await self._read("POST", _jobs(namespace), KubeJob, body=body, query=query)
        except ApiRefused as refused:
            if refused.status == 409 and refused.reason == "AlreadyExists":
                raise JobTaken(409, refused.reason, str(refused)) from None
            raise

    async def delete_job(self, namespace: str, name: str, uid: str, policy: str) -> None:
        """This very one, not another that was made under its name since. `policy`: Foreground (it is gone when its pods
        are) or Background."""
        body = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": policy,
            "preconditions": {"uid": uid},
        }
        try:
            await self._read("DELETE", f"{_jobs(namespace)}/{name}", msgspec.Raw, body=body)
        except ApiRefused as refused:
            if refused.status not in (404, 409):  # 409: the name has another one
                raise

    async def jobs(self, namespace: str, selector: str) -> AsyncIterator[KubeJob]:
        page: str | None = ""
        while page is not None:
            listed = await self.page(_jobs(namespace), selector, page)
            for raw in listed.items:
                yield msgspec.json.decode(raw, type=KubeJob)
            page = listed.metadata.next_page or None

    # what they consist of

    async def pods_of(self, namespace: str, selector: str) -> list[KubePod]:
        listed = await self.page(f"/api/v1/namespaces/{namespace}/pods", selector)
        return [msgspec.json.decode(raw, type=KubePod) for raw in listed.items]

    async def events_of(self, namespace: str, name: str) -> list[ClusterEvent]:
        """The oldest first."""
        query = {"fieldSelector": f"involvedObject.name={name}", "limit": str(PAGE)}
        listed = await self._read("GET", f"/api/v1/namespaces/{namespace}/events", ObjectList, query=query)
        found = [msgspec.json.decode(raw, type=ClusterEvent) for raw in listed.items]
        return sorted(found, key=lambda event: event.at)

    async def page(self, path: str, selector: str, after: str = "") -> ObjectList:
        query = {"labelSelector": selector, "limit": str(PAGE)} | ({"continue": after} if after else {})
        return await self._read("GET", path, ObjectList, query=query)

    # streams

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], silence: float | None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Lines as they come, each with its end. `silence`: seconds without a word after which it is taken for dead."""
        async with self._ask("GET", path, query=query, within=None, silence=silence) as response:
            if response.status != 200:
                await self._checked(response)
            yield _lines(response)

    async def _read(
        self,
        method: str,
        path: str,
        kind: type[T],
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        within: float = ASK_WITHIN,
    ) -> T:
        async with self._ask(method, path, body=body, query=query, within=within) as response:
            content = await self._checked(response)
            try:
                return msgspec.json.decode(content, type=kind)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise ApiAway(f"{self.address}: not a valid response: {error}") from error

    @asynccontextmanager
    async def _ask(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        within: float | None,
        silence: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        import aiohttp  # takes longer than all else here, and most nodes have no cluster

        if self.access is None:
            await self.reload()
        access = self.access
        assert access is not None
        headers = {"accept": "application/json"}
        if token := await self._fresh_token(access):
            headers["authorization"] = f"Bearer {token}"
        data = None
        if body is not None:
            data, headers["content-type"] = msgspec.json.encode(body), "application/json"
        timeout = aiohttp.ClientTimeout(total=within, sock_connect=CONNECT_WITHIN, sock_read=silence)
        if self._connections is None:
            self._connections = _Connections(access)
        try:
            async with (
                self._connections.used() as session,
                session.request(
                    method,
                    access.server + path,
                    params=query,
                    data=data,
                    headers=headers,
                    timeout=timeout,
                    allow_redirects=False,
                    server_hostname=access.server_name if access.tls is not None else None,
                ) as response,
            ):
                self._keep_time(response)
                yield response
        except TimeoutError:
            raise ApiAway(f"{access.server}: no response within {within or silence or CONNECT_WITHIN:g} s") from None
        except (aiohttp.ClientError, OSError, EOFError, ValueError) as error:
            raise ApiAway(f"{access.server}: {str(error) or type(error).__name__}") from error

    async def _fresh_token(self, access: ClusterAccess) -> str | None:
        now = time.monotonic()
        if access.token_file is not None and now - self._token_read > TOKEN_LASTS:
            self._token_read = now
            with suppress(OSError):  # the one that was read before may still be valid
                self._token = (await asyncio.to_thread(access.token_file.read_text)).strip()
        return self._token

    def _keep_time(self, response: aiohttp.ClientResponse) -> None:
        try:
            self.now = parsedate_to_datetime(response.headers["date"]).timestamp()
        except (KeyError, ValueError):
            self.now = _wall() / 1000

    async def _checked(self, response: aiohttp.ClientResponse) -> bytes:
        content = bytearray()
        async for portion in response.content.iter_any():
            content += portion
            if len(content) > LARGEST_BODY:
                raise ApiAway(f"{self.address}: a response of more than {LARGEST_BODY >> 20} MB")
        if response.status < 300:
            return bytes(content)
        raise refusal(response.status, bytes(content))


def refusal(status: int, content: bytes) -> ApiAway | ApiRefused:
    """What an answer that is none says."""
    try:
        said = msgspec.json.decode(content, type=_Status)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        said = _Status(message=content[:300].decode("utf-8", "replace").strip())
    status = status if status != 200 else said.code
    message = f"{status} {said.reason}: {said.message}" if said.reason else f"{status} {said.message}"
    if status == 410:
        return VersionGone(status, said.reason, message)
    if status == 429 or status >= 500:  # overloaded, or its own store is away: it may have done it all the same
        return ApiAway(message)
    return ApiRefused(status, said.reason, message)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    kept = bytearray()
    async for portion in response.content.iter_any():
        start = len(kept)
        kept += portion
        while (end := kept.find(b"\n", start)) >= 0:
            yield bytes(kept[: end + 1])
            del kept[: end + 1]
            start = 0
        if len(kept) > LONGEST_LINE:
            raise ApiAway(f"a line of more than {LONGEST_LINE >> 20} MB")
    if kept:
        yield bytes(kept)


def _jobs(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"
