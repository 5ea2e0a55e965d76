"""Concurrency groups in a policy, and as a text in the store."""

from __future__ import annotations

from typing import Any

import pytest

from onthedot.errors import Invalid
from onthedot.model.checks import check_spec
from onthedot.model.decoding import convert, encode_json
from onthedot.model.group import Membership, groups_of_tenant, membership, read_group
from onthedot.model.job import JobSpec
from onthedot.model.level import GROUPS, level_of
from onthedot.model.policy import Concurrency, Policy

URL = {"type": "webhook", "url": "http://example.com/"}


def job(**policy: Any) -> JobSpec:
    return convert({"schedule": {"every": "1m"}, "target": URL, "policy": policy}, JobSpec)


def wrong(**policy: Any) -> list[tuple[str, str]]:
    with pytest.raises(Invalid) as caught:
        check_spec(job(**policy))
    return [(problem.path, str(problem.accepted)) for problem in caught.value.problems]


def test_the_group_and_the_limit():
    spec = job(concurrency={"group": "db", "limit": 3})
    assert spec.policy.concurrency == Concurrency(group="db", limit=3)
    check_spec(spec)
    assert level_of(spec) == level_of(job(max_running=1)) == GROUPS
    assert level_of(job()) < GROUPS


def test_what_is_not_said_is_not_written():
    assert b"concurrency" not in encode_json(Policy())
    assert b"max_running" not in encode_json(Policy())


@pytest.mark.parametrize("name", ["", "a b", "-x", "#1", "a/b", "é", "x" * 101, 7, None])
def test_a_name_that_is_none(name: Any):
    ((path, accepted),) = wrong(concurrency={"group": name, "limit": 1})
    assert path == "policy.concurrency.group"
    assert "letters" in accepted


@pytest.mark.parametrize("limit", [0, -1, 10_001, 1.5, "3", None])
def test_a_limit_that_is_none(limit: Any):
    ((path, accepted),) = wrong(concurrency={"group": "db", "limit": limit})
    assert path == "policy.concurrency.limit"
    assert "1 to 10000" in accepted
    assert wrong(max_running=limit)[0][0] == "policy.max_running"


def test_both_or_with_an_overlap_policy():
    ((path, accepted),) = wrong(concurrency={"group": "db", "limit": 1}, max_running=1)
    assert (path, accepted.partition(",")[0]) == ("policy.max_running", "either concurrency")
    assert wrong(overlap="skip", max_running=2) == [("policy.max_running", "1, or overlap allow")]
    check_spec(job(overlap="skip", max_running=1))
    check_spec(job(overlap="queue", concurrency={"group": "db", "limit": 2}))


def test_missing_fields_are_named():
    assert [path for path, _ in wrong(concurrency={"group": "db"})] == ["policy.concurrency.limit"]
    assert [path for path, _ in wrong(concurrency={"group": "db", "limit": 1, "size": 2})] == [
        "policy.concurrency.size"
    ]


def test_as_a_text_and_back():
    named = membership(2, 17, Policy(concurrency=Concurrency(group="db", limit=3)))
    alone = membership(2, 17, Policy(max_running=4))
    assert (named, alone) == (Membership("2/db", 3), Membership("2/#17", 4))
    assert membership(2, 17, Policy()) is None
    assert (read_group("2/db"), read_group("2/#17")) == ((2, "db", None), (2, None, 17))


def test_the_groups_of_a_tenant_are_one_range():
    low, high = groups_of_tenant(2)
    assert all(low < key < high for key in ("2/#17", "2/db", "2/zz", "2/A"))
    assert not any(low < key < high for key in ("1/db", "20/db", "3/db", "21/#1"))
