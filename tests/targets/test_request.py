"""What a webhook sends, checked by somebody else's verifier."""

from __future__ import annotations

import base64
import re
import shlex
from datetime import UTC, datetime
from email import message_from_string
from email.policy import HTTP
from typing import Any

import httptools
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from onthedot.model.instant import format_instant
from onthedot.model.run_request import SentRun, as_curl
from onthedot.model.targets import WebhookTarget
from onthedot.targets.contract import Call
from onthedot.targets.webhook.destination import place_of, split_url
from onthedot.targets.webhook.request import _lines, body_of, request_of
from onthedot.targets.webhook.signature import read_secret, sign
from onthedot.telemetry.trace_ids import traceparent
from tests.targets.conftest import SLOT, MakeCall

SECRET = "whsec_" + base64.b64encode(b"a secret of 24 bytes !!!").decode()


def now() -> int:
    return int(datetime.now(UTC).timestamp() * 1000)


def written(call: Call, now_ms: int = 0) -> bytes:
    assert isinstance(call.target, WebhookTarget)
    named, path = split_url(call.target.url)
    return request_of(call, call.target, place_of(named), path, agent="onthedot/1", now_ms=now_ms)


def sent(call: Call, now_ms: int = 0) -> tuple[str, dict[str, str], bytes]:
    """What goes out, read by a parser that is not ours: request line, headers, body."""
    head, _, body = written(call, now_ms).partition(b"\r\n\r\n")
    line, _, rest = head.decode().partition("\r\n")
    parsed = message_from_string(rest, policy=HTTP)
    assert len(parsed.keys()) == len(set(parsed.keys()))
    return line, {name: str(value) for name, value in parsed.items()}, body


def test_headers_of_the_contract(make_call: MakeCall):
    target = WebhookTarget(url="http://example.com:8080/a?b=c", body={"a": 1})
    line, headers, body = sent(make_call(target, attempt=3), now_ms=1999)
    assert line == "POST /a?b=c HTTP/1.1"
    assert body == b'{"a":1}'
    assert headers == {
        "host": "example.com:8080",
        "user-agent": "onthedot/1",
        "accept": "*/*",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "content-length": "7",
        "webhook-id": f"7-{SLOT}",
        "webhook-timestamp": "1",
        "x-onthedot-job": "7",
        "x-onthedot-scheduled-for": "2025-11-15T19:22:47.890Z",
        "x-onthedot-attempt": "3",
        "traceparent": traceparent(f"7-{SLOT}", 3),
    }


def test_the_jobs_headers_win_over_defaults_and_lose_to_ours(make_call: MakeCall):
    given = {"Content-Type": "text/csv", "User-Agent": "mine", "X-Own": "1"}
    forged = {"Webhook-Id": "forged", "Host": "forged", "Content-Length": "0", "Transfer-Encoding": "chunked"}
    target = WebhookTarget(url="http://x/", headers=given | forged, body={})
    _, headers, _ = sent(make_call(target))
    assert headers["content-type"] == "text/csv"
    assert headers["user-agent"] == "mine"
    assert headers["x-own"] == "1"
    assert headers["webhook-id"] == f"7-{SLOT}"
    assert headers["host"] == "x"
    assert headers["content-length"] == "2"
    assert "transfer-encoding" not in headers


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [("GET", None, None), ("HEAD", None, None), ("GET", "x", "1"), ("POST", None, "0"), ("DELETE", None, "0")],
)
def test_a_length_where_a_receiver_would_wait_for_one(make_call: MakeCall, method: Any, body: Any, length: str | None):
    _, headers, _ = sent(make_call(WebhookTarget(url="http://x/", method=method, body=body)))
    assert headers.get("content-length") == length


@pytest.mark.parametrize(
    ("url", "line", "host"),
    [
        ("http://example.com", "POST / HTTP/1.1", "example.com"),
        ("http://example.com:80/?q#f", "POST /?q HTTP/1.1", "example.com"),
        ("https://example.com:443/", "POST / HTTP/1.1", "example.com"),
        ("https://example.com:80/", "POST / HTTP/1.1", "example.com:80"),
        ("http://[::1]:8080/%20x", "POST /%20x HTTP/1.1", "[::1]:8080"),
        ("http://0x7f.1/", "POST / HTTP/1.1", "127.0.0.1"),
        ("http://bücher.example/ä?ö=ü", "POST /%C3%A4?%C3%B6=%C3%BC HTTP/1.1", "xn--bcher-kva.example"),
    ],
)
def test_the_url_as_the_receiver_reads_it(make_call: MakeCall, url: str, line: str, host: str):
    found, headers, _ = sent(make_call(WebhookTarget(url=url)))
    assert (found, headers["host"]) == (line, host)


def test_a_user_in_the_url_is_an_authorization(make_call: MakeCall):
    _, headers, _ = sent(make_call(WebhookTarget(url="http://me:se%20cret@x/")))
    assert headers["authorization"] == "Basic " + base64.b64encode(b"me:se cret").decode()
    own = WebhookTarget(url="http://me:secret@x/", headers={"Authorization": "Bearer 1"})
    assert sent(make_call(own))[1]["authorization"] == "Bearer 1"


def test_headers_too_long_to_be_remembered_are_sent_all_the_same(make_call: MakeCall):
    held = _lines.cache_info().currsize
    _, headers, _ = sent(make_call(WebhookTarget(url="http://x/", headers={"x-long": "y" * 8000, "x-short": "z"})))
    assert (headers["x-long"], headers["x-short"]) == ("y" * 8000, "z")
    assert _lines.cache_info().currsize == held


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", "a\r\nb: c"),
        ("x", "a\nb"),
        ("x", "a\rb"),
        ("x", "\x00"),
        ("x\r\ny", "1"),
        ("", "1"),
        ("a b", "1"),
        ("x:", "1"),
    ],
)
def test_a_header_that_would_be_read_as_something_else_is_not_written(make_call: MakeCall, name: str, value: str):
    with pytest.raises(ValueError, match="invalid header"):
        sent(make_call(WebhookTarget(url="http://x/", headers={name: value})))


@given(
    headers=st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=3),
    body=st.none() | st.text() | st.lists(st.integers()),
    path=st.text(st.characters(min_codepoint=33, exclude_characters="#\x7f", exclude_categories=["Cs"]), max_size=20),
)
def test_whatever_a_job_says_one_request_goes_out(headers: dict[str, str], body: Any, path: str):
    target = WebhookTarget(url="http://x/" + path, headers=headers, body=body)
    call = Call(run_id="7-1", job_id=7, slot=SLOT, attempt=1, target=target)
    try:
        raw = written(call)
    except ValueError:
        return
    seen = Seen()
    httptools.HttpRequestParser(seen).feed_data(raw)
    assert seen.complete == 1
    assert seen.body == body_of(body)[0]
    assert [value for name, value in seen.headers if name.lower() == b"webhook-id"] == [b"7-1"]


class Seen:
    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.body = b""
        self.complete = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_body(self, portion: bytes) -> None:
        self.body += portion

    def on_message_complete(self) -> None:
        self.complete += 1


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
    target = WebhookTarget(url="http://x/", body="x", secret=SECRET)
    _, headers, body = sent(make_call(target), now_ms=5000)
    assert headers["webhook-signature"] == sign(SECRET, f"7-{SLOT}", 5, body)
    assert "webhook-signature" not in sent(make_call(WebhookTarget(url="http://x/")))[1]


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


@pytest.mark.parametrize(
    ("method", "body", "params", "raw", "kind"),
    [
        ("POST", None, {"a": 1}, b'{"a":1}', b"application/json"),
        ("DELETE", None, {"a": 1}, b'{"a":1}', b"application/json"),
        ("POST", {"b": 2}, {"a": 1}, b'{"b":2}', b"application/json"),
        ("POST", "", {"a": 1}, b"", b"text/plain; charset=utf-8"),
        ("POST", None, {}, b"", None),
        ("GET", None, {"a": 1}, b"", None),
    ],
)
def test_without_a_body_the_params_are_the_body(method: Any, body: Any, params: Any, raw: bytes, kind: bytes | None):
    target = WebhookTarget(url="http://x/", method=method, body=body)
    seen = Seen()
    httptools.HttpRequestParser(seen).feed_data(
        written(Call(run_id="7-1", job_id=7, slot=SLOT, attempt=1, target=target, params=params))
    )
    assert seen.body == raw
    assert dict(seen.headers).get(b"content-type") == kind


def test_values_of_the_run_are_filled_in_for_each_attempt(make_call: MakeCall):
    target = WebhookTarget(
        url="http://x/",
        body={"id": {"$": "run_id"}, "n": {"$": "attempt"}, "at": {"$": "scheduled_for"}, "p": {"$": "params.a.b"}},
    )
    params = {"a": {"b": [1, {"$": "run_id"}]}}
    bodies = [sent(make_call(target, attempt=attempt, params=params)) for attempt in (1, 2)]
    assert [msgspec.json.decode(body) for _, _, body in bodies] == [
        {"id": f"7-{SLOT}", "n": n, "at": "2025-11-15T19:22:47.890Z", "p": [1, {"$": "run_id"}]} for n in (1, 2)
    ]
    for _, headers, body in bodies:
        assert headers["content-length"] == str(len(body))
        assert headers["content-type"] == "application/json"


def test_a_body_that_is_one_value_is_json(make_call: MakeCall):
    _, headers, body = sent(make_call(WebhookTarget(url="http://x/", body={"$": "run_id"})))
    assert (headers["content-type"], body) == ("application/json", f'"7-{SLOT}"'.encode())


def test_the_callback_can_be_in_the_body(make_call: MakeCall):
    target = WebhookTarget(url="http://x/", body={"tell": {"$": "callback"}})
    url = "https://onthedot.example/v1/runs/7-1/complete?token=t"
    _, headers, body = sent(make_call(target, callback=url))
    assert msgspec.json.decode(body) == {"tell": url}
    assert headers["x-onthedot-callback"] == url


def test_params_that_are_the_body_are_no_template(make_call: MakeCall):
    _, _, body = sent(make_call(WebhookTarget(url="http://x/"), params={"a": {"$": "run_id"}}))
    assert body == b'{"a":{"$":"run_id"}}'


def test_while_a_secret_is_changed_receivers_with_either_accept(make_call: MakeCall):
    other = "whsec_" + base64.b64encode(b"another one of 24 bytes !").decode()
    target = WebhookTarget(url="http://x/", body={"n": {"$": "attempt"}}, secrets=[other, SECRET])
    _, headers, body = sent(make_call(target), now_ms=now())
    assert [part[:3] for part in headers["webhook-signature"].split(" ")] == ["v1,", "v1,"]
    for secret in (other, SECRET):
        assert Webhook(secret).verify(body, headers) == {"n": 1}
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + base64.b64encode(b"a third one of 24 bytes !").decode()).verify(body, headers)


def test_the_timestamp_is_of_the_attempt(make_call: MakeCall):
    target = WebhookTarget(url="http://x/", secret=SECRET)
    first, second = (sent(make_call(target, attempt=n), now_ms=n * 1000)[1] for n in (1, 2))
    assert (first["webhook-timestamp"], second["webhook-timestamp"]) == ("1", "2")
    assert first["webhook-id"] == second["webhook-id"]
    assert first["webhook-signature"] != second["webhook-signature"]


@pytest.mark.parametrize(
    "target",
    [
        WebhookTarget(url="http://example.com/a?b=c", body={"id": {"$": "run_id"}, "n": {"$": "params.n"}}),
        WebhookTarget(url="http://example.com/", headers={"X-Team": "ops", "Content-Type": "text/csv"}, body="a,b"),
        WebhookTarget(url="http://example.com/", method="GET"),
        WebhookTarget(url="http://example.com/", secret=SECRET),
    ],
)
def test_what_is_shown_of_a_request_is_what_was_sent(make_call: MakeCall, target: WebhookTarget):
    call = make_call(target, attempt=2, params={"n": 3})
    line, headers, body = sent(call, now_ms=5000)
    about = SentRun(
        run_id=call.run_id,
        job_id=call.job_id,
        scheduled_for=format_instant(SLOT),
        attempt=2,
        started_at=5000,
        params=call.params,
    )
    shown = target.request(about)
    assert line.split()[0] == shown.method
    assert body_of(shown.body)[0] == body
    ours = ("host", "user-agent", "accept", "accept-encoding", "content-length", "traceparent")
    signed = {"webhook-signature": "v1,••••••"} if target.secret else {}
    assert shown.headers == {**{name: value for name, value in headers.items() if name not in ours}, **signed}
    command = as_curl(shown)
    assert command is not None
    assert command.startswith("curl -i ")
    assert target.url in shlex.split(command)
