"""`python -m proof.queues [--broker nats] [--firings 5000] [--rate N]`: prints figures; exit 1 if any was lost."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys

from proof.queues.play import PEERS, RATE, RATES, play

__all__ = ["main"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m proof.queues", description=__doc__)
    parser.add_argument("--broker", choices=[*PEERS], action="append", help="only this; may be given again")
    parser.add_argument("--firings", type=int, default=5000)
    parser.add_argument("--rate", type=float, help="firings a second; by default 250, and 50 for the simulated SQS")
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))  # then everything is taken down
    held = True
    for broker in given.broker or PEERS:
        played = asyncio.run(play(broker, given.firings, given.rate or RATES.get(broker, RATE)))
        print(played.told(), flush=True)
        held = held and played.holds
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
