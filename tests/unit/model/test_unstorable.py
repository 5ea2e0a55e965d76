"""The quick look and the thorough one agree."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from onthedot.model.unstorable import MAX_DEPTH, _harmless, _walk, find_unstorable

NASTY = st.sampled_from(
    ["\x00", "\ud800", "a\udfffb", 2**63, -(2**63) - 1, float("nan"), float("inf"), b"x", (1,), 10**400]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | NASTY
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SCALARS.filter(lambda k: k == k), inner, max_size=4),
)


@given(VALUES)
def test_quick_and_thorough_agree(value: Any) -> None:
    assert _harmless(value, 0) == (not list(_walk(value, "", 0)))
    assert bool(list(find_unstorable(value))) == (not _harmless(value, 0))


def test_depth() -> None:
    value: Any = 1
    for depth in range(1, MAX_DEPTH + 5):
        value = [value] if depth % 2 else {"a": value}
        assert bool(list(find_unstorable(value))) == (depth > MAX_DEPTH)
