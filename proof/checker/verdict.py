"""All checks together: a history, the ledger in the end, and what is wrong."""

from __future__ import annotations

from collections import Counter

from proof.checker.answers import check_answers
from proof.checker.callbacks import check_callbacks
from proof.checker.chains import check_chains
from proof.checker.completions import check_completions
from proof.checker.coverage import check_coverage
from proof.checker.deliveries import check_deliveries
from proof.checker.destinations import check_destinations
from proof.checker.events import Crashed, History
from proof.checker.fences import check_fences
from proof.checker.groups import check_groups
from proof.checker.ledger import Ledger
from proof.checker.liveness import check_liveness
from proof.checker.losses import check_losses
from proof.checker.orders import check_orders
from proof.checker.outlives import check_outlives
from proof.checker.outside_rows import check_outside_rows
from proof.checker.overlaps import check_overlaps
from proof.checker.parking import check_parking
from proof.checker.policies import check_policies
from proof.checker.repeats import check_repeats
from proof.checker.requests import check_requests
from proof.checker.results import check_results
from proof.checker.stamps import check_stamps
from proof.checker.story import Story, Violation
from proof.checker.verbs import check_verbs

__all__ = ["CHECKS", "Violation", "check"]

CHECKS = (
    check_coverage,
    check_deliveries,
    check_stamps,
    check_repeats,
    check_fences,
    check_verbs,
    check_requests,
    check_liveness,
    check_results,
    check_losses,
    check_policies,
    check_overlaps,
    check_orders,
    check_parking,
    check_chains,
    check_destinations,
    check_groups,
    check_answers,
    check_callbacks,
    check_completions,
    check_outlives,
    check_outside_rows,
)


def check(history: History, ledger: Ledger) -> tuple[list[Violation], Counter[str]]:
    """Everything that contradicts a promise; nothing: the promises were kept. And how often what was excused."""
    story = Story(history, ledger)
    found = [Violation(kind="crashed", text=f"{e.node}: {e.error}") for e in history if isinstance(e, Crashed)]
    for part in CHECKS:
        found.extend(part(story))
    return found, story.excuses
