"""Where a request goes: the place is read once, the path is quoted where it has to be."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from onthedot.targets.webhook.destination import place_of, split_url
from onthedot.targets.webhook.url import _PLAIN, sent_path

pieces = st.lists(
    st.sampled_from(["/", "a", "B", "7", ".", "..", "-", "_", "~", "?", "=", "&", "%20", "%", "+", ":", "@", ";", "ä"])
)


@given(rest=pieces.map("".join))
@example(rest="?a")
@example(rest="/./a/../b")
@example(rest="//a//b/")
@example(rest="/a?b=c&d=e/f")
def test_a_path_is_sent_as_yarl_would_send_it(rest: str):
    written = rest if rest.startswith("?") else f"/{rest}"
    named, path = split_url(f"http://example.com{written}")
    assert named == "http://example.com"
    assert path == sent_path(written) == URL(f"http://example.com{written}").raw_path_qs


@pytest.mark.parametrize("path", ["", "/", "/hooks/17", "/a/b-c_d.e/?x=1&y=/z", "?a=b"])
def test_the_usual_path_is_taken_as_it_is(path: str):
    assert _PLAIN.fullmatch(path)
    assert sent_path(path) == (path if path.startswith("/") else f"/{path}")


@pytest.mark.parametrize(
    ("path", "sent"),
    [("/a/../b", "/b"), ("/%41", "/A"), ("/ä?ö", "/%C3%A4?%C3%B6"), ("/%2F", "/%2F"), ("/a b", "/a%20b")],
)
def test_what_needs_care_is_quoted(path: str, sent: str):
    assert not _PLAIN.fullmatch(path)
    assert sent_path(path) == sent


def test_places():
    secure = place_of("https://bücher.example")
    assert secure.origin == (True, "xn--bcher-kva.example", 443)
    assert secure.host == "xn--bcher-kva.example"
    spelled = place_of("http://[::ffff:7f00:1]:81")
    assert spelled.address == ip_address("::ffff:7f00:1")
    assert spelled.origin[2] == 81
    assert place_of("http://user:p%40ss@x").authorization == "Basic dXNlcjpwQHNz"
