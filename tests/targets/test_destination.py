"""Where a request goes: the short way of reading a URL says what the long one says."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onthedot.targets.webhook.destination import _PLAIN, place_of, split_url
from onthedot.targets.webhook.url import read_url

pieces = st.lists(
    st.sampled_from(
        ["/", "a", "B", "7", ".", "..", "-", "_", "~", "?", "=", "&", "%20", "%", "+", ":", "@", ";", "ä", "#"]
    )
)
hosts = st.sampled_from(
    [
        "example.com",
        "Example.COM:80",
        "example.com.",
        "127.0.0.1",
        "0x7f.1:8080",
        "1",
        "a..b",
        "-",
        "x:0",
        "x:99999",
        "x:",
    ]
)


@given(scheme=st.sampled_from(["http", "https"]), host=hosts, rest=pieces.map("".join))
@example(scheme="http", host="example.com", rest="?a")
@example(scheme="http", host="example.com", rest="/./a/../b")
@example(scheme="http", host="example.com", rest="//a//b/")
@example(scheme="http", host="example.com", rest="/a?b=c&d=e/f")
def test_the_short_way_and_the_long_way_say_the_same(scheme: str, host: str, rest: str):
    url = f"{scheme}://{host}{rest}"
    try:
        read, address = read_url(url)
    except ValueError:
        with pytest.raises(ValueError):
            place_of(split_url(url)[0])
        return
    named, path = split_url(url)
    place = place_of(named)
    assert path == read.raw_path_qs
    assert place.address == address
    assert place.host == read.host_port_subcomponent
    assert place.origin == (scheme == "https", read.host if address is not None else read.raw_host, read.port)


@pytest.mark.parametrize(
    "url", ["http://example.com/hooks/17", "https://127.0.0.1:8443/a/b-c_d.e/?x=1&y=/z", "http://x"]
)
def test_the_usual_url_is_read_the_short_way(url: str):
    assert _PLAIN.fullmatch(url)


@pytest.mark.parametrize(
    "url", ["http://example.com/a/../b", "http://example.com/%41", "http://ä/", "http://u:p@x/", "HTTP://x/"]
)
def test_what_needs_care_is_read_the_long_way(url: str):
    assert not _PLAIN.fullmatch(url)
    place_of(split_url(url)[0])


def test_places():
    secure = place_of("https://bücher.example")
    assert secure.origin == (True, "xn--bcher-kva.example", 443)
    assert secure.host == "xn--bcher-kva.example"
    spelled = place_of("http://[::ffff:7f00:1]:81")
    assert spelled.address == ip_address("::ffff:7f00:1")
    assert spelled.origin[2] == 81
    assert place_of("http://user:p%40ss@x").authorization == "Basic dXNlcjpwQHNz"
