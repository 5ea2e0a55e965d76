"""What is driven again after a pause: allowed once the job has ended, because its last slot was cancelled meanwhile."""

from __future__ import annotations

import msgspec
import pytest

from proof.checker.events import Claimed, Received, Wrote
from proof.checker.orders import check_orders
from proof.checker.story import Story
from tests.proof.making import BEGIN, Tale

LAST = f"1-{BEGIN + 20_000}"
AGAIN = f"1-{BEGIN + 10_000}-r4"


def broken(
    *, state: str = "ended", cancelled: str = LAST, then: str | None = None, claimed_at: int = 30_000
) -> set[str]:
    """Of two slots the first fired. Paused at 15 s, the second is cancelled at 25 s, and the first driven again."""
    tale = Tale({"every": "10s", "count": 2}).fires(10_000)
    tale.entry(20_000, "cancelled", token=0)
    tale.add(
        Wrote(at=15_000, db=BEGIN + 15_000, verb="pause", job=1, view={"state": "paused"}),
        Wrote(at=25_000, db=BEGIN + 25_000, verb="cancel", job=1, runs=[cancelled]),
        Claimed(at=claimed_at, db=BEGIN + claimed_at, node="a", run=AGAIN, token=1),
        Received(
            at=claimed_at + 2, db=BEGIN + claimed_at + 2, run=AGAIN, job=1, token=1, answer="ok", took=5, node="a"
        ),
    )
    if then is not None:
        tale.add(Wrote(at=28_000, db=BEGIN + 28_000, verb=then, job=1, view={"state": "paused"}))  # type: ignore[arg-type]
    tale.jobs = [msgspec.structs.replace(tale.jobs[0], state=state)]
    again = msgspec.structs.replace(tale.entries[0], id=AGAIN, kind="redrive")
    tale.entries.append(again)
    story = Story(tale.history(), msgspec.structs.replace(tale.ledger(), whole=True))
    return {violation.kind for violation in check_orders(story)}


def test_once_its_last_slot_was_cancelled_it_is_paused_no_more() -> None:
    assert broken() == set()


@pytest.mark.parametrize(
    "more",
    [
        {"state": "paused"},
        {"cancelled": f"1-{BEGIN + 10_000}"},
        {"then": "edit"},
        {"claimed_at": 20_000},
    ],
)
def test_until_then_it_is(more: dict[str, str]) -> None:
    assert broken(**more) == {"after_pause"}  # type: ignore[arg-type]
