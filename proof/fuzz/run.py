"""Blocks of inputs, spread over processes; what was found is told with the input that shows it."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from multiprocessing import get_context

import msgspec

from proof.fuzz.mutate import inputs
from proof.fuzz.reader import Wrong
from proof.fuzz.readers import READERS

__all__ = ["BLOCK", "Block", "Find", "play", "replay"]

BLOCK = 2000
SLOW = 0.5  # seconds of CPU for one input of at most 4 kB


class Find(msgspec.Struct, frozen=True):
    reader: str
    raw: bytes
    cut: int
    why: str

    def __str__(self) -> str:
        again = f"python -m proof.fuzz --only {self.reader} --replay {self.raw.hex()} --cut {self.cut}"
        return f"{self.reader}: {self.why}\n  {self.raw[:300]!r}\n  {again}"


class Block(msgspec.Struct, frozen=True):
    reader: str
    inputs: int
    accepted: int
    finds: list[Find]
    slowest: float


def play(names: list[str], number: int, seed: int, processes: int | None = None) -> Iterator[Block]:
    """`number` inputs in all, the same share for each reader."""
    blocks = max(1, number // (BLOCK * len(names)))
    work = [(name, seed, block, min(BLOCK, number)) for block in range(blocks) for name in names]
    processes = processes or os.cpu_count() or 1
    if processes == 1:
        yield from map(_block, work)
        return
    with get_context("fork").Pool(processes) as pool:
        yield from pool.imap_unordered(_block, work, chunksize=4)


def _block(work: tuple[str, int, int, int]) -> Block:
    name, seed, number, size = work
    reader = READERS[name]
    rng = random.Random(f"{name}:{seed}:{number}")
    finds: list[Find] = []
    accepted, slowest = 0, 0.0
    for raw in inputs(rng, reader.seeds, reader.words, size):
        cut = rng.getrandbits(32)
        began = time.thread_time()
        taken, why = replay(name, raw, cut)
        took = time.thread_time() - began
        accepted += taken
        slowest = max(slowest, took)
        if why is None and took > SLOW:
            why = f"took {took:.2f} s"
        if why is not None:
            finds.append(Find(name, raw, cut, why))
    return Block(name, size, accepted, finds[:3], slowest)


def replay(name: str, raw: bytes, cut: int) -> tuple[bool, str | None]:
    """Whether it was accepted, and what is wrong, if anything."""
    try:
        return READERS[name].check(raw, random.Random(cut)), None
    except Wrong as wrong:
        return False, str(wrong)[:1000]
    except Exception as error:  # what a reader does not promise to raise
        return False, f"{type(error).__name__}: {error}"[:1000]
