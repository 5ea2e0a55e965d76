"""`python -m proof.kubernetes [--jobs 300] [--rate 5]`: prints figures; exit 1 if any was lost or started twice."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys

from proof.kubernetes.play import play

__all__ = ["main"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proof.kubernetes", description=__doc__)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--rate", type=float, default=5.0, help="firings a second")
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))  # then everything is taken down
    played = asyncio.run(play(given.jobs, given.rate))
    print(played.told(), flush=True)
    return 0 if played.holds else 1


if __name__ == "__main__":
    sys.exit(main())
