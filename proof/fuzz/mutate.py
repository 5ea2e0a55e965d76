"""Inputs by chance, always the same for the same seed: good ones, changed a little, spliced, repeated."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

__all__ = ["inputs"]

LONGEST = 4000
_ODD = [bytes([n]) for n in (0, 1, 9, 10, 13, 32, 127, 128, 255)]
_ODD += [b"\r\n", b"\xc3\xbc", b"\xed\xa0\x80", b"\xe2\x80\xae"]
_NUMBERS = [b"0", b"-1", b"1", b"59", b"60", b"255", b"256", b"65536", b"4294967295", b"9223372036854775808", b"9" * 30]


def inputs(rng: random.Random, seeds: Sequence[bytes], words: Sequence[bytes], number: int) -> Iterator[bytes]:
    """`words` are what the grammar is made of."""
    pieces = [*words, *_ODD, *_NUMBERS]
    choose, below = rng.choice, rng.randrange
    for _ in range(number):
        text = choose(seeds)
        for _ in range(1 + int(rng.expovariate(0.6))):
            kind, place = below(9), below(len(text) + 1)
            if kind <= 2:
                text = text[:place] + choose(pieces) + text[place:]
            elif kind == 3:
                text = text[:place] + choose(pieces) + text[place + below(4) :]
            elif kind == 4:
                text = text[:place] + text[place + 1 + below(8) :]
            elif kind == 5 and text:
                at = below(len(text))
                text = text[:at] + bytes([text[at] ^ (1 << below(8))]) + text[at + 1 :]
            elif kind == 6:
                other = choose(seeds)
                text = text[:place] + other[below(len(other) + 1) :]
            elif kind == 7:
                end = place + below(20)
                text = text[:place] + text[place:end] * (2 + below(30 if below(20) == 0 else 2)) + text[end:]
            else:
                text = text[:place] + bytes([below(256)]) + text[place + below(2) :]
        yield text[:LONGEST]
