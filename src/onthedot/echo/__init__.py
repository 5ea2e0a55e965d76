"""`onthedot echo`: a webhook receiver that logs requests, and can delay, fail or drop them. For demos, tests and
benchmarks.

Plain asyncio and httptools, because it must never limit a benchmark: requests that nobody looks at are only counted,
and constant responses are rendered once. CPU time per request on a busy machine: 18 to 27 µs with the log off, 53 to 68
µs with the log going to a file.
A request is logged before it is answered, so that after a crash the log contains every acknowledged request.
"""

from __future__ import annotations

from onthedot.echo.arrival import Arrival
from onthedot.echo.running import run_echo
from onthedot.echo.server import EchoServer

__all__ = ["Arrival", "EchoServer", "run_echo"]
