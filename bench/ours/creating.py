"""How many jobs per second can be created: one after the other, in bulk, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import asyncpg

from bench.contest import Cost
from bench.ours.parts import BATCH, create, opened, spec, webhooks
from bench.ours.serving import Server, serving
from bench.ours.sizes import Sizes
from bench.ours.wire import ClientRequest, request
from onthedot.model.key import ApiKeySpec
from onthedot.service import DEFAULT_TENANT

__all__ = ["create_bulk", "create_http", "create_http_bare", "create_http_bulk", "create_one", "single_commits"]

TARGET = {"type": "webhook", "url": "https://example.com/hook", "body": {"a": 1}}  # a day away: nothing is sent
WARM = 10
"""Requests of each connection before the clock starts: plans, caches and the server's first groups."""
LENGTH = re.compile(rb"(?i)content-length: *([0-9]+)")
BODY: dict[str, Any] = {"schedule": {"in": "1d"}, "target": TARGET}


async def create_one(store: str, n: int) -> dict[str, Any]:
    async with opened(store, webhooks()) as (_, service):
        later = spec({"in": "1d"}, TARGET)
        cost, began = Cost(), time.perf_counter()
        for _ in range(n):
            await service.create_job(DEFAULT_TENANT, later)
        return {"rate": n / (time.perf_counter() - began), **cost.per_run(n)}


async def create_bulk(store: str, n: int) -> dict[str, Any]:
    async with opened(store, webhooks()) as (_, service):
        later = spec({"in": "1d"}, TARGET)
        sizes = await Sizes.of(store)
        cost, began = Cost(), time.perf_counter()
        await create(service, (later for _ in range(n)))
        rate = n / (time.perf_counter() - began)
        return {"rate": rate, "batch": BATCH, **cost.per_run(n), "bytes": await sizes.per_run(n)}


async def create_http(store: str, n: int, connections: int = 32) -> dict[str, Any]:
    """POST /v1/jobs to a server of its own process, as the client sends it: with an API key and an Idempotency-Key.
    Each connection sends the next when it has the answer."""
    return await _posted(store, "/v1/jobs", spec(**BODY), n // connections, connections, 201, 1)


async def create_http_bare(store: str, n: int, connections: int = 32) -> dict[str, Any]:
    """The least that creates a job: to an open server, without a key of any sort."""
    bare = request("POST", "/v1/jobs", {**BODY, "target": {**TARGET, "url": "http://127.0.0.1:9/"}})
    async with serving(store) as server:
        return await _measured(lambda: bare, server, n // connections, connections, 201, 1)


async def create_http_bulk(store: str, n: int, connections: int = 32) -> dict[str, Any]:
    """The same with POST /v1/jobs/batch, a hundred jobs at a time."""
    size = max(1, min(100, n // connections))
    specs = [spec(**BODY)] * size
    return await _posted(store, "/v1/jobs/batch", specs, max(1, n // connections // size), connections, 200, size)


async def _posted(
    store: str, path: str, body: object, requests: int, connections: int, expected: int, jobs: int
) -> dict[str, Any]:
    async with opened(store, webhooks()) as (_, service):
        key = (await service.create_key(ApiKeySpec(name="bench", scope="write"))).key
    async with serving(store) as server:
        asked = ClientRequest(path, body, key, server.port)
        return await _measured(asked.make, server, requests, connections, expected, jobs)


async def _measured(
    make: Callable[[], bytes], server: Server, requests: int, connections: int, expected: int, jobs: int
) -> dict[str, Any]:
    clients = [_Client(make, expected) for _ in range(connections)]
    loop = asyncio.get_running_loop()
    for client in clients:
        await loop.create_connection(partial(_same, client), "127.0.0.1", server.port)
    await _all(clients, min(WARM, requests))
    cost, began = Cost(server.pid), time.perf_counter()
    await _all(clients, requests)
    took = time.perf_counter() - began
    created = requests * connections * jobs
    return {"rate": created / took, **cost.per_run(created)}


async def _all(clients: Sequence[_Client], requests: int) -> None:
    await asyncio.gather(*[client.post(requests) for client in clients])


async def single_commits(store: str, n: int) -> dict[str, Any]:
    """The yardstick: rows inserted and committed one by one on one connection."""
    connection = await asyncpg.connect(store)
    await connection.execute("CREATE TABLE yardstick (id bigint PRIMARY KEY, body text NOT NULL)")
    insert = await connection.prepare("INSERT INTO yardstick VALUES ($1, $2)")
    body = json.dumps(BODY)
    for i in range(-32 * WARM, 0):
        await insert.fetch(i, body)
    began = time.perf_counter()
    for i in range(n):
        await insert.fetch(i, body)
    return {"rate": n / (time.perf_counter() - began)}


def _same(client: _Client) -> _Client:
    return client


class _Client(asyncio.Protocol):
    """As little of a client as possible: what is measured is the server. (With a parser of HTTP for each answer it took
    a fifth of the machine.)"""

    transport: asyncio.Transport

    def __init__(self, make: Callable[[], bytes], expected: int) -> None:
        self._make = make
        self._begins = f"HTTP/1.1 {expected} ".encode()
        self._read = b""
        self._left = 0
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def post(self, requests: int) -> asyncio.Future[None]:
        """So many, one after the other."""
        self._left, self._done = requests, asyncio.get_running_loop().create_future()
        self.transport.write(self._make())
        return self._done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # uvloop's is one by behaviour, not by class

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, end, body = self._read.partition(b"\r\n\r\n")
        if not end or len(body) < int(LENGTH.search(head)[1]):  # type: ignore[index]  # each answer of ours has it
            return
        if not head.startswith(self._begins):
            self._fail(RuntimeError(f"answered {head[:80]!r}"))
            return
        self._read = b""
        self._left -= 1
        if self._left:
            self.transport.write(self._make())
        else:
            self._done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error or ConnectionError("the server hung up"))

    def _fail(self, error: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(error)
