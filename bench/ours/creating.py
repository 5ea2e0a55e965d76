"""How many jobs per second can be created: one after the other, in bulk, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from typing import Any

import asyncpg
import httptools

from bench.ours.parts import BATCH, create, opened, spec, webhooks
from bench.ours.serving import served
from onthedot.service import DEFAULT_TENANT

__all__ = ["create_bulk", "create_http", "create_one", "single_commits"]

TARGET = {"type": "webhook", "url": "http://127.0.0.1:9/", "body": {"a": 1}}
BODY = {"schedule": {"in": "1d"}, "target": TARGET}


async def create_one(store: str, n: int) -> dict[str, Any]:
    async with opened(store, webhooks()) as (_, service):
        later = spec({"in": "1d"}, TARGET)
        began = time.perf_counter()
        for _ in range(n):
            await service.create_job(DEFAULT_TENANT, later)
        return {"rate": n / (time.perf_counter() - began)}


async def create_bulk(store: str, n: int) -> dict[str, Any]:
    async with opened(store, webhooks()) as (_, service):
        later = spec({"in": "1d"}, TARGET)
        began = time.perf_counter()
        await create(service, (later for _ in range(n)))
        return {"rate": n / (time.perf_counter() - began), "batch": BATCH}


async def create_http(store: str, n: int, connections: int = 32) -> dict[str, Any]:
    """POST /v1/jobs to a server of its own process; each connection sends the next when it has the answer."""
    async with served(store) as port:
        clients = [_Client(BODY, n // connections) for _ in range(connections)]
        loop = asyncio.get_running_loop()
        for client in clients:
            await loop.create_connection(partial(_same, client), "127.0.0.1", port)
        began = time.perf_counter()
        for client in clients:
            client.begin()
        await asyncio.gather(*(client.done for client in clients))
        took = time.perf_counter() - began
        wrong = [status for client in clients for status in client.statuses if status != 201]
        if wrong:
            raise RuntimeError(f"answered {wrong[0]} instead of 201")
        return {"rate": n // connections * connections / took}


async def single_commits(store: str, n: int) -> dict[str, Any]:
    """The yardstick: rows inserted and committed one by one on one connection."""
    connection = await asyncpg.connect(store)
    await connection.execute("CREATE TABLE yardstick (id bigint PRIMARY KEY, body text NOT NULL)")
    insert = await connection.prepare("INSERT INTO yardstick VALUES ($1, $2)")
    body = json.dumps(BODY)
    began = time.perf_counter()
    for i in range(n):
        await insert.fetch(i, body)
    return {"rate": n / (time.perf_counter() - began)}


def _same(client: _Client) -> _Client:
    return client


class _Client(asyncio.Protocol):
    """As little of a client as possible: what is measured is the server."""

    transport: asyncio.Transport

    def __init__(self, body: dict[str, Any], requests: int) -> None:
        raw = json.dumps(body).encode()
        head = (
            f"POST /v1/jobs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(raw)}"
        )
        self._request = head.encode() + b"\r\n\r\n" + raw
        self._left = requests
        self._parser = httptools.HttpResponseParser(self)
        self.statuses: list[int] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # uvloop's is one by behaviour, not by class

    def begin(self) -> None:
        self._left -= 1
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        self.statuses.append(self._parser.get_status_code())
        if self._left:
            self._parser = httptools.HttpResponseParser(self)
            self.begin()
        elif not self.done.done():
            self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server hung up"))
