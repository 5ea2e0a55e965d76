"""Where a webhook may go."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.errors import SettingsError
from onthedot.targets.webhook.addresses import Zone, zone
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.own_ports import ports_of_store, read_own_ports

CLOSED, LOOPBACK = EgressRule(), EgressRule(allow_private=True)
addresses = st.ip_addresses()


def permits(rule: EgressRule, address: str, host: str | None = None) -> bool:
    return rule.refusal(ip_address(address), host) is None


def test_public_addresses_always():
    assert permits(CLOSED, "93.184.216.34")
    assert permits(CLOSED, "2606:2800::1")


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "::1", "fd12::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"])
def test_private_addresses_while_the_installation_is_open(address: str):
    assert permits(LOOPBACK, address)
    assert not permits(CLOSED, address)


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1", "fd00:ec2::254", "100.100.100.200", "::ffff:a9fe:a9fe"]
)
def test_metadata_and_link_local_only_when_listed(address: str):
    assert not permits(CLOSED, address)
    assert not permits(LOOPBACK, address)
    assert permits(EgressRule.parse([address]), address)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "ff02::1"])
def test_some_never(address: str):
    rule = EgressRule.parse([address, "0.0.0.0/0", "::/0"], allow_private=True)
    assert not permits(rule, address)
    assert "EGRESS_ALLOW" not in (rule.refusal(ip_address(address)) or "")


def test_a_listed_network_holds_in_every_notation():
    rule = EgressRule.parse(["10.2.0.0/16"])
    assert permits(rule, "10.2.3.4")
    assert permits(rule, "::ffff:10.2.3.4")
    assert permits(rule, "2002:a02:304::1")
    assert not permits(rule, "10.3.0.1")


def test_an_ipv6_transition_network_can_be_listed_as_itself():
    assert permits(EgressRule.parse(["64:ff9b::/96"]), "64:ff9b::a00:1")


def test_a_listed_name_opens_its_private_addresses_only():
    rule = EgressRule.parse(["hooks.internal", "*.corp.example"])
    assert permits(rule, "10.0.0.1", "hooks.internal")
    assert permits(rule, "10.0.0.1", "HOOKS.Internal.")
    assert permits(rule, "127.0.0.1", "a.b.corp.example")
    assert not permits(rule, "10.0.0.1", "corp.example")
    assert not permits(rule, "10.0.0.1", "hooks.internal.evil.example")
    assert not permits(rule, "10.0.0.1", "evilcorp.example")
    assert not permits(rule, "10.0.0.1")
    assert not permits(rule, "169.254.169.254", "hooks.internal")


def test_the_refusal_says_what_it_is_and_what_to_do():
    assert CLOSED.refusal(ip_address("127.0.0.1")) == (
        "127.0.0.1 is a loopback or private address that EGRESS_ALLOW does not list"
    )
    assert (CLOSED.refusal(ip_address("::ffff:a00:1")) or "").startswith("::ffff:10.0.0.1 (10.0.0.1) is") or (
        CLOSED.refusal(ip_address("::ffff:a00:1")) or ""
    ).startswith("::ffff:a00:1 (10.0.0.1) is")


@pytest.mark.parametrize(
    "entry", ["", "10.0.0.0/33", "http://x", "a..b", "*.*.x", "exa mple", "1.2.3", "-", "ünï", "a:0", "a:65536", "a:b"]
)
def test_entries_that_make_no_sense(entry: str):
    if entry == "-":
        assert EgressRule.parse([entry]).hosts == {"-"}
        return
    with pytest.raises(SettingsError, match="EGRESS_ALLOW"):
        EgressRule.parse([entry])


def test_entries_may_have_host_bits_brackets_and_blanks():
    rule = EgressRule.parse([" 10.1.2.3/8 ", "[::1]"])
    assert rule.networks == (ip_network("10.0.0.0/8"), ip_network("::1/128"))


OURS = EgressRule.parse(["10.0.0.0/8", "127.0.0.0/8"], allow_private=True, own_ports=read_own_ports(["127.0.0.1:8000"]))


def test_our_own_ports_only_when_listed_with_the_port():
    assert OURS.refusal(ip_address("127.0.0.1"), None, 8000) == (
        "127.0.0.1, port 8000 is used by On the Dot itself or its database"
    )
    assert OURS.refusal(ip_address("::ffff:127.0.0.1"), None, 8000) is not None
    assert OURS.refusal(ip_address("127.0.0.1"), None, 8001) is None
    assert OURS.refusal(ip_address("127.0.0.2"), None, 8000) is None, "nobody of ours listens there"
    for entry in ("127.0.0.1:8000", "hooks.internal:8000", "*.internal:8000"):
        listed = EgressRule.parse([entry], own_ports=OURS.own_ports)
        assert listed.refusal(ip_address("127.0.0.1"), "hooks.internal", 8000) is None
        assert listed.refusal(ip_address("127.0.0.1"), "hooks.internal", 8001) is not None
    assert EgressRule.parse(["hooks.internal:80"]).refusal(ip_address("169.254.169.254"), "hooks.internal", 80)
    assert EgressRule.parse(["[::1]:80"]).refusal(ip_address("::1"), None, 80) is None


def test_bound_to_all_addresses_every_one_of_this_machine_is_ours():
    rule = EgressRule.parse(["0.0.0.0/0"], own_ports=read_own_ports(["0.0.0.0:8000", "[::]:8001"]))
    assert rule.refusal(ip_address("127.0.0.1"), None, 8000) is not None
    assert rule.refusal(ip_address("127.8.9.1"), None, 8001) is not None
    assert rule.refusal(ip_address("10.255.255.254"), None, 8000) is None, "another machine's port of the same number"


def test_doors_of_names_and_of_the_database():
    loopback = {ip_address("127.0.0.1"), ip_address("::1")}
    assert read_own_ports(["localhost:80"]) == {(address, 80) for address in loopback}
    assert read_own_ports(["otd.example:80"]) == {(None, 80)}
    url = "postgresql://u:p@127.0.0.1:6000,[::1]:6001,127.0.0.2/db?x=1"
    assert ports_of_store(url) == {
        (ip_address("127.0.0.1"), 6000),
        (ip_address("::1"), 6001),
        (ip_address("127.0.0.2"), 5432),
    }
    assert ports_of_store("postgresql://no-such-host.invalid/db") == frozenset()
    assert ports_of_store("sqlite:///x.db") == frozenset()


@given(addresses)
def test_closed_means_public_only(address: IPv4Address | IPv6Address):
    assert (CLOSED.refusal(address) is None) == (zone(address) is Zone.PUBLIC)


@given(addresses)
def test_loopback_adds_exactly_the_private_ones(address: IPv4Address | IPv6Address):
    assert (LOOPBACK.refusal(address) is None) == (zone(address) in (Zone.PUBLIC, Zone.PRIVATE))


@given(addresses, st.lists(addresses, max_size=4), st.booleans())
def test_listing_more_never_permits_less_and_never_the_forbidden(
    address: IPv4Address | IPv6Address, listed: list[IPv4Address | IPv6Address], private: bool
):
    before = EgressRule(allow_private=private)
    after = EgressRule.parse(map(str, [*listed, address]), allow_private=private)
    if before.refusal(address) is None:
        assert after.refusal(address) is None
    assert (after.refusal(address) is None) == (zone(address) is not Zone.NEVER)
