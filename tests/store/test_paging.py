"""Cursors come back from outside: nothing in them may surprise us."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.errors import Invalid
from onthedot.store.paging import check_limit, fingerprint, open_cursor, seal_cursor


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), st.integers(-(2**63), 2**63 - 1))
def test_what_is_sealed_opens(text: str, number: int) -> None:
    asked = fingerprint("jobs", 1)
    if text.isascii() or all(not "\ud800" <= c <= "\udfff" for c in text):
        assert open_cursor(seal_cursor(asked, text, number), asked, (str, int)) == [text, number]


@given(st.text(max_size=80))
def test_whatever_is_not_ours_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        open_cursor(text, fingerprint("jobs"), (int,))
    assert caught.value.problems[0].path == "cursor"


@pytest.mark.parametrize(
    "inside", [b"[]", b"{}", b'["a"]', b'["a", 1.5]', b'["a", true]', b'["a", null]', b'["a", 99999999999999999999]']
)
def test_json_that_is_no_position(inside: bytes) -> None:
    with pytest.raises(Invalid):
        open_cursor(base64.urlsafe_b64encode(inside).decode(), "a", (int,))


def test_kinds_are_exact() -> None:
    with pytest.raises(Invalid):
        open_cursor(seal_cursor("a", "1"), "a", (int,))
    with pytest.raises(Invalid):
        open_cursor(seal_cursor("a", 1, 2), "a", (int,))
    assert open_cursor(seal_cursor("a", 1), "a", (int,)) == [1]


def test_questions_differ() -> None:
    assert fingerprint("a", None) != fingerprint("a", "")
    assert fingerprint("a", 1) == fingerprint("a", 1)
    assert check_limit(500) == 500
