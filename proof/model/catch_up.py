"""Catch-up: slots arrived while nobody was there. Which of them fire, and what the ledger says of the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from proof.model.rules import DAY, MINUTE, Rules

__all__ = ["Caught", "caught_up"]


class Caught(msgspec.Struct, frozen=True, kw_only=True):
    """fire: slots that become runs. given_up: the others, one range. reason: why."""

    fire: list[int]
    given_up: list[int]
    reason: str | None = None


def caught_up(rules: Rules, arrived: Sequence[int], now: int, due: Callable[[int], int]) -> Caught:
    """arrived: slots from the next one of the job up to now, oldest first. due: the instant of a slot, with its jitter.

    latest: the newest fires if it is not a day late. skip: if it is not a minute late. all: the newest `limit` of them.
    One that expired does not fire, nor does any before it.
    """
    wanted = rules.catch_up_limit if rules.catch_up == "all" else 1
    bound = {"latest": DAY, "skip": MINUTE}.get(rules.catch_up)
    fire: list[int] = []
    for slot in reversed(arrived):
        late = now - due(slot)
        if len(fire) == wanted or (bound is not None and late > bound):
            break
        if rules.expires_in is not None and late > rules.expires_in:
            break
        fire.append(slot)
    fire.reverse()
    rest = list(arrived[: len(arrived) - len(fire)])
    if not rest:
        return Caught(fire=fire, given_up=[])
    return Caught(fire=fire, given_up=rest, reason="coalesced" if fire and rules.catch_up != "all" else "late")
