"""URLs: one grammar, strict, with the host in the one notation that is connected to."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from yarl import URL

from onthedot.model.address_literal import literal
from onthedot.model.targets.webhook import url_problem
from onthedot.model.webhook_url import UrlPlace, cut_url, read_place


def place(url: str) -> UrlPlace:
    return read_place(cut_url(url)[0])


@pytest.mark.parametrize(
    ("url", "host", "port", "rest"),
    [
        ("http://example.com", "example.com", 80, ""),
        ("HTTPS://Example.com:8443/a?b=c#d", "example.com", 8443, "/a?b=c"),
        ("https://example.com?a=http://x@y/", "example.com", 443, "?a=http://x@y/"),
        ("http://example.com#@evil.example/", "example.com", 80, ""),
        ("http://bücher.example/ä", "xn--bcher-kva.example", 80, "/ä"),
        ("http://localhost.:5003/x", "localhost.", 5003, "/x"),
        ("http://user:pass@example.com/", "example.com", 80, "/"),
        ("http://a@b@example.com/", "example.com", 80, "/"),
        ("http://example.com:/%2Fkept%20so", "example.com", 80, "/%2Fkept%20so"),
    ],
)
def test_names(url: str, host: str, port: int, rest: str) -> None:
    read = place(url)
    assert (read.host, read.port, read.address) == (host, port, None)
    assert cut_url(url)[1] == rest


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://127.0.0.1:80/", "127.0.0.1"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://0x7f.1/", "127.0.0.1"),
        ("http://0177.0.0.1/", "127.0.0.1"),
        ("http://127.0.0.1./", "127.0.0.1"),
        ("http://①②⑦.0.0.1/", "127.0.0.1"),
        ("http://[::1]/", "::1"),
        ("http://[::ffff:127.0.0.1]/", "::ffff:7f00:1"),
        ("http://user@0xa9fea9fe:80/latest", "169.254.169.254"),
    ],
)
def test_addresses_in_every_notation(url: str, address: str) -> None:
    read = place(url)
    assert read.address == ip_address(address)
    assert ip_address(read.host) == read.address


@pytest.mark.parametrize(
    "url",
    [
        *("", "/path", "example.com", "ftp://example.com/", "file:///etc/passwd", "javascript:alert(1)", "//x/y"),
        *("http://", "http:///x", "http:x", "http\u017f://x/", "http:/x", "http://@/", "http://:80/", "http://x@/"),
        *("http://a b/", " http://x/", "http://x/\n", "http://127.0.0.1\t/", "http://x\x00/", "http://x\u3000/"),
        *(
            "http://[::1/",
            "http://::1/",
            "http://[::1]x/",
            "http://x[::1]/",
            "http://[gg::1]/",
            "http://[fe80::1%25e]/",
        ),
        *("http://x:99999/", "http://x:0/", "http://x:port/", "http://x:-1/", "http://x:1:2/", "http://x:٣/"),
        *("http://%31%32%37.0.0.1/", "http://h\\@127.0.0.1/", "http://a\uff0fb/", "http://a。b\u2044c/", "http://a;b/"),
        *("http://1.2.3.4.5/", "http://256.1.1.1/", "http://0xg.1/", "http://a..b/", "http://.a/"),
        "http://" + "a" * 64 + ".com/",
        "http://" + "a." * 127 + "example/",
        "http://" + "ä" * 254 + "/",
    ],
)
def test_what_is_no_url_is_refused_with_a_reason(url: str) -> None:
    with pytest.raises(ValueError) as caught:
        place(url)
    assert str(caught.value)
    assert url_problem(url) is not None


def test_the_receiver_is_named_as_it_is_connected_to() -> None:
    assert place("http://example.com.:80/").host_header == "example.com"
    assert place("https://example.com:80/").host_header == "example.com:80"
    assert place("http://0x7f.1:81/").host_header == "127.0.0.1:81"
    assert place("http://[::1]/").host_header == "[::1]"


hostile = st.lists(
    st.sampled_from(
        [
            *(
                "a",
                "B",
                "7",
                "0x7f",
                "127.0.0.1",
                "example.com",
                "localhost",
                "[::1]",
                "[::ffff:10.0.0.1]",
                "ä",
                "①",
                "ß",
            ),
            *(
                "xn--",
                "@",
                "@",
                ":",
                ":80",
                ":0",
                "/",
                "//",
                "\\",
                "?",
                "#",
                "%",
                "%2e",
                "%40",
                "[",
                "]",
                ".",
                "..",
                "-",
            ),
            *(
                "]",
                ".",
                "..",
                "-",
                "_",
                ";",
                ",",
                "。",
                "．",
                "／",
                "＠",
                "\u00ad",
                "\u200d",
                "\t",
                " ",
                "\x00",
                "169.254.169.254",
            ),
        ]
    ),
    max_size=12,
).map("".join)


@settings(deadline=None, max_examples=400)
@given(scheme=st.sampled_from(["http", "https", "HTTP"]), rest=hostile | st.text(max_size=30))
@example(scheme="http", rest="a@127.0.0.1:80@example.com/")
@example(scheme="http", rest="example.com#@127.0.0.1/")
@example(scheme="http", rest="①②⑦.0.0.1")
def test_what_it_reads_is_what_others_read_who_accept_it(scheme: str, rest: str) -> None:
    """It may refuse more than urllib and yarl do; where all accept a URL, all mean the same place."""
    url = f"{scheme}://{rest}"
    try:
        read = place(url)
    except ValueError:
        return
    assert read.host.isascii()
    assert read.host == read.host.lower()
    again = place(f"http{'s' if read.secure else ''}://{read.host_header}/")
    assert (again.host.rstrip("."), again.port, again.address) == (read.host.rstrip("."), read.port, read.address)
    try:
        theirs, port = URL(url).raw_host, urlsplit(url).port
    except ValueError:
        return
    assert (port or (443 if read.secure else 80)) == read.port
    spelled = literal(str(theirs).lower())
    assert spelled == read.address
    if spelled is None:
        assert str(theirs).lower() == read.host
