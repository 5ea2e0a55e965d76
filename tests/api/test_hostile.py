"""Whatever is sent: a 4xx problem document, and the server lives."""

from __future__ import annotations

import asyncio
import json
import re

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onthedot.api.app import ROUTES
from onthedot.clock import FakeClock
from onthedot.errors import StoreUnavailable
from tests.api.conftest import JOB, client_of, problem, serving

BODIES = [endpoint.operation for endpoint in ROUTES if endpoint.operation.body is not None]
WITH_BODY = sorted(
    {(declared.method, declared.path.replace("{job_id}", "1").replace("{key}", "k")) for declared in BODIES}
)


def deep(levels: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * levels + closing * levels


UNREADABLE = {
    "nothing": b"",
    "half": b'{"seconds": 1',
    "two": b"{}{}",
    "comment": b"{} // hi",
    "single quotes": b"{'a': 1}",
    "trailing comma": b'{"a": 1,}',
    "latin-1": '{"url": "ü"}'.encode("latin-1"),
    "utf-16": '{"url": "x"}'.encode("utf-16"),
    "overlong utf-8": b'{"url": "\xc0\xaf"}',
    "bare surrogate": b'{"url": "\xed\xa0\x80"}',
    "nul": b"\x00",
    "nul inside": b'{"a": "\x00"}',
    "control character": b'{"a": "\x01"}',
    "nan": b'{"seconds": NaN}',
    "infinity": b'{"seconds": -Infinity}',
    "hex": b'{"seconds": 0x10}',
    "form": b"seconds=1&url=x",
    "xml": b"<timer/>",
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
    "deep list": deep(100_000),
    "deep object": deep(50_000, b'{"a":', b"1}"),
    "deep and open": b"[" * 100_000,
}


@pytest.mark.parametrize(("method", "address"), WITH_BODY)
async def test_what_is_no_json_is_400_everywhere(api, method, address):
    for name, body in UNREADABLE.items():
        if address in ("/v1/dead/redrive", "/v1/pause", "/v1/resume") and not body:
            continue  # no body at all means all of them, or no note
        answer = await api.request(method, address, content=body)
        # a body that is larger than the verb takes is not read at all
        assert answer.status_code in (400, 404, 413), f"{name}: {answer.status_code} {answer.text}"
        problem(answer, answer.status_code)


INVALID = {
    "nul in text": b'{"url": "http://a/\\u0000", "seconds": 1}',
    "nul in a name": b'{"a\\u0000b": 1}',
    "lone surrogate": b'{"url": "\\ud800"}',
    "huge integer": b'{"seconds": ' + b"9" * 400 + b"}",
    "huge float": b'{"seconds": 1e308}',
    "nested 60": b'{"url": ' + deep(60) + b"}",
    "same name twice": b'{"seconds": 1, "seconds": "x", "url": "x"}',
    "emoji name": '{"🙂": 1}'.encode(),
    "prototype": b'{"__proto__": {}, "constructor": 1, "__class__": 1}',
    "null": b"null",
    "text": b'"x"',
    "number": b"0",
    "list": b"[]",
}


@pytest.mark.parametrize(("method", "address"), [one for one in WITH_BODY if one[1] != "/v1/jobs/batch"])
async def test_what_is_json_but_wrong_is_422_everywhere(api, method, address):
    for name, body in INVALID.items():
        answer = await api.request(method, address, content=body)
        assert answer.status_code in (400, 404, 422), f"{name}: {answer.status_code} {answer.text}"
        problem(answer, answer.status_code)


async def test_a_body_over_its_limit_is_413_with_and_without_a_content_length(api):
    large = b'{"url": "' + b"x" * (1 << 20) + b'"}'

    async def pieces():
        for start in range(0, len(large), 65_536):
            yield large[start : start + 65_536]

    problem(await api.post("/timers", content=large), 413)
    problem(await api.post("/timers", content=pieces()), 413)
    problem(await api.post("/timers", content=b"{}", headers={"content-length": "9" * 30}), 413)


async def test_a_body_of_another_kind_is_415_and_says_what_is_read(api):
    for media in ("multipart/form-data; boundary=x", "application/xml", "text/html", "image/png", "x", "a/b/c"):
        answer = await api.post("/timers", content=b"{}", headers={"content-type": media})
        problem(answer, 415)
        assert answer.headers["accept"] == "application/json"


async def test_another_charset_is_415(api):
    for charset in ("latin-1", "utf-16", "ebcdic", "x" * 1000):
        media = {"content-type": f"application/json; charset={charset}"}
        problem(await api.post("/timers", content=b"{}", headers=media), 415)


async def test_a_compressed_body_is_415(api):
    for encoding in ("gzip", "br", "deflate", "gzip, gzip", "GZIP"):
        problem(await api.post("/timers", content=b"{}", headers={"content-encoding": encoding}), 415)


async def test_a_client_that_goes_away_in_the_middle_is_no_error_of_ours(app):
    sent: list[dict[str, object]] = []
    messages = iter([{"type": "http.request", "body": b'{"sec', "more_body": True}, {"type": "http.disconnect"}])

    async def receive():
        return next(messages)

    async def send(message):
        sent.append(message)

    await app(_scope("POST", "/timers"), receive, send)
    assert sent[0]["status"] == 400


async def test_a_body_that_does_not_come_is_408(app, fake_clock):
    sent: list[dict[str, object]] = []
    waiting, never = asyncio.Event(), asyncio.Event()

    async def receive():
        waiting.set()
        await never.wait()

    async def send(message):
        sent.append(message)

    request = asyncio.create_task(app(_scope("POST", "/timers"), receive, send))
    await waiting.wait()
    await fake_clock.advance(31)
    await request
    assert sent[0]["status"] == 408


def _scope(method: str, path: str):
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "scheme": "http",
        "http_version": "1.1",
        "root_path": "",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
    }


async def test_an_unknown_address_is_404(api):
    for path in ("/nope", "/v1", "/v1/jobs/1/x", "/v2/jobs", "/%00", "/..%2f..%2fetc", "/\u202e", "/static/x"):
        problem(await api.get(path), 404)


async def test_a_method_that_is_not_taken_is_405_with_those_that_are(api):
    for method, path, allowed in (
        ("DELETE", "/v1/jobs", "GET, POST"),
        ("POST", "/v1/jobs/1", "DELETE, GET, PATCH, PUT"),
        ("POST", "/healthz", "GET"),
        ("GET", "/v1/jobs/batch", "POST"),
        ("TRACE", "/v1/jobs", "GET, POST"),
        ("PROPFIND", "/timers", "POST"),
        ("OPTIONS", "/v1/jobs/1", "DELETE, GET, PATCH, PUT"),
        ("NONSENSE", "/", "GET"),
    ):
        answer = await api.request(method, path)
        problem(answer, 405)
        assert answer.headers["allow"] == allowed, (method, path)


async def test_head_says_what_get_would_say_without_the_body(api, new_job):
    job = await new_job()
    got, head = await api.get(f"/v1/jobs/{job['id']}"), await api.head(f"/v1/jobs/{job['id']}")
    assert (head.status_code, head.content) == (200, b"")
    assert dict(head.headers) == dict(got.headers)
    assert (await api.head("/v1/jobs/404")).status_code == 404


async def test_every_answer_carries_the_security_headers(api, new_job):
    await new_job()
    for path in (
        "/",
        "/docs",
        "/openapi.json",
        "/v1/jobs",
        "/v1/jobs/1",
        "/nope",
        "/healthz",
        "/metrics",
        "/static/style.css",
    ):
        headers = (await api.get(path)).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert ("no-store" in headers["cache-control"]) == (path != "/static/style.css"), path
        assert "server" not in headers


async def test_a_bug_of_ours_is_a_problem_document_with_a_reference_and_no_trace(api, app, monkeypatch, caplog):
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(type(app.context.service), "get_job", broken)
    answer = await api.get("/v1/jobs/1")
    document = problem(answer, 500)
    assert "secret detail" not in answer.text
    reference = re.fullmatch(
        r"Internal server error \(reference ([0-9a-f]{12}); see the server log\)", document["detail"]
    )
    assert reference is not None
    assert reference[1] in caplog.text
    assert "ZeroDivisionError: secret detail" in caplog.text


async def test_a_store_that_is_away_is_503_with_retry_after(api, app, monkeypatch):
    async def away(*_: object) -> None:
        raise StoreUnavailable("the database can't be reached")

    monkeypatch.setattr(type(app.context.service), "get_job", away)
    answer = await api.get("/v1/jobs/1")
    problem(answer, 503)
    assert answer.headers["retry-after"] == "1"


async def test_a_websocket_is_closed(app):
    sent: list[dict[str, object]] = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    await app({**_scope("GET", "/v1/events"), "type": "websocket"}, receive, send)
    assert [message["type"] for message in sent] == ["websocket.close"]


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
FIELDS = ("key", "name", "schedule", "target", "policy", "params", "tags", "paused")


@settings(max_examples=40)
@given(change=st.dictionaries(st.sampled_from(FIELDS), JSONISH, max_size=4), raw=st.binary(max_size=60))
def test_no_job_and_no_bytes_make_it_fall_over(change, raw):
    async def send_both() -> list[httpx.Response]:
        async with serving("sqlite:///:memory:", FakeClock()) as app, client_of(app) as client:
            body = json.dumps({**JOB, **change}).encode()
            return [await client.post("/v1/jobs", content=content) for content in (body, raw)]

    for answer in asyncio.run(send_both()):
        assert answer.status_code in (201, 400, 413, 415, 422), answer.text
