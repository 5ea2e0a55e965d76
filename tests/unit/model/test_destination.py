"""What a run requires that waits for a destination: it can be read back, and a tenant's are between two bounds."""

from __future__ import annotations

import pytest

from onthedot.model.destination import Waiting, capability_of, read_waiting, waits_for, waits_range

NAMES = ["https://example.com", "http://[::1]:5003", "http://10.0.0.1:8080", "orders", "0", "zz-9.topic"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tenant", [1, 2, 20, 3])
@pytest.mark.parametrize("capability", ["webhook", "queue:orders"])
def test_it_is_read_back(capability: str, name: str, tenant: int):
    requires = waits_for(capability, name, tenant)
    assert read_waiting(requires) == Waiting(capability, tenant, name)
    assert capability_of(requires) == capability


def test_the_first_tenant_s_are_plain():
    assert waits_for("webhook", "https://example.com", 1) == "webhook@https://example.com"


def test_what_does_not_wait_says_so():
    assert read_waiting("webhook") is None
    assert read_waiting("webhook@#x/y") is None
    assert capability_of("function:reports") == "function:reports"


@pytest.mark.parametrize("capability", ["webhook", "queue:a"])
def test_a_range_holds_all_of_its_tenant_and_no_others(capability: str):
    tenants = (1, 2, 20, 21, 3)
    everything = {(tenant, waits_for(capability, name, tenant)) for tenant in tenants for name in NAMES}
    low, high = waits_range(capability)
    assert all(low < requires < high for _, requires in everything)
    assert not any(low < other < high for other in (capability, capability + ":x", capability + "s", capability + "A"))
    for tenant in tenants:
        low, high = waits_range(capability, tenant)
        assert {of for of, requires in everything if low < requires < high} == {tenant}
