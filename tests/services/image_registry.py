"""A registry with one image, from which a real engine pulls: the two documents and the layer of it, over HTTP."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.services.container_engine import busybox_layer

__all__ = ["running_registry"]

_DOCKER = "application/vnd.docker"
_MANIFEST = f"{_DOCKER}.distribution.manifest.v2+json"


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@contextmanager
def running_registry(path: str) -> Iterator[str]:
    """The name of the image: 127.0.0.1:PORT/path:1."""
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
            kind, content = contents.get(self.path, ("", b""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Docker-Content-Digest", _digest(content))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

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
