"""Formats errors for the terminal, with advice on how to fix them."""

from __future__ import annotations

from onthedot.errors import (
    Forbidden,
    Invalid,
    NotOnTheDot,
    OnTheDotError,
    StoreUnavailable,
    Unauthorized,
    Unreachable,
)

__all__ = ["explain"]

# --server and --api-key mean the same in every command: --url and --key are the job's in `jobs add`
_ADVICE: dict[type[OnTheDotError], str] = {
    Unreachable: "Is the server running? Start it with `onthedot serve`, or set its URL with --server or ONTHEDOT_URL.",
    NotOnTheDot: "Give the server's address with --server or ONTHEDOT_URL (--url is the same, except in `jobs add`). "
    "To change the URL of a webhook, use `jobs edit JOB --target-url`.",
    Unauthorized: "Pass an API key with --api-key or ONTHEDOT_KEY. To create one, use an admin key: `onthedot keys "
    "create --name me --scope write --url … --key …`. Without one, create a key in the store with --store (on SQLite, "
    "stop the server first).",
    Forbidden: "Use a key with a wider scope. To create one, use an admin key: `onthedot keys create --name me --scope "
    "admin --url … --key …`. Without one, create a key in the store with --store (on SQLite, stop the server first).",
    StoreUnavailable: "Run `onthedot doctor` to diagnose the problem.",
}


def explain(error: OnTheDotError) -> str:
    lines = [f"Error: {_first(error)}"]
    if isinstance(error, Invalid) and (len(error.problems) > 1 or error.problems[0].accepted):
        lines = ["Error: validation failed."]
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
