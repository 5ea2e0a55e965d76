"""What is kept of what a run gives back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from onthedot.model.result import RESULT_LIMIT, SMALL_RESULT, large_result, read_result, settled
from onthedot.model.run import Outcome
from onthedot.store.runs.finish_rows import outcome_json


def stored(result: Any, *, keep: bool) -> tuple[dict[str, Any], Any]:
    """The outcome as the ledger shows it, and the result."""
    outcome, large = large_result(settled(Outcome(kind="ok", detail={"result": result}), keep=keep))
    shown = msgspec.json.decode(outcome_json(outcome))
    return shown, read_result(shown, large)


def of(size: int) -> str:
    """JSON of this size."""
    return "x" * (size - 2)


@pytest.mark.parametrize("result", [{"a": [1, None]}, [], 0, False, "", "text", 1.5, of(SMALL_RESULT)])
@pytest.mark.parametrize("keep", [True, False])
def test_a_small_one_is_kept(result, keep):
    assert stored(result, keep=keep) == ({"kind": "ok"}, result)


@pytest.mark.parametrize("size", [SMALL_RESULT + 1, RESULT_LIMIT])
def test_a_large_one_is_kept_if_the_job_says_so(size):
    assert stored(of(size), keep=True) == ({"kind": "ok"}, of(size))
    shown, result = stored(of(size), keep=False)
    assert result is None
    assert shown["result_note"] == (
        f'not kept: {size} bytes; more than 4096 are kept only with "keep_result": true in the job'
    )


@pytest.mark.parametrize("keep", [True, False])
def test_one_that_is_too_large_is_not(keep):
    shown, result = stored(of(RESULT_LIMIT + 1), keep=keep)
    assert result is None
    assert shown["result_note"] == "not kept: 65537 bytes exceed the limit of 65536"


def test_what_is_no_json_is_a_note():
    shown, result = stored(object, keep=True)
    assert result is None
    assert shown["result_note"] == "not kept: a value of type type is not JSON (<class 'object'>)"


def test_none_is_none():
    outcome = Outcome(kind="ok", detail={"exit_code": 0})
    assert settled(outcome, keep=True) is outcome
    assert read_result({"kind": "ok", "exit_code": 0}) is None


def test_a_short_json_answer_is_stored_once():
    shown = {"kind": "ok", "status_code": 200, "response": '{"a":1}', "json": True}
    assert read_result(shown) == {"a": 1}
    assert shown == {"kind": "ok", "status_code": 200, "response": '{"a":1}'}
