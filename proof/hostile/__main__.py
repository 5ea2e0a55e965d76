"""`python -m proof.hostile`: every request of the corpus, how long it took and how long it held the loop."""

from __future__ import annotations

import argparse
import asyncio
import sys

from proof.hostile.corpus import corpus
from proof.hostile.play import LIMIT, play, serving


async def main(only: str, scale: float, store: tuple[str, ...]) -> int:
    wanted = [request for request in corpus(scale) if only in request.name]
    longest, over = 0.0, 0
    async with serving(*store) as node:
        async for played in play(node, wanted):
            print(played, "  <-- too long" if played.held > LIMIT else "", flush=True)
            longest, over = max(longest, played.held), over + (played.held > LIMIT)
        said = [line[:600] for line in node.output().splitlines() if "event loop blocked" in line]
    print(*said, sep="\n")
    print(f"{len(wanted)} requests; the loop was never held longer than {longest * 1000:.0f} ms; over 20 ms: {over}")
    return 1 if over else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="requests whose name holds this")
    parser.add_argument("--scale", type=float, default=1.0, help="of what is measured in megabytes")
    parser.add_argument("--store", help="a database instead of a SQLite file of its own")
    asked = parser.parse_args()
    sys.exit(asyncio.run(main(asked.only, asked.scale, ("--store", asked.store) if asked.store else ())))
