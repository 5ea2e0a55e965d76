"""The same request twice has one effect: who comes first writes the row, who comes later reads its answer.

Kept for 24 hours. The row is written in the transaction of the effect itself, so that there is never one without the
other. On PostgreSQL a second writer waits for the first to commit, then finds its row.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from onthedot.errors import Conflict, IdempotencyMismatch, Invalid
from onthedot.model.duration import DAY
from onthedot.store.driver import Transaction
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = [
    "KEPT",
    "Answers",
    "Idempotency",
    "OutsideActs",
    "UsedKey",
    "Wanted",
    "claim_keys",
    "is_same",
    "mismatch",
    "once",
    "read_answer",
    "release_keys",
]

T = TypeVar("T")
KEPT = DAY


class Idempotency(msgspec.Struct, frozen=True):
    """`key` as the caller sent it, `fingerprint` of what was asked: another body under the same key is a mistake."""

    key: str
    fingerprint: str


class UsedKey(Shape, frozen=True, order=True):
    tenant: int
    key: str


class KeptAnswer(Shape, frozen=True, order=True):
    """What was asked under a key, and the answer."""

    tenant: int
    key: str
    fingerprint: str
    result: str


def is_same(kept: str, asked: str) -> bool:
    """Whether two fingerprints are of the same request. One in a form that another release writes can't be compared: it
    is taken for the same. To refuse a repeat during an upgrade is worse than not to notice that a body changed."""
    return kept == asked or _form(kept) != _form(asked)


def _form(fingerprint: str) -> str:
    return fingerprint.rpartition(":")[0]


Wanted = tuple[int, Idempotency, str]  # tenant, what it is recognised by, the answer if it is new
Answers = Mapping[tuple[int, str], str | Invalid]


async def claim_keys(tx: Transaction, wanted: Sequence[Wanted], now: int) -> Answers:
    """Write the rows that are new. For each one that is not: the answer kept, or IdempotencyMismatch."""
    if not wanted:
        return {}
    rows = sorted(KeptAnswer(tenant, repeat.key, repeat.fingerprint, answer) for tenant, repeat, answer in wanted)
    won = {(row["tenant"], row["key"]) for row in await tx.rows("claim_idempotency", now, now - KEPT, Rows(rows))}
    lost = {(row.tenant, row.key): row.fingerprint for row in rows if (row.tenant, row.key) not in won}
    if not lost:
        return {}
    found = await tx.rows("read_idempotency", Rows([UsedKey(tenant, key) for tenant, key in lost]))
    return {
        (row["tenant"], row["key"]): row["result"]
        if is_same(row["fingerprint"], lost[row["tenant"], row["key"]])
        else mismatch(row["key"])
        for row in found
    }


async def release_keys(tx: Transaction, keys: Sequence[tuple[int, str]]) -> None:
    """What failed may be tried again under the same key."""
    if keys:
        await tx.execute("release_idempotency", Rows([UsedKey(tenant, key) for tenant, key in keys]))


async def once(
    tx: Transaction, tenant: int, repeat: Idempotency | None, kind: type[T], act: Callable[[], Awaitable[T]]
) -> T:
    """Act, or answer what was answered before under the same key. The key is claimed first: on PostgreSQL a second one
    waits there until the first has committed. What fails rolls the claim back with everything else."""
    if repeat is None:
        return await act()
    kept = (await claim_keys(tx, [(tenant, repeat, "")], await tx.now())).get((tenant, repeat.key))
    if isinstance(kept, Invalid):
        raise kept
    if kept is not None:
        return read_answer(kept, kind, repeat.key)
    answer = await act()
    await tx.execute("keep_answer", tenant, repeat.key, msgspec.json.encode(answer).decode())
    return answer


class OutsideActs(Topic):
    """What acts outside of the database is not in the transaction of its row: the key is taken first, the answer is
    kept afterwards. A key that was taken and has no answer is of an act of which nobody knows whether it was done."""

    async def begin_once(self, tenant: int, repeat: Idempotency, kind: type[T]) -> T | None:
        """None: go on, the key is taken. Or what was answered before. Conflict: it is being done, or was broken off."""

        async def body(tx: Transaction) -> str | Invalid | None:
            return (await claim_keys(tx, [(tenant, repeat, "")], await tx.now())).get((tenant, repeat.key))

        kept = await self.as_asked(body)
        if isinstance(kept, Invalid):
            raise kept
        if kept == "":
            raise Conflict("a request with this Idempotency-Key is in progress, or ended without a known result")
        return None if kept is None else read_answer(kept, kind, repeat.key)

    async def keep_once(self, tenant: int, repeat: Idempotency, answer: object) -> None:
        said = msgspec.json.encode(answer).decode()
        await self.driver.transact_slow(lambda tx: tx.execute("keep_answer", tenant, repeat.key, said))


def read_answer(kept: str, kind: type[T], key: str) -> T:
    """What was answered then. Of another kind than it should be: another verb was asked for under this key."""
    try:
        return msgspec.json.decode(kept, type=kind)
    except msgspec.DecodeError:
        raise mismatch(key) from None


def mismatch(key: str) -> Invalid:
    return IdempotencyMismatch.one(
        "Idempotency-Key", "was already used for a different request", given=key, accepted="a new key for a new request"
    )
