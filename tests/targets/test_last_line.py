"""The last line that a process prints is what the run gives back, if it is JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.targets.process.last_line import LastLine


def heard(*portions: str) -> LastLine:
    last = LastLine(lambda text: None)
    for portion in portions:
        last.write(portion)
    return last


@pytest.mark.parametrize(
    ("portions", "result"),
    [
        ((), None),
        (("hello\n",), None),
        (('{"rows": 3}\n',), {"rows": 3}),
        (('working\n{"rows": 3}',), {"rows": 3}),
        (('working\n{"ro', 'ws": 3}\n'), {"rows": 3}),
        (('{"rows": 3}\n', "\n", "  \n"), {"rows": 3}),
        (('{"rows": 3}\n', "bye\n"), None),
        (('{"rows"', ": 3}", "\nbye"), None),
        (("1\n2\n", "3\n"), 3),
        (("null\n",), None),
        (("NaN\n",), None),
        (("x" * 300_000, '\n{"a": 1}\n'), {"a": 1}),
        (('{"a": 1}' + "\n" * 300_000,), {"a": 1}),
        (("x" * 300_000 + "\n",), None),
        (("x" * 300_000, "\n" * 300_000, "{}\n"), {}),
    ],
)
def test_what_it_gives_back(portions, result):
    assert heard(*portions).given_back() == ({} if result is None else {"result": result})


@pytest.mark.parametrize(
    ("portions", "note"),
    [
        (('"' + "x" * 300_000 + '"\n',), "not kept: the last line exceeds the limit of 65536 bytes"),
        (('{"a": "', "x" * 70_000, '"}\n'), "not kept: the last line exceeds the limit of 65536 bytes"),
        (("[", *["1, "] * 60_000, "1]\n"), "not kept: the last line exceeds the limit of 65536 bytes"),
        (("[" * 10_000,), "not kept: it is nested too deeply"),
        (("[1] " + "x" * 300_000, "\n[1] and more\n"), None),
    ],
)
def test_why_it_gives_nothing_back(portions, note):
    assert heard(*portions).given_back() == ({} if note is None else {"result_note": note})


def test_everything_is_passed_on():
    log: list[str] = []
    last = LastLine(log.append)
    for portion in ("a\n", "", "b", "\n\n"):
        last.write(portion)
    assert log == ["a\n", "", "b", "\n\n"]


@given(st.lists(st.text(alphabet="ab \n", max_size=6), max_size=8))
def test_however_it_is_cut_the_last_line_that_is_not_empty_counts(words: list[str]):
    lines = [line for line in "".join(words).split("\n") if line.strip()]
    last = heard(*words)
    last.write("\n" + json.dumps(lines[-1:]) + "\n")
    assert last.given_back() == {"result": lines[-1:]}
    assert heard(*words)._line.strip() == (lines[-1].strip() if lines else "")


@pytest.mark.parametrize(
    ("portions", "is_whole"),
    [
        ((), False),
        (("[1]\n",), False),
        (("[1,", "2]\n", "\n"), False),
        (("said\n[1]",), True),
        (("said\n", "[1,", "2]\n", "\n"), True),
        (("\n", "[1]"), True),
        (("\n\n",), False),
    ],
)
def test_whether_its_beginning_was_seen(portions: tuple[str, ...], is_whole: bool):
    assert heard(*portions).is_whole is is_whole
