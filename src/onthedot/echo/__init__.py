"""`onthedot echo`: a receiver that logs what arrives, and can be slow, fail or hang up. For demos, tests and benches.

Plain asyncio and httptools, because it must never be what limits a bench: what nobody looks at is not made, and what is
always the same is written once. Measured on a busy machine, CPU a request: 18 to 27 µs with the log off (33 to 41
before), 53 to 68 with the log going to a file (72 to 84 before).
An arrival is logged before it is answered, so that after a crash the log never lacks an acknowledged one.
"""

from __future__ import annotations

from onthedot.echo.arrival import Arrival
from onthedot.echo.running import run_echo
from onthedot.echo.server import EchoServer

__all__ = ["Arrival", "EchoServer", "run_echo"]
