"""A run beside another one of its job: what differs. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from onthedot.model.run import RunView
from onthedot.model.run_comparison import RunComparison, is_notable
from onthedot.web.run_story import trigger_words
from onthedot.web.words import how_long, status_words, utc

__all__ = ["ComparedLine", "compare", "compare_in_full"]

OWN_PARAMS = "Own params"
LONGEST = 500
"""Characters of a value; its page has the whole."""


class ComparedLine(msgspec.Struct, frozen=True):
    """`always`: it differs between any two runs, which tells nothing. `link`: to what says more of it."""

    label: str
    this: str
    other: str
    always: bool = False
    link: str | None = None

    @property
    def differs(self) -> bool:
        return self.this != self.other and not self.always


def compare(run: RunView, good: RunView) -> list[ComparedLine]:
    """Both as the list of runs has them."""
    found = [
        ComparedLine("Status", status_words(run.status), status_words(good.status)),
        ComparedLine("Scheduled", utc(run.scheduled_for), utc(good.scheduled_for), always=True),
        _duration("Started late by", run.lateness_ms, good.lateness_ms),
        _duration("Took", run.duration_ms, good.duration_ms),
        ComparedLine("Tries", str(run.tries), str(good.tries)),
        ComparedLine("Answer", _answer(run), _answer(good)),
        ComparedLine("Error", run.error or "–", good.error or "–"),
        ComparedLine(OWN_PARAMS, _json(run.params), _json(good.params)),
    ]
    return [line for line in found if (line.this, line.other) != ("–", "–")]


def _duration(label: str, this: int | None, other: int | None) -> ComparedLine:
    return ComparedLine(label, how_long(this) or "–", how_long(other) or "–", always=not is_notable(this, other))


def compare_in_full(found: RunComparison) -> list[ComparedLine]:
    """The lines of `compare`, and what differs in what was sent and answered. Each run as its page has it."""
    lines = [
        *compare(found.run, found.other),
        ComparedLine("Trigger", trigger_words(found.run), trigger_words(found.other)),
        _version_line(found),
    ]
    has_own_params = any(line.label == OWN_PARAMS for line in lines)
    told = (*_TOLD, "params") if has_own_params else _TOLD
    further = [each for each in found.differences if each.field.partition(".")[0] not in told]
    return [*lines, *(ComparedLine(_label(each.field), _value(each.this), _value(each.other)) for each in further)]


_TOLD = (
    *("status", "error", "tries", "trigger", "job_version", "lateness_ms", "duration_ms"),  # have a line of their own
    *("reason", "outcome", "response"),  # stand elsewhere on the page
)
_LABELS = {"key": "Job", "node": "Node", "losses": "Lost with a node"}
_PARTS = (
    ("request.headers.", "Header "),
    ("request.body.", "Body: "),
    ("request.", "Request: "),
    ("params.", "Param "),
)


def _label(field: str) -> str:
    for start, words in _PARTS:
        if field.startswith(start):
            return words + field.removeprefix(start)
    return _LABELS.get(field, field.capitalize())


def _version_line(found: RunComparison) -> ComparedLine:
    this, other = found.run_version, found.other_version
    label, link = "Job's version", None
    if found.run.job_id == found.other.job_id and this != other:
        link = f"/jobs/{found.run.job_id}/versions"
    return ComparedLine(label, str(this or "–"), str(other or "–"), link=link)


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else "–" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _answer(run: RunView) -> str:
    outcome = run.outcome or {}
    for name, words in (("status_code", "status {}"), ("exit_code", "exit code {}")):
        if outcome.get(name) is not None:
            return words.format(outcome[name])
    return str(outcome.get("kind") or "–")


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode() if value else "–"
