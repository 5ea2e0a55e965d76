"""moto as AWS Lambda: it answers what it is sent. Each call is written down before it is answered, in a file that
outlives the process."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port
from tests.services.waiting import until_blocking

__all__ = ["LambdaPeer", "running_lambda"]

SERVER = """
import io, os, sys
from moto.core.config import default_user_config
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

default_user_config["lambda"]["use_docker"] = False
port, path = int(sys.argv[1]), sys.argv[2]
moto = DomainDispatcherApplication(create_backend_app)
book = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def recording(environ, start_response):
    if environ["PATH_INFO"].endswith("/invocations"):
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        os.write(book, body + b"\\n")
        environ["wsgi.input"] = io.BytesIO(body)
    return moto(environ, start_response)

run_simple("127.0.0.1", port, recording, threaded=True, request_handler=MotoRequestHandler)
"""


class LambdaPeer:
    def __init__(self, book: Path) -> None:
        self.port, self.book = free_port(), book
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(self.port), str(self.book)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        orphan_reaper.runs(-self._process.pid, signal.SIGKILL)
        until_blocking(self._answers, "moto answers", 60)

    def _answers(self) -> bool:
        """Its first answer takes seconds."""
        login = "AWS4-HMAC-SHA256 Credential=key/20260101/eu-west-1/lambda/aws4_request"
        request = urllib.request.Request(f"{self.url}/2015-03-31/functions", headers={"authorization": login})
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self, *, kill: bool = False) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
            self._process.wait(30)
            self._process = None

    def restart(self, *, kill: bool = False) -> None:
        self.stop(kill=kill)
        self.start()


@contextmanager
def running_lambda(place: Path) -> Iterator[LambdaPeer]:
    peer = LambdaPeer(place / "calls")
    peer.start()
    try:
        yield peer
    finally:
        peer.stop(kill=True)
