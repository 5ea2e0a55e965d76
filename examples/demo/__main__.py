"""Start the demo: seed its database if it is empty, then receivers, a node, and traffic, until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from examples.demo.place import HERE, Place, open_place
from examples.demo.receivers import receiving
from examples.demo.seeding import seed
from examples.demo.traffic import go_on
from onthedot.settings import load_settings

ROOT = HERE.parent.parent
STARTS_WITHIN = 30.0


def main() -> int:
    options = _options()
    folder = Path(options.folder).absolute()
    if options.fresh and options.store:
        print(
            "--fresh is for the SQLite file. Empty the PostgreSQL database yourself, then start again.", file=sys.stderr
        )
        return 2
    os.chdir(HERE)  # where the module `shop` is found
    place = open_place(folder, options.store, fresh=options.fresh)
    try:
        return asyncio.run(_demo(place, options.port))
    except OSError as error:
        print(f"{error}. Another demo may be running; `make demo FRESH=1` takes other ports.", file=sys.stderr)
        return 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--folder", default=str(ROOT / ".demo"), help="where the demo keeps its database")
    parser.add_argument("--store", help="postgresql://… instead: an empty database of its own")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--fresh", action="store_true", help="forget what is there and start anew")
    return parser.parse_args()


async def _demo(place: Place, port: int) -> int:
    began = time.monotonic()
    seeded = await seed(load_settings({"port": port}, environ={}, file=place.settings), place.ports)
    if seeded is not None:
        took = time.monotonic() - began
        print(f"Made {seeded.jobs} jobs and {seeded.runs:,} runs of the last two weeks in {took:.1f} s.", flush=True)
    async with receiving(place.ports):
        program = Path(sys.executable).parent / "onthedot"
        node = await asyncio.create_subprocess_exec(
            *(program, "serve", "--settings", place.settings, "--port", str(port)), cwd=HERE, process_group=0
        )
        try:
            return await _until_stopped(node, f"http://127.0.0.1:{port}", place.ports)
        finally:
            if node.returncode is None:
                node.send_signal(signal.SIGTERM)
                await node.wait()


async def _until_stopped(node: asyncio.subprocess.Process, address: str, ports: dict[str, int]) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    ended = asyncio.create_task(node.wait())
    asked = asyncio.create_task(stopped.wait())
    traffic = asyncio.create_task(_traffic(address, ports))
    await asyncio.wait([ended, asked], return_when=asyncio.FIRST_COMPLETED)
    for task in (ended, asked, traffic):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    return 0 if stopped.is_set() else 1


async def _traffic(address: str, ports: dict[str, int]) -> None:
    for _ in range(int(STARTS_WITHIN * 10)):
        await asyncio.sleep(0.1)
        with suppress(OSError):
            await asyncio.to_thread(urllib.request.urlopen, f"{address}/healthz", timeout=1)
            break
    print(f"The demo is at {address}; Ctrl-C stops it.", flush=True)
    await go_on(address, ports)


if __name__ == "__main__":
    sys.exit(main())
