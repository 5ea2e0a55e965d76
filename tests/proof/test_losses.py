"""A loss counts if the run may have begun under the node that was lost."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from proof.checker.events import Begun, Wrote
from proof.checker.ledger import Attempt
from proof.checker.losses import check_losses
from proof.checker.story import Story
from tests.proof.making import BEGIN, Tale

RUN = f"1-{BEGIN + 10_000}"
TARGET = {"type": "webhook", "url": "http://receiver/1"}


def broken(
    losses: int, *, lost_at: int = 15_000, begun: bool = False, edited: int | None = None, **policy: Any
) -> set[str]:
    """Held by `a` from 8 s on, due at 10 s, taken back from it at `lost_at`; done by `b`."""
    tale = Tale(**policy)
    spec = {**tale.jobs[0].spec, "target": TARGET}
    tale.add(Wrote(at=0, db=BEGIN, verb="create", job=1, wish=spec))
    if edited is not None:
        tale.add(Wrote(at=edited, db=BEGIN + edited, verb="edit", job=1, wish={"params": {"mark": 2}}))
    tale.claimed(10_000, at=8000)
    if begun:
        tale.add(Begun(at=10_000, db=BEGIN + 10_000, node="a", run=RUN, token=1))
    tale.lost("a", lost_at)
    tale.claimed(10_000, token=2, node="b", at=16_000).sent(10_000, token=2, node="b", at=16_005)
    tale.recorded(10_000, token=2, node="b", at=16_020, outcome="ok")
    told = [
        Attempt(attempt=1, node="a", finished_at=BEGIN + lost_at, outcome="lost"),
        Attempt(attempt=2, node="b", started_at=BEGIN + 16_004, finished_at=BEGIN + 16_015, outcome="ok"),
    ]
    tale.entry(10_000, token=2, losses=losses, attempts=told, outcome={"kind": "ok"})
    story = Story(tale.history(), msgspec.structs.replace(tale.ledger(), whole=True))
    return {violation.kind for violation in check_losses(story)}


@pytest.mark.parametrize(
    ("counted", "how"),
    [
        (1, {}),
        (0, {"lost_at": 9_900}),  # before its instant
        (0, {"delivery": "at_most_once"}),  # without the record of the send
        (0, {"expires_in": "1h"}),
        (1, {"expires_in": "1h", "begun": True}),
    ],
)
def test_a_loss_counts_once_the_run_may_have_begun(counted: int, how: dict[str, Any]) -> None:
    assert broken(counted, **how) == set()
    assert broken(1 - counted, **how) == {"tries"}


@pytest.mark.parametrize(("edited", "known"), [(7000, True), (9000, False), (15_500, False), (17_000, True)])
def test_nobody_knows_once_its_job_was_changed_while_it_was_held(edited: int, known: bool) -> None:
    assert broken(1, edited=edited) == set()
    assert broken(0, edited=edited) == ({"tries"} if known else set())
