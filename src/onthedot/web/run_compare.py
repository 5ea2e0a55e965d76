"""A run beside another one of its job: what differs. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.model.run import RunView
from onthedot.web.words import how_long, status_words, utc

__all__ = ["ComparedLine", "compare"]


class ComparedLine(msgspec.Struct, frozen=True):
    """`always`: it differs between any two runs, which tells nothing."""

    label: str
    this: str
    other: str
    always: bool = False

    @property
    def differs(self) -> bool:
        return self.this != self.other and not self.always


def compare(run: RunView, good: RunView) -> list[ComparedLine]:
    """Both as the list of runs has them."""
    found = [
        ComparedLine("Status", status_words(run.status), status_words(good.status)),
        ComparedLine("Scheduled", utc(run.scheduled_for), utc(good.scheduled_for), always=True),
        ComparedLine("Started late by", how_long(run.lateness_ms) or "–", how_long(good.lateness_ms) or "–"),
        ComparedLine("Took", how_long(run.duration_ms) or "–", how_long(good.duration_ms) or "–"),
        ComparedLine("Tries", str(run.tries), str(good.tries)),
        ComparedLine("Answer", _answer(run), _answer(good)),
        ComparedLine("Error", run.error or "–", good.error or "–"),
        ComparedLine("Own params", _json(run.params), _json(good.params)),
    ]
    return [line for line in found if (line.this, line.other) != ("–", "–")]


def _answer(run: RunView) -> str:
    outcome = run.outcome or {}
    for name, words in (("status_code", "status {}"), ("exit_code", "exit code {}")):
        if outcome.get(name) is not None:
            return words.format(outcome[name])
    return str(outcome.get("kind") or "–")


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode() if value else "–"
