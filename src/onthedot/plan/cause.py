"""Why a run failed, in short: what dead letters are grouped by. Numbers and ids that differ from run to run are left
out, so that a thousand failures of one kind have one cause."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from onthedot.model.run import Outcome
from onthedot.model.targets.spec import Target

__all__ = ["LONGEST_CAUSE", "cause_of"]

LONGEST_CAUSE = 200
_EXACT = re.compile(r"(exit code -?\d+|timed out after [\d.]+ s|killed by \w+|missed: [a-z ,-]+ within \w+)")
"""Texts of ours whose number is what they say."""
_REFUSED = re.compile(r"\[Errno 111\]|connection refused|connect call failed", re.IGNORECASE)
_UUID = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)
_HEX = re.compile(r"\b(?:0x[0-9a-f]+|(?=[0-9a-f]*\d)[0-9a-f]{8,})\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d+)*")


def cause_of(outcome: Outcome, target: Target | None) -> str:
    where = _origin(target)
    status = outcome.detail.get("status_code")
    if isinstance(status, int):
        return f"HTTP {status}" + (f" from {where}" if where else "")
    text = next((line.strip() for line in (outcome.error or "").splitlines() if line.strip()), "") or outcome.kind
    if outcome.kind == "error" and _REFUSED.search(text):
        return "connection refused" + (f" by {where}" if where else "")
    exact = _EXACT.match(text)
    if exact is not None:
        return exact[0]
    for pattern, word in ((_UUID, "ID"), (_HEX, "ID"), (_NUMBER, "N")):
        text = pattern.sub(word, text)
    return text if len(text) <= LONGEST_CAUSE else text[: LONGEST_CAUSE - 1] + "…"


def _origin(target: Target | None) -> str | None:
    """Of what is called by URL, where that is; without path, password or query."""
    if target is None:
        return None
    what = target.summary().what
    if not what.startswith(("http://", "https://")):
        return None
    try:
        split = urlsplit(what)
        port = f":{split.port}" if split.port is not None else ""
    except ValueError:
        return None
    return f"{split.scheme}://{split.hostname}{port}"
