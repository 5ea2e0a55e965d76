"""What a webhook sends, checked by somebody else's verifier."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from onthedot.model.target import WebhookTarget
from onthedot.targets.request import body_of, headers_of
from onthedot.targets.signature import read_secret, sign, traceparent
from tests.targets.conftest import SLOT, MakeCall

SECRET = "whsec_" + base64.b64encode(b"a secret of 24 bytes !!!").decode()


def now() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


def test_headers_of_the_contract(make_call: MakeCall):
    target = WebhookTarget(url="http://x/", body={"a": 1})
    headers = headers_of(
        make_call(target, attempt=3), target, b"{}", "application/json", agent="onthedot/1", now_ms=1999
    )
    assert headers == {
        "user-agent": "onthedot/1",
        "accept": "*/*",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "webhook-id": f"7-{SLOT}",
        "webhook-timestamp": "1",
        "x-onthedot-job": "7",
        "x-onthedot-scheduled-for": "2025-11-15T19:22:47.890Z",
        "x-onthedot-attempt": "3",
        "traceparent": traceparent(f"7-{SLOT}", 3),
    }


def test_the_jobs_headers_win_over_defaults_and_lose_to_ours(make_call: MakeCall):
    given = {"Content-Type": "text/csv", "User-Agent": "mine", "X-Own": "1", "Webhook-Id": "forged"}
    target = WebhookTarget(url="http://x/", headers=given)
    headers = headers_of(make_call(target), target, b"", "application/json", agent="onthedot/1", now_ms=0)
    assert headers["content-type"] == "text/csv"
    assert headers["user-agent"] == "mine"
    assert headers["x-own"] == "1"
    assert headers["webhook-id"] == f"7-{SLOT}"


@pytest.mark.parametrize(
    ("body", "raw", "kind"),
    [
        (None, b"", None),
        ("plain §", "plain §".encode(), "text/plain; charset=utf-8"),
        ("", b"", "text/plain; charset=utf-8"),
        ({"a": [1, None]}, b'{"a":[1,null]}', "application/json"),
        ([], b"[]", "application/json"),
        (0, b"0", "application/json"),
        (False, b"false", "application/json"),
    ],
)
def test_bodies(body: Any, raw: bytes, kind: str | None):
    assert body_of(body) == (raw, kind)


@given(body=st.binary(max_size=200), attempt=st.integers(1, 99))
def test_the_reference_library_accepts_the_signature(body: bytes, attempt: int):
    timestamp = now() // 1000
    headers = {
        "webhook-id": f"{attempt}-{SLOT}",
        "webhook-timestamp": str(timestamp),
        "webhook-signature": sign(SECRET, f"{attempt}-{SLOT}", timestamp, body),
    }
    try:
        Webhook(SECRET).verify(body, headers)
    except WebhookVerificationError:
        raise
    except ValueError:
        pass  # it is verified first, then read as JSON, which random bytes are not


def test_the_reference_library_signs_the_same():
    timestamp = datetime.fromtimestamp(1_700_000_000, UTC)
    theirs = Webhook(SECRET).sign("7-1", timestamp, '{"a":1}')
    assert sign(SECRET, "7-1", 1_700_000_000, b'{"a":1}') == theirs


def test_another_secret_or_body_does_not_verify():
    timestamp = now() // 1000
    headers = {"webhook-id": "1", "webhook-timestamp": str(timestamp)}
    headers["webhook-signature"] = sign(SECRET, "1", timestamp, b"{}")
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(b'{"forged":1}', headers)
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + base64.b64encode(b"another").decode()).verify(b"{}", headers)


def test_only_with_a_secret_there_is_a_signature(make_call: MakeCall):
    target = WebhookTarget(url="http://x/", secret=SECRET)
    headers = headers_of(make_call(target), target, b"x", None, agent="a", now_ms=5000)
    assert headers["webhook-signature"] == sign(SECRET, f"7-{SLOT}", 5, b"x")


def test_secrets_with_and_without_prefix_are_the_same():
    assert read_secret(SECRET) == read_secret(SECRET.removeprefix("whsec_")) == b"a secret of 24 bytes !!!"


def test_a_text_that_is_no_base64_is_the_key_itself():
    text = "a text of 16 characters, or more"
    assert read_secret(text) == text.encode()
    timestamp = now() // 1000
    headers = {"webhook-id": "1", "webhook-timestamp": str(timestamp)}
    headers["webhook-signature"] = sign(text, "1", timestamp, b"{}")
    assert Webhook(text.encode()).verify(b"{}", headers) == {}


@given(run=st.text(max_size=40), attempt=st.integers(1, 10**6))
def test_traceparent_is_well_formed_and_made_of_the_run_alone(run: str, attempt: int):
    value = traceparent(run, attempt)
    assert re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", value)
    assert value == traceparent(run, attempt)
    assert value[:36] == traceparent(run, attempt + 1)[:36]
    assert value != traceparent(run, attempt + 1)
