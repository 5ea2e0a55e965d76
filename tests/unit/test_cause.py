"""Causes: failures of one kind have one, others have another."""

from __future__ import annotations

from typing import Any

import pytest

from onthedot.model.run import Outcome
from onthedot.plan import cause_of
from tests.store.given import spec

URL = "https://user:secret@api.example.com:8443/hook/7?token=x"


def cause(kind: Any = "error", error: str | None = None, url: str | None = None, **detail: Any) -> str:
    target = None if url is None else spec(target={"type": "webhook", "url": url}).target
    return cause_of(Outcome(kind=kind, error=error, detail=detail), target)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (
            {"error": "the receiver returned 503", "status_code": 503, "url": URL},
            "HTTP 503 from https://api.example.com:8443",
        ),
        ({"error": "x", "status_code": 404}, "HTTP 404"),
        ({"kind": "timeout", "error": "timed out after 3 s", "url": URL}, "timed out after 3 s"),
        ({"error": "[Errno 111] Connect call failed ('127.0.0.1', 9)"}, "connection refused"),
        ({"error": "exit code 1"}, "exit code 1"),
        ({"error": "killed by SIGKILL"}, "killed by SIGKILL"),
        ({"kind": "timeout", "error": "missed: no check-in within 10m"}, "missed: no check-in within 10m"),
        (
            {"kind": "timeout", "error": "missed: started, but no success reported within 1h30m"},
            "missed: started, but no success reported within 1h30m",
        ),
        ({"error": "ValueError: order 4711 of 12.5 is gone\nTraceback 5"}, "ValueError: order N of N is gone"),
        ({"error": "KeyError: '3f2504e0-4f89-11d3-9a0c-0305e82c3301'"}, "KeyError: 'ID'"),
        ({"error": "no object at 0x7f5be2f217d0, deadbeef01"}, "no object at ID, ID"),
        ({"kind": "lost"}, "lost"),
        ({"error": "x" * 500}, "x" * 199 + "…"),
    ],
)
def test_what_differs_from_run_to_run_is_left_out(given: dict[str, Any], wanted: str) -> None:
    assert cause(**given) == wanted
