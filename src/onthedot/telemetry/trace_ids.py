"""Trace and span ids of runs, as W3C trace context has them: made of the run alone.

All attempts of a run share a trace, any node would write the same, and whoever knows the id of a run can look up its
trace. A span id of an attempt goes out with its webhook, so what the receiver does is a child of that very span.
"""

from __future__ import annotations

import hashlib

__all__ = ["attempt_span", "claim_span", "create_span", "run_span", "trace_id", "traceparent"]


def trace_id(run_id: str) -> str:
    return _digest(run_id)[:32]


def attempt_span(run_id: str, attempt: int) -> str:
    return f"{int(_digest(run_id)[32:48], 16) ^ attempt:016x}"


def run_span(run_id: str) -> str:
    """Of the whole run: the root of its trace."""
    return _digest(run_id)[48:]


def claim_span(run_id: str) -> str:
    return f"{int(_digest(run_id)[48:], 16) ^ 1:016x}"


def create_span(run_id: str) -> str:
    """Of the request that made the job whose first run this is."""
    return f"{int(_digest(run_id)[48:], 16) ^ 2:016x}"


def traceparent(run_id: str, attempt: int) -> str:
    """Asked for each webhook: one digest."""
    digest = _digest(run_id)
    return f"00-{digest[:32]}-{int(digest[32:48], 16) ^ attempt:016x}-01"


def _digest(run_id: str) -> str:
    return hashlib.sha256(run_id.encode()).hexdigest()
