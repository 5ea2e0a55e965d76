"""`python -m proof.hostile`: every request of the corpus, how long it took and how long it held the loop.

With several rounds, each on a new server, the shortest counts: what a request costs is the same in each, and what the
machine did meanwhile is not. How much time the host of a virtual machine took for others is told with the result, and
how long the machine holds a loop that shares the interpreter with a thread which only counts.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from proof.hostile.corpus import Request, corpus
from proof.hostile.floor import measure_floor
from proof.hostile.play import LIMIT, Played, play, serving


async def main(only: str, scale: float, store: tuple[str, ...], rounds: int) -> int:
    wanted = [request for request in corpus(scale) if only in request.name]
    best: dict[str, float] = {}
    longest, before, floors = 0.0, _stolen(), [measure_floor()]
    for number in range(1, rounds + 1):
        if rounds > 1:
            print(f"round {number} of {rounds}", flush=True)
        for played in await _round(wanted, store):
            name = played.request.name
            best[name] = min(best.get(name, played.held), played.held)
            longest = max(longest, played.held)
    over = [name for name, held in best.items() if held > LIMIT]
    print(
        f"{len(wanted)} requests; the loop was never held longer than {longest * 1000:.0f} ms; over 20 ms"
        f"{f' in each of {rounds} rounds' if rounds > 1 else ''}: {len(over)}{': ' + ', '.join(over) if over else ''}"
    )
    floors.append(measure_floor())
    print(
        f"the host took {_stolen() - before:.1f} s of CPU from this machine meanwhile; beside a thread that only"
        f" counts a loop was held for up to {floors[0] * 1000:.0f} ms before and {floors[1] * 1000:.0f} ms after"
    )
    return 1 if over else 0


async def _round(wanted: list[Request], store: tuple[str, ...]) -> list[Played]:
    done = []
    async with serving(*store) as node:
        async for played in play(node, wanted):
            print(played, "  <-- too long" if played.held > LIMIT else "", flush=True)
            done.append(played)
        said = [line[:600] for line in node.output().splitlines() if "event loop blocked" in line]
    if said:
        print(*said, sep="\n")
    return done


def _stolen() -> float:
    """Seconds, of all cores; 0 where the system does not tell."""
    try:
        return int(Path("/proc/stat").read_text().split()[8]) / 100
    except (OSError, IndexError, ValueError):
        return 0.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="requests whose name holds this")
    parser.add_argument("--scale", type=float, default=1.0, help="of what is measured in megabytes")
    parser.add_argument("--rounds", type=int, default=1, help="the shortest of so many counts")
    parser.add_argument("--store", help="a database instead of a SQLite file of its own")
    asked = parser.parse_args()
    store = ("--store", asked.store) if asked.store else ()
    sys.exit(asyncio.run(main(asked.only, asked.scale, store, asked.rounds)))
