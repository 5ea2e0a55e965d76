"""Labels and what is required, as one text and apart."""

from __future__ import annotations

import pytest

from onthedot.errors import Invalid
from onthedot.model.decoding import convert
from onthedot.model.job import JobSpec
from onthedot.model.labels import (
    MOST_OF_JOB,
    NodeOffer,
    Requirement,
    missing_labels,
    read_requires,
    type_of,
    with_labels,
)


@pytest.mark.parametrize(
    ("requires", "capability", "labels"),
    [
        ("webhook", "webhook", ()),
        ("webhook+gpu", "webhook", ("gpu",)),
        ("function:reports+eu,gpu", "function:reports", ("eu", "gpu")),
        ("webhook+gpu@https://a+b.example", "webhook", ("gpu",)),
        ("webhook@https://example.com/+x", "webhook", ()),
        ("command:g++", "command:g++", ()),
        ("command:a+B", "command:a+B", ()),
        ("+gpu", "+gpu", ()),
    ],
)
def test_it_is_read_as_it_was_written(requires: str, capability: str, labels: tuple[str, ...]):
    assert read_requires(requires) == Requirement(capability, labels)
    if labels and "@" not in requires:
        assert with_labels(capability, [*reversed(labels), labels[0]]) == requires


@pytest.mark.parametrize("requires", ["function", "function:m", "function:m+gpu", "function+gpu", "function@x:1"])
def test_the_type_of_its_target(requires: str):
    assert type_of(requires) == "function"


def test_who_comes_closest_says_what_is_missing():
    needed = Requirement("webhook", ("eu", "gpu"))
    idle, european = (
        NodeOffer(frozenset(), frozenset({"eu", "gpu"})),
        NodeOffer(frozenset({"webhook"}), frozenset({"eu"})),
    )
    assert missing_labels(needed, []) == ("eu", "gpu")
    assert missing_labels(needed, [idle]) == ("eu", "gpu"), "it can't run webhooks"
    assert missing_labels(needed, [idle, european, NodeOffer(frozenset({"webhook"}))]) == ("gpu",)
    assert missing_labels(needed, [NodeOffer(frozenset({"webhook"}), frozenset({"eu", "gpu", "x"}))]) is None


@pytest.mark.parametrize(
    ("requires", "path", "message"),
    [
        ("gpu", "requires", "expected a list, not text"),
        (["gpu", "GPU"], "requires[1]", "does not have the required format"),
        ([""], "requires[0]", "does not have the required format"),
        (["a+b"], "requires[0]", "does not have the required format"),
        (["a" * 64], "requires[0]", "does not have the required format"),
        ([3], "requires[0]", "expected text, not a whole number"),
        (["a"] * (MOST_OF_JOB + 1), "requires", "is too long"),
    ],
)
def test_what_is_no_label_is_named(requires: object, path: str, message: str):
    job = {"schedule": {"in": "1s"}, "target": {"type": "webhook", "url": "http://example.com/"}}
    with pytest.raises(Invalid) as refused:
        convert({**job, "requires": requires}, JobSpec)
    (problem,) = refused.value.problems
    assert (problem.path, problem.message) == (path, message)
    assert problem.accepted
