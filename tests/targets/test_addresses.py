"""Every notation of an address is read as the system's resolver reads it."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onthedot.model.address_literal import literal
from onthedot.targets.webhook.addresses import Zone, bare, zone


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f000001",
        "0X7F.0.0.1",
        "127.0.0.1.",
        "017700000001",
        "0x7F.0x0.0x0.0x1",
        "00177.0.0.01",
    ],
)
def test_loopback_in_every_notation(host: str):
    assert literal(host) == IPv4Address("127.0.0.1")


@pytest.mark.parametrize(
    "host", ["localhost", "localhost.", "example.com", "a.b.c1", "1.example", "xn--bcher-kva.de", "0xg"]
)
def test_names_are_names(host: str):
    assert literal(host) is None


@pytest.mark.parametrize(
    "host", ["256.1.1.1", "1.2.3.4.5", "1..2", "08.1.1.1", "4294967296", "1.2.3.256", "a.1", "1_0.1", "x.0x1"]
)
def test_what_only_looks_like_an_address_is_refused(host: str):
    with pytest.raises(ValueError, match="is not an address"):
        literal(host)


def test_ipv6_with_and_without_a_zone_id():
    assert literal("::1") == IPv6Address("::1")
    assert literal("fe80::1%eth0") == IPv6Address("fe80::1")
    assert literal("::ffff:127.0.0.1") == IPv6Address("::ffff:7f00:1")


def _written(value: int, shape: list[int], cut: int) -> str:
    """The same address in another notation: the last `cut` bytes as one number, each number in its own base."""
    head = [(value >> (8 * (3 - i))) & 255 for i in range(4 - cut)]
    numbers = [*head, value & (256**cut - 1)]
    forms = (str, hex, lambda n: f"0{n:o}" if n else "0")
    return ".".join(forms[shape[i % len(shape)]](n) for i, n in enumerate(numbers))


@given(
    value=st.integers(0, 2**32 - 1),
    shape=st.lists(st.integers(0, 2), min_size=1, max_size=4),
    cut=st.integers(1, 4),
)
@example(value=0x7F000001, shape=[0], cut=4)
def test_any_notation_is_read_as_the_c_library_reads_it(value: int, shape: list[int], cut: int):
    text = _written(value, shape, cut)
    assert literal(text) == IPv4Address(socket.inet_aton(text)) == IPv4Address(value)


@given(st.text(alphabet="0123456789abcdefx.", min_size=1, max_size=20))
def test_what_the_c_library_takes_for_an_address_is_never_taken_for_a_name(text: str):
    try:
        theirs = IPv4Address(socket.inet_aton(text))
    except OSError:
        return
    assert literal(text) == theirs


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("93.184.216.34", Zone.PUBLIC),
        ("2606:2800:220:1::1", Zone.PUBLIC),
        ("127.0.0.1", Zone.PRIVATE),
        ("127.255.255.254", Zone.PRIVATE),
        ("::1", Zone.PRIVATE),
        ("10.1.2.3", Zone.PRIVATE),
        ("172.16.0.1", Zone.PRIVATE),
        ("172.31.255.255", Zone.PRIVATE),
        ("172.32.0.1", Zone.PUBLIC),
        ("192.168.1.1", Zone.PRIVATE),
        ("fd12::1", Zone.PRIVATE),
        ("169.254.169.254", Zone.SPECIAL),
        ("fe80::1", Zone.SPECIAL),
        ("fd00:ec2::254", Zone.SPECIAL),
        ("fd20:ce::254", Zone.SPECIAL),
        ("100.100.100.200", Zone.SPECIAL),
        ("100.64.0.1", Zone.SPECIAL),
        ("100.128.0.1", Zone.PUBLIC),
        ("168.63.129.16", Zone.SPECIAL),
        ("192.0.0.192", Zone.SPECIAL),
        ("198.18.0.1", Zone.SPECIAL),
        ("2001:db8::1", Zone.SPECIAL),
        ("2001:0:1::1", Zone.SPECIAL),
        ("0.0.0.0", Zone.NEVER),
        ("0.1.2.3", Zone.NEVER),
        ("::", Zone.NEVER),
        ("224.0.0.1", Zone.NEVER),
        ("255.255.255.255", Zone.NEVER),
        ("240.0.0.1", Zone.NEVER),
        ("ff02::1", Zone.NEVER),
        ("::7f00:1", Zone.NEVER),  # IPv4-compatible, long gone
        ("4000::1", Zone.NEVER),
    ],
)
def test_zones(text: str, expected: Zone):
    assert zone(ip_address(text)) is expected


@given(st.integers(0, 2**32 - 1))
def test_ipv4_inside_ipv6_lies_where_the_ipv4_address_lies(value: int):
    inner = IPv4Address(value)
    mapped = IPv6Address((0xFFFF << 32) | value)
    nat64 = IPv6Address((0x64FF9B << 96) | value)
    sixtofour = IPv6Address((0x2002 << 112) | (value << 80) | 1)
    for outer in (mapped, nat64, sixtofour):
        assert bare(outer) == inner
        assert zone(outer) is zone(inner)


@given(st.ip_addresses(v=4))
def test_no_address_that_python_calls_private_is_public(address: IPv4Address):
    if zone(address) is Zone.PUBLIC:
        assert address.is_global
        assert not address.is_multicast
