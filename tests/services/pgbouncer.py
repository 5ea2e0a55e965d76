"""Debian's real PgBouncer in transaction mode, in front of a test's PostgreSQL.

Root installs it where it is missing; elsewhere one line says what is missing.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services.debian import debian_program
from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port
from tests.services.postgres import NOBODY, other_user
from tests.services.waiting import until_blocking

__all__ = ["running_pgbouncer"]

START_SECONDS = 15.0


@contextmanager
def running_pgbouncer(postgres_port: int, *, pool: int = 4) -> Iterator[int]:
    """Its port. `pool` server connections are shared by all clients, transaction by transaction."""
    program = debian_program("pgbouncer", "pgbouncer")
    port = free_port()
    home = Path(tempfile.mkdtemp(prefix="onthedot-pgbouncer-"))
    (home / "pgbouncer.ini").write_text(
        # auth_type = any logs everybody in as the user that the database line names
        f"[databases]\n* = host=127.0.0.1 port={postgres_port} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        "auth_type = any\npool_mode = transaction\n"
        f"default_pool_size = {pool}\nmax_client_conn = 200\nserver_idle_timeout = 5\n"
        "ignore_startup_parameters = extra_float_digits\n"
    )
    if os.geteuid() == 0:
        shutil.chown(home, NOBODY, NOBODY)
    log = (home / "log").open("wb")
    process = subprocess.Popen(
        [program, home / "pgbouncer.ini"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, **other_user()
    )
    orphan_reaper.runs(process.pid, signal.SIGTERM)
    orphan_reaper.made(home)
    try:
        until_blocking(lambda: _listens(port) or process.poll() is not None, "pgbouncer listens", START_SECONDS)
        if process.poll() is not None:
            raise RuntimeError(f"pgbouncer did not start:\n{(home / 'log').read_text()[-2000:]}")
        yield port
    finally:
        process.terminate()
        process.wait(timeout=10)
        orphan_reaper.ended(process.pid)
        log.close()
        shutil.rmtree(home, ignore_errors=True)
        orphan_reaper.removed(home)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
