"""`python -m proof.fuzz --inputs 12000000`: random input for all that reads what strangers wrote."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from proof.fuzz.readers import READERS
from proof.fuzz.run import Find, play, replay

EVERY = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(READERS))
    parser.add_argument("--processes", type=int)
    parser.add_argument("--replay", help="one input, in hex")
    parser.add_argument("--cut", type=int, default=0)
    asked = parser.parse_args()
    if asked.replay is not None:
        accepted, why = replay(asked.only, bytes.fromhex(asked.replay), asked.cut)
        print(why or ("accepted" if accepted else "refused"))
        return 1 if why else 0
    return _all([asked.only] if asked.only else list(READERS), asked.inputs, asked.seed, asked.processes)


def _all(names: list[str], number: int, seed: int, processes: int | None) -> int:
    began = told = time.monotonic()
    done, accepted, slowest = Counter[str](), Counter[str](), Counter[str]()
    finds: dict[tuple[str, str], Find] = {}
    for block in play(names, number, seed, processes):
        done[block.reader] += block.inputs
        accepted[block.reader] += block.accepted
        slowest[block.reader] = max(slowest[block.reader], int(block.slowest * 1000))
        for find in block.finds:
            if finds.setdefault((find.reader, find.why.partition(":")[0]), find) is find:
                print(find, flush=True)
        if time.monotonic() - told > EVERY:
            told = time.monotonic()
            print(f"{done.total():,} inputs in {told - began:.0f} s, {len(finds)} finds", flush=True)
    for name in names:
        share = 100 * accepted[name] / done[name]
        print(f"{name:<11} {done[name]:>10,} inputs, {share:4.1f} % accepted, the slowest took {slowest[name]} ms")
    took = time.monotonic() - began
    print(f"{done.total():,} inputs with seed {seed} in {took:.0f} s: {len(finds)} finds")
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
