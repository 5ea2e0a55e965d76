"""Chains: the jobs that the end of a run starts, by key (`on_success`, `on_failure`, `on_finish`). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.job import JobSpec

__all__ = [
    "EDGES",
    "LONGEST_CHAIN",
    "ChainLink",
    "ChainNeighbours",
    "ChainTrigger",
    "chain_problems",
    "edges_of",
    "followers",
]

EDGES = ("on_success", "on_failure", "on_finish")

LONGEST_CHAIN = 32
"""How many runs may follow one another. Cycles are refused when a job is written; this also ends a chain that is
lengthened by edits while it runs."""


class ChainTrigger(msgspec.Struct, frozen=True, kw_only=True):
    """`params.trigger` of a run that a chain has started: which run ended, and how."""

    job_key: str | None
    job_id: int
    run_id: str
    status: str  # DONE | FAILED
    result: Any
    error: str | None


class ChainLink(msgspec.Struct, frozen=True, kw_only=True):
    """Another job of a chain. `on`: the field that names it, or that names this job there."""

    on: str
    id: int
    key: str | None


class ChainNeighbours(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that the end of a run starts (`followers`), and those whose ends start this one (`follows`)."""

    follows: list[ChainLink]
    followers: list[ChainLink]


def edges_of(spec: JobSpec) -> Iterator[tuple[str, int, str]]:
    """(field, place in it, key of the job that follows), of all that follow."""
    for field in EDGES:
        for place, key in enumerate(getattr(spec, field) or ()):
            yield field, place, key


def followers(spec: JobSpec, *, done: bool) -> list[str]:
    """Keys of the jobs that the end of a run starts. Not `done`: it is a dead letter."""
    chosen = spec.on_success if done else spec.on_failure
    return [*(chosen or ()), *(spec.on_finish or ())]


def chain_problems(spec: JobSpec) -> Iterator[FieldProblem]:
    """What is wrong with it whatever other jobs there are: no end starts a job twice."""
    for field, place, key in edges_of(spec):
        named = getattr(spec, field)
        if key in named[:place]:
            yield _twice(field, place, key, f"{field} already names this job", "each key once")
        elif field != "on_finish" and key in (spec.on_finish or ()):
            message = "on_finish already names this job, so it would start twice"
            yield _twice(field, place, key, message, f"the key in {field} or in on_finish")


def _twice(field: str, place: int, key: str, message: str, accepted: str) -> FieldProblem:
    return FieldProblem(path=f"{field}[{place}]", message=message, given=key, accepted=accepted)
