"""Errors for people at a terminal: what is wrong, and what to do about it."""

from __future__ import annotations

from onthedot.errors import Forbidden, Invalid, OnTheDotError, StoreInUse, StoreUnavailable, Unauthorized, Unreachable

__all__ = ["explain"]

_ADVICE: dict[type[OnTheDotError], str] = {
    Unreachable: "Is it running? `onthedot serve` starts it; --url or ONTHEDOT_URL says where it is.",
    Unauthorized: "Give a key with --key or ONTHEDOT_KEY. Who has an admin key makes one: `onthedot keys create --name "
    "me --scope write --url … --key …`; on PostgreSQL --store will do.",
    Forbidden: "Who has an admin key makes one that may do more: `onthedot keys create --name me --scope admin --url … "
    "--key …`; on PostgreSQL --store will do.",
    StoreUnavailable: "`onthedot doctor` looks at what is wrong.",
    StoreInUse: "Stop the other process, or talk to it with --url.",
}


def explain(error: OnTheDotError) -> str:
    lines = [f"Error: {_first(error)}"]
    if isinstance(error, Invalid) and (len(error.problems) > 1 or error.problems[0].accepted):
        lines = ["Error: this can't be accepted."]
        for problem in error.problems:
            given = f" (given: {problem.given})" if problem.given is not None else ""
            lines.append(f"  {problem.path}: {problem.message}{given}")
            if problem.accepted:
                lines.append(f"    accepted: {problem.accepted}")
    advice = next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), None)
    if advice is not None:
        lines.append(advice)
    return "\n".join(lines)


def _first(error: OnTheDotError) -> str:
    text = str(error) or (type(error).__doc__ or "").strip()
    return text if "\n" not in text else "\n  " + text.replace("\n", "\n  ")
