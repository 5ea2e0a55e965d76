"""Fingerprints of requests: kept for a day, compared by releases that know other fields and other defaults."""

from __future__ import annotations

import pytest

from onthedot.service.repeats import Repeat, canonical, idempotency
from onthedot.store.jobs.idempotency import is_same

JOB = b'{"key": "a", "schedule": {"every": "1m"}, "target": {"type": "webhook", "url": "https://example.com/"}}'


@pytest.mark.parametrize(
    ("verb", "named", "sent", "pinned"),
    [
        ("jobs", (), JOB, "2:d617f04efae6fdff7cfa1722b11d7d4c17a737616ff64fc659f0498a56dd4c80"),
        (
            "timers",
            (),
            b'{"seconds": 10, "url": "https://example.com/"}',
            "2:a1be7a0be2439899ca40e2c70974a0a1fe17bf249fde08b3d6cc8943b0ef9b00",
        ),
        ("run", (7,), b"", "2:e0d28ccbc4fede4fbb3b54c07298bd2b147c8e199f30435211bec9f1abb2a3ac"),
        (
            "run",
            (7,),
            b'{"params": {"x": 1.5, "y": "\xc3\xa4"}}',
            "2:ada49760be240b99ff05dbafe8cdefa489a22585b18370aa0bf43466d57bdf41",
        ),
        (
            "backfill",
            (7,),
            b'{"start": "2026-03-01T00:00:00Z", "end": "2026-03-08T00:00:00Z"}',
            "2:051c08cac0218678da5ce818ade02f137f7e11862285beee17782a1c7e0bc6c1",
        ),
        ("retry", ("7-1700000000000-m3",), b"", "2:98f9b0df590a5074c4de01204335bd9cfdde32bd3f9e2f599b81b6c1539576bd"),
        ("batch", (), b'{"a": 1}\n{"a": 2}\n', "2:f4b35c52e37a8ec2fabc51f89970baf70ad5fa136cd4b0ec6d65499615d3f081"),
    ],
)
def test_a_fingerprint_is_what_it_was(verb, named, sent, pinned):
    """If this fails, a rolling upgrade answers repeats with 422: write a new FORM instead."""
    made = idempotency(verb, Repeat("k", sent), *named)
    assert made is not None
    assert made.fingerprint == pinned


@pytest.mark.parametrize(
    "other",
    [
        b'{"target":{"url":"https:\\/\\/example.com/","type":"webhook"},"schedule":{"every":"1m"},"key":"\\u0061"}',
        JOB.replace(b" ", b"\n  "),
    ],
)
def test_how_it_is_written_does_not_matter(other):
    assert canonical(other) == canonical(JOB)


@pytest.mark.parametrize("other", [JOB.replace(b"1m", b"2m"), JOB[:-1] + b', "paused": false}', b"[" + JOB + b"]"])
def test_what_it_says_does(other):
    assert canonical(other) != canonical(JOB)


def test_address_and_body_can_not_be_taken_for_each_other():
    made = {
        idempotency(verb, Repeat("k", sent), *named)
        for verb, named, sent in [("run", (1, 2), b""), ("run", (12,), b""), ("run", (), b"2"), ("run", (1,), b"2")]
    }
    assert len(made) == 4


def test_one_of_another_release_is_taken_for_the_same():
    ours = idempotency("run", Repeat("k"), 1)
    assert ours is not None
    assert is_same("0" * 64, ours.fingerprint)  # before fingerprints had a form
    assert is_same("3:" + "0" * 64, ours.fingerprint)
    assert not is_same("2:" + "0" * 64, ours.fingerprint)
    assert not is_same("0" * 64, "1" * 64)
