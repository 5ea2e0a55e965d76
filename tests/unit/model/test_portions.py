"""Large JSON is cut where the parser would cut it."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.errors import TooLarge, Unreadable
from onthedot.model import portions
from onthedot.model.portions import MOST_VALUES, array_items, check_values, line_items, object_parts

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
BLANKS = st.text(" \t\r\n", max_size=3)


@given(st.lists(VALUES, max_size=5), BLANKS, st.booleans())
def test_the_items_of_a_list_are_those_of_the_parser(items, blank, ascii_only):
    written = [json.dumps(item, ensure_ascii=ascii_only) for item in items]
    raw = (blank + "[" + blank + f"{blank},{blank}".join(written) + blank + "]" + blank).encode()
    assert [json.loads(item) for item in array_items(raw)] == items


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.lists(VALUES, max_size=4))
def test_of_an_object_one_list_is_taken_apart(fields, items):
    fields.pop("jobs", None)
    raw = json.dumps({**fields, "jobs": items, "last": 1}, indent=1).encode()
    parts = list(object_parts(raw, b'"jobs"'))
    assert [json.loads(value) for name, value in parts if name is None] == items
    named = {json.loads(name): json.loads(value) for name, value in parts if name is not None}
    assert named == {**fields, "jobs": [], "last": 1}


@pytest.mark.parametrize("raw", [b"", b"[", b"[1", b"[1,", b'["a', b"[1 2]", b"[,]", b"[1,]", b"x", b"[" * 1000])
def test_what_is_no_list_is_unreadable(raw):
    with pytest.raises(Unreadable):
        for item in array_items(raw):
            json.loads(item)


@pytest.mark.parametrize(
    "raw", [b"", b"{", b'{"a"', b'{"a":', b'{"a":1', b'{"a":1,}', b"{1:2}", b'{"a":1}x', b"[]", b"{}{"]
)
def test_what_is_no_object_is_unreadable(raw):
    with pytest.raises(Unreadable):
        list(object_parts(raw, b'"jobs"'))


def test_lines_that_are_not_blank():
    assert list(line_items(b"\n \n{} \r\n\n[1]")) == [b"{} \r", b"[1]"]


@given(VALUES | st.text('\\",[{', min_size=1), st.integers(2, 40))
def test_where_windows_end_does_not_change_what_is_counted(value, window):
    raw = json.dumps([value, ",[{"]).encode()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(portions, "WINDOW", window)
        counted = next(most for most in range(len(raw)) if not portions._has_more_values(raw, most))
    texts_left_out = re.sub(rb'"(?:[^"\\]|\\.)*"', b"", raw)
    assert counted == sum(map(texts_left_out.count, (b",", b"[", b"{")))


def test_values_are_counted_outside_of_texts():
    check_values(json.dumps({"text": ',[{"' * MOST_VALUES}).encode())
    check_values(json.dumps([0] * MOST_VALUES).encode())
    with pytest.raises(TooLarge, match="more than 20000 values"):
        check_values(json.dumps([0] * (MOST_VALUES + 2)).encode())
    with pytest.raises(Unreadable, match="too deeply"):
        check_values(b'{"a":' * (MOST_VALUES + 2))
    with pytest.raises(TooLarge, match="larger than 1024 KiB"):
        check_values(b" " * (2**20 + 1))
