"""URLs: read strictly, with the host in the one notation that is connected to."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from onthedot.targets.webhook.url import read_url


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("http://example.com", "http://example.com"),
        ("HTTPS://Example.com:8443/a?b=c#d", "https://example.com:8443/a?b=c"),
        ("http://bücher.example/ä", "http://xn--bcher-kva.example/%C3%A4"),
        ("http://localhost.:5003/x", "http://localhost.:5003/x"),
        ("http://user:pass@example.com/", "http://user:pass@example.com/"),
        ("http://example.com/%2Fkept%20so", "http://example.com/%2Fkept%20so"),
    ],
)
def test_names(text: str, written: str):
    url, address = read_url(text)
    assert str(url) == written
    assert address is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://127.0.0.1:80/", "127.0.0.1"),
        ("http://2130706433/", "127.0.0.1"),
        ("http://0x7f.1/", "127.0.0.1"),
        ("http://0177.0.0.1/", "127.0.0.1"),
        ("http://127.0.0.1./", "127.0.0.1"),
        ("http://①②⑦.0.0.1/", "127.0.0.1"),
        ("http://[::1]/", "::1"),
        ("http://[::ffff:127.0.0.1]/", "::ffff:7f00:1"),
        ("http://[fe80::1%25eth0]/", "fe80::1"),
        ("http://user@0xa9fea9fe:80/latest", "169.254.169.254"),
    ],
)
def test_addresses_in_every_notation(text: str, address: str):
    url, found = read_url(text)
    assert found == ip_address(address)
    if found == ip_address(address) and ":" not in address:
        assert url.host == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/path",
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "http://",
        "http:///x",
        "http:x",
        "//x/y",
        "http://a b/",
        " http://x/",
        "http://x/\n",
        "http://127.0.0.1\t/",
        "http://x\x00/",
        "http://[::1/",
        "http://x:99999/",
        "http://x:0/",
        "http://%31%32%37.0.0.1/",
        "http://h\\@127.0.0.1/",
        "http://1.2.3.4.5/",
        "http://256.1.1.1/",
        "http://a..b/",
        "http://" + "a" * 64 + ".com/",
        "javascript:alert(1)",
        "http://x:port/",
        "http://[gg::1]/",
    ],
)
def test_what_is_no_url_is_refused_with_a_reason(text: str):
    with pytest.raises(ValueError) as caught:
        read_url(text)
    assert str(caught.value)


def test_a_host_is_written_small():
    assert read_url("http://Example.COM/A")[0] == URL("http://example.com/A")
    assert str(read_url("http://A.\U000100fb/")[0]) == "http://a.xn--8u7c/"


@given(st.text(max_size=60).map(lambda text: "http://" + text))
@example("http://A.\U000100fb")
def test_any_text_is_read_or_refused_but_never_a_surprise(text: str):
    try:
        url, _ = read_url(text)
    except ValueError:
        return
    assert url.scheme == "http"
    assert url.host
    again, _ = read_url(str(url))
    assert again == url
