"""`python -m proof.chaos --size smoke --seed 1 [--profile kill]`: run, print, report; exit 1 on any violation."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import signal
import sys
from pathlib import Path

from onthedot.launcher.launch import fast_loop
from proof.chaos.nemesis import PROFILES
from proof.chaos.run import play
from proof.chaos.sizes import SIZES
from proof.report import told, write_report

__all__ = ["main"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proof.chaos", description=__doc__)
    parser.add_argument("--size", choices=[*SIZES, "points", "part"], default="smoke")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--profile", choices=[*PROFILES], default="mixed", help="one kind of fault, or all")
    parser.add_argument("--times", type=int, default=200, help="of each point, with --size points")
    parser.add_argument(
        "--store", choices=["sqlite", "postgres"], action="append", help="with --size points: only this"
    )
    parser.add_argument("--out", type=Path, default=Path("build/chaos"))
    parser.add_argument("--keep", action="store_true", help="history, ledger and logs also when all is well")
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it: asyncio must not
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))  # then everything is taken down
    seed = secrets.randbelow(1_000_000) if given.seed is None else given.seed
    if given.size in ("points", "part"):
        from proof.chaos.points import main as points
        from proof.chaos.points import play_part

        stores = given.store or ("sqlite", "postgres")
        if given.size == "part":
            return play_part(stores[0], seed, given.out, given.times)
        return points(seed, given.out, given.times, stores)
    place = given.out / f"{given.size}-{given.profile}-{seed}"
    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        result, story = runner.run(play(seed, SIZES[given.size], profile=given.profile, keep=place, always=given.keep))
    print(told(result, full=given.size == "full"), flush=True)  # before the page: what was found is known either way
    print(f"report: {write_report(place, result, story)}")
    return 1 if result.violations else 0


if __name__ == "__main__":
    sys.exit(main())
