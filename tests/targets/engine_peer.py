"""Something that speaks like a container engine and fails as a real one can't be made to: answers are lost on the way,
streams are cut in the middle, and other engines word things differently."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

__all__ = ["CUT", "EnginePeer", "answer", "entry", "running_peer"]

CUT = b""
"""Instead of a response: the connection is closed without a word."""
VERSION = {"Version": "9.9", "ApiVersion": "1.41", "Components": [{"Name": "Engine"}]}


def answer(status: int, content: Any = None) -> bytes:
    body = content if isinstance(content, bytes) else b"" if content is None else json.dumps(content).encode()
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


def entry(stream: int, text: str) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(text.encode()).to_bytes(4) + text.encode()


class EnginePeer:
    """It has one container, or none. `says` has what it answers first to requests that begin like this."""

    def __init__(self, directory: Path) -> None:
        self.url = f"unix://{directory}/peer.sock"
        self.version: dict[str, Any] = dict(VERSION)
        self.info = {"ID": "AB:CD", "Name": "here", "DockerRootDir": "/d", "MemoryLimit": True, "PidsLimit": True}
        self.container: dict[str, Any] | None = None
        self.asked: list[str] = []
        self.says: dict[str, list[Callable[[], bytes]]] = {}
        self.logs = b""
        self.created = 0

    def count(self, words: str) -> int:
        return sum(words in request for request in self.asked)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            assert headers["Host"], "HTTP/1.1 wants it"
            assert headers["Connection"] == "close"
            body = await reader.readexactly(int(headers["Content-Length"]))
            method, path, version = first.split(" ")
            assert version == "HTTP/1.1"
            if path.startswith("/v1.41/"):
                path = path.removeprefix("/v1.41")
            self.asked.append(f"{method} {path}")
            writer.write(self._said(f"{method} {path}", body))
            await writer.drain()
        except asyncio.IncompleteReadError:
            pass  # somebody looked whether we are there
        finally:
            writer.close()

    def _said(self, request: str, body: bytes) -> bytes:
        found = self._do(request, body)
        for beginning, answers in self.says.items():
            if request.startswith(beginning) and answers:
                return answers.pop(0)()
        return found

    def _is_another(self, name: str) -> bool:
        """An id of a container that was here before."""
        assert self.container is not None
        return name.startswith("id") and name != self.container.get("Id")

    def _do(self, request: str, body: bytes) -> bytes:
        path = request.split(" ")[1]
        if path in ("/version", "/info"):
            return answer(200, self.version if path == "/version" else self.info)
        if path.startswith("/containers/create"):
            if self.container is not None:
                return answer(409, {"message": "the name is in use"})
            self.created += 1
            self.container = {"Id": f"id{self.created}", "Config": json.loads(body), "State": {"Status": "created"}}
            return answer(201, {"Id": self.container["Id"]})
        if self.container is None or self._is_another(path.split("/")[2].partition("?")[0]):
            return answer(404, {"message": "No such container"})
        if path.endswith("/json"):
            return answer(200, {"Id": "other"} | self.container)
        if request.startswith("DELETE"):
            if self.container["State"]["Status"] == "running" and "force=1" not in path:
                return answer(409, {"message": "You cannot remove a running container"})
            self.container = None
            return answer(204)
        if path.endswith("/start"):
            self.container["starts"] = self.container.get("starts", 0) + 1
            self.container["State"] = {"Status": "exited", "ExitCode": 0, "StartedAt": "", "FinishedAt": ""}
            return answer(204)
        if "/logs" in path:
            return answer(200, self.logs)
        return answer(204)


@asynccontextmanager
async def running_peer(directory: Path) -> AsyncIterator[EnginePeer]:
    peer = EnginePeer(directory)
    async with await asyncio.start_unix_server(peer.serve, directory / "peer.sock"):
        yield peer
