"""What an answer means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.model.duration import DAY
from onthedot.targets.webhook.verdict import SNIPPET, classify, retry_after_ms, snippet

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)


@given(st.integers(100, 999))
def test_every_status_has_one_meaning(status: int):
    outcome = classify(status, "")
    assert outcome.ok == (200 <= status <= 299)
    assert outcome.retryable == (status in (408, 425, 429) or status >= 500)
    assert outcome.detail == {"status_code": status}
    assert (outcome.error is None) == outcome.ok


def test_the_answer_is_kept_and_the_error_names_it():
    outcome = classify(503, "try later")
    assert outcome.error == "the receiver returned 503 Service Unavailable"
    assert outcome.detail == {"status_code": 503, "response": "try later"}
    assert classify(799, "").error == "the receiver returned 799"


def test_a_redirect_is_final_and_says_where_to():
    outcome = classify(302, "", location="https://elsewhere.example/")
    assert not outcome.retryable
    assert outcome.error == (
        "the receiver returned 302 Found to https://elsewhere.example/; redirects are not followed"
    )


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("0", 0),
        ("120", 120_000),
        (" 5 ", 5000),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90_000),
        (format_datetime(NOW - timedelta(days=3), usegmt=True), 0),
        ("Sunday, 01-Mar-26 12:00:07 GMT", 7000),
        ("999999999999999999999", DAY),
        ("172800", DAY),
        ("Sun, 01 Mar 2099 12:00:00 GMT", DAY),
        (None, None),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),
    ],
)
def test_retry_after(header: str | None, wait: int | None):
    assert retry_after_ms(header, NOW_MS) == wait


def test_retry_after_counts_only_where_there_is_a_retry():
    assert classify(429, "", retry_after="7").retry_after_ms == 7000
    assert classify(500, "", retry_after="7").retry_after_ms == 7000
    assert classify(404, "", retry_after="7").retry_after_ms is None
    assert classify(200, "", retry_after="7").retry_after_ms is None


@given(st.text(max_size=40))
def test_no_header_breaks_the_reading(header: str):
    wait = retry_after_ms(header, NOW_MS)
    assert wait is None or 0 <= wait <= DAY


@given(st.binary(max_size=5000))
def test_a_snippet_is_text_that_any_store_can_hold(raw: bytes):
    text = snippet(raw)
    assert len(text) <= SNIPPET
    assert "\x00" not in text
    assert text.encode().decode() == text


def test_410_is_final_and_parks_the_job():
    outcome = classify(410, "gone", retry_after="7")
    assert (outcome.kind, outcome.retryable, outcome.retry_after_ms) == ("error", False, None)
    assert outcome.error == outcome.parks == "the receiver returned 410 Gone"


@given(st.integers(200, 599))
def test_a_receiver_may_ask_for_no_more_calls_whatever_it_answers(status: int):
    outcome = classify(status, "", delivery=" Disable ")
    assert outcome.ok == (status < 300)
    assert not outcome.retryable
    assert outcome.parks == "the receiver asked for no more calls (webhook-delivery: disable)"


@given(st.integers(200, 599))
def test_a_receiver_may_ask_not_to_be_called_again_for_this_run(status: int):
    outcome, plain = classify(status, "", delivery="abort-message"), classify(status, "")
    assert outcome.ok == plain.ok
    assert not outcome.retryable
    assert outcome.parks == plain.parks


@given(st.integers(200, 599), st.text(max_size=20))
def test_anything_else_in_that_header_means_nothing(status: int, text: str):
    if text.strip().lower() not in ("disable", "abort-message"):
        assert classify(status, "", delivery=text) == classify(status, "")
