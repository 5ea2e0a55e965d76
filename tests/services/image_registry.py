"""A registry with one image, from which a real engine pulls: the two documents and the layer of it, over HTTP. It may
want a login, checked as registries do that: a token endpoint gives a token for this image to who has the password."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from tests.services.container_engine import busybox_layer

__all__ = ["running_registry"]

TOKEN = "for-this-image"
_DOCKER = "application/vnd.docker"
_MANIFEST = f"{_DOCKER}.distribution.manifest.v2+json"


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@contextmanager
def running_registry(path: str, login: str | None = None) -> Iterator[str]:
    """The name of the image: 127.0.0.1:PORT/path:1. `login`: user:password, without which nothing is given."""
    tar = busybox_layer()
    layer = gzip.compress(tar, 1)
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Cmd": ["echo", "pulled"], "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(tar)]},
        }
    ).encode()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _described(f"{_DOCKER}.container.image.v1+json", config),
            "layers": [_described(f"{_DOCKER}.image.rootfs.diff.tar.gzip", layer)],
        }
    ).encode()
    contents = {
        "/v2/": ("application/json", b"{}"),
        f"/v2/{path}/manifests/1": (_MANIFEST, manifest),
        f"/v2/{path}/manifests/{_digest(manifest)}": (_MANIFEST, manifest),
        **{f"/v2/{path}/blobs/{_digest(blob)}": ("application/octet-stream", blob) for blob in (config, layer)},
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked, authorization = urlsplit(self.path), self.headers.get("Authorization", "")
            if login is not None and asked.path == "/token":
                self._give_token(parse_qs(asked.query), authorization, login)
                return
            kind, content = contents.get(self.path, ("", b""))
            if login is not None and authorization != f"Bearer {TOKEN}":
                kind, content = "", b""
                self.send_response(401)
                realm = f"http://127.0.0.1:{server.server_port}/token"
                self.send_header("WWW-Authenticate", f'Bearer realm="{realm}",service="test"')
            else:
                self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Docker-Content-Digest", _digest(content))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        def _give_token(self, asked: dict[str, list[str]], authorization: str, login: str) -> None:
            is_right = authorization == f"Basic {base64.b64encode(login.encode()).decode()}"
            for_this = asked.get("service") == ["test"] and asked.get("scope") in (None, [f"repository:{path}:pull"])
            self.send_response(200 if is_right and for_this else 401)
            self.end_headers()
            self.wfile.write(json.dumps({"token": TOKEN}).encode() if is_right and for_this else b"{}")

        do_HEAD = do_GET  # noqa: N815 - so it is called

        def log_message(self, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    serving.start()
    try:
        yield f"127.0.0.1:{server.server_port}/{path}:1"
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


def _described(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "size": len(content), "digest": _digest(content)}
