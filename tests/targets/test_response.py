"""Answers in any portions: what they mean never depends on how they were cut."""

from __future__ import annotations

import contextlib
import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.targets.webhook.http1.response import (
    ANSWER_LIMIT,
    BODY_LIMIT,
    HEAD_LIMIT,
    NotHttp,
    Reading,
    WebhookResponse,
)

ANSWERS = {
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, b"abc", True),
    "length 0": (b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n", 201, b"", True),
    "chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\n",
        200,
        b"abc",
        True,
    ),
    "trailers": (
        b"HTTP/1.1 503 -\r\ntransfer-encoding: chunked\r\n\r\n0\r\nretry-after: 9\r\n\r\n",
        503,
        b"",
        True,
    ),
    "close": (b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\na", 200, b"a", False),
    "1.0": (b"HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", 200, b"a", False),
    "1.0 kept": (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\na", 200, b"a", True),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 0\r\n\r\n", 304, b"", True),
    "not modified with a length": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n", 304, b"", False),
    "no content in chunks": (b"HTTP/1.1 204 -\r\ntransfer-encoding: chunked\r\n\r\n", 204, b"", False),
    "continue first": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na", 200, b"a", True),
    "hints first": (
        b"HTTP/1.1 103 -\r\nlocation: /wrong\r\n\r\nHTTP/1.1 102 -\r\n\r\nHTTP/1.1 404 -\r\ncontent-length: 1\r\n\r\na",
        404,
        b"a",
        True,
    ),
    "switching": (b"HTTP/1.1 101 -\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n", 101, b"", False),
    "bare LF": (b"HTTP/1.1 200 OK\ncontent-length: 1\n\na", 200, b"a", True),
    "odd bytes": (b"HTTP/1.1 200 \xff\r\nx-odd: \xfe\x01\r\ncontent-length: 1\r\n\r\na", 200, b"a", True),
    "no reason": (b"HTTP/1.1 299\r\ncontent-length: 0\r\n\r\n", 299, b"", True),
}


def read(*portions: bytes, is_head: bool = False) -> Reading:
    reading = Reading(is_head=is_head)
    for portion in portions:
        if reading.complete:
            break
        reading.feed(portion)
    return reading


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_answers(name: str):
    raw, status, body, reusable = ANSWERS[name]
    reading = read(raw)
    assert (reading.status, reading.complete, reading.reusable) == (status, True, reusable)
    assert reading.answer() == WebhookResponse(status, body, None, None)


@given(name=st.sampled_from(sorted(ANSWERS)), data=st.data())
def test_the_same_in_whatever_portions(name: str, data: st.DataObject):
    raw, status, body, reusable = ANSWERS[name]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(raw) - 1))))
    reading = read(*(raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)))
    assert (reading.status, reading.complete, reading.reusable) == (status, True, reusable)
    assert reading.answer() == WebhookResponse(status, body, None, None)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_the_same_byte_by_byte(name: str, size: int):
    raw, status, body, reusable = ANSWERS[name]
    reading = read(*(raw[at : at + size] for at in range(0, len(raw), size)))
    assert (reading.status, reading.complete, reading.reusable) == (status, True, reusable)
    assert reading.answer().body == body


@given(st.binary(max_size=300), st.lists(st.integers(1, 40), max_size=8))
def test_anything_at_all_is_an_answer_or_is_not_http(raw: bytes, sizes: list[int]):
    reading, at = Reading(), 0
    try:
        for size in [*sizes, len(raw)]:
            if not reading.complete:
                reading.feed(raw[at : at + size])
            at += size
    except NotHttp:
        assert reading.status == 0
    assert reading.status == 0 or reading.status == 101 or 200 <= reading.status < 1000


@given(st.binary(max_size=200), st.sampled_from([b"content-length: 5", b"transfer-encoding: chunked", b"x: y"]))
def test_once_the_head_is_there_nothing_undoes_the_verdict(rest: bytes, framing: bytes):
    reading = Reading()
    reading.feed(b"HTTP/1.1 202 OK\r\n" + framing + b"\r\n\r\n")
    if not reading.complete:
        reading.feed(rest)
    assert reading.status == 202
    assert reading.answer().status == 202


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"<html></html>",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_not_http(raw: bytes):
    with pytest.raises(NotHttp):
        read(raw)


def test_a_head_without_an_end():
    reading = Reading()
    reading.feed(b"HTTP/1.1 200 OK\r\n")
    with pytest.raises(NotHttp, match=str(HEAD_LIMIT)):
        for n in range(HEAD_LIMIT):
            reading.feed(b"x-%d: %s\r\n" % (n, b"y" * 100))


def test_greetings_without_an_end():
    reading = Reading()
    with pytest.raises(NotHttp, match=str(HEAD_LIMIT)):
        for _ in range(HEAD_LIMIT):
            reading.feed(b"HTTP/1.1 100 Continue\r\n\r\n")


def test_of_the_body_two_kilobytes_are_kept_and_past_64_it_is_given_up():
    reading = read(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n", b"a" * 2000, b"b" * 2000)
    assert reading.answer().body == b"a" * 2000 + b"b" * 48
    steps = [reading.complete]
    for portion in (b"c" * (BODY_LIMIT - 4000), b"d"):
        reading.feed(portion)
        steps.append(reading.complete)
    assert steps == [False, False, True]
    assert not reading.reusable


def test_a_body_of_exactly_the_limit_leaves_the_connection_usable():
    reading = read(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % BODY_LIMIT, b"a" * BODY_LIMIT)
    assert reading.complete
    assert reading.reusable


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("framing", [b"", b"content-length: 4\r\n", b"transfer-encoding: chunked\r\n"])
def test_a_body_where_none_may_be_costs_the_connection_and_not_the_verdict(status: int, framing: bytes):
    reading = read(b"HTTP/1.1 %d -\r\n%s\r\nbody" % (status, framing))
    assert (reading.status, reading.complete, reading.reusable) == (status, True, False)
    assert reading.answer().body == b""


@pytest.mark.parametrize("surplus", [b"HTTP/1.1 200 OK\r\n", b"x", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"])
def test_more_than_was_asked_for_costs_the_connection(surplus: bytes):
    reading = read(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na" + surplus)
    assert (reading.status, reading.complete, reading.reusable) == (200, True, False)
    assert reading.answer().body == b"a"


def test_an_answer_to_head_ends_with_its_head():
    raw = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"
    reading = read(raw, is_head=True)
    assert (reading.status, reading.complete, reading.reusable) == (200, True, True)
    reading = read(raw + b"abc", is_head=True)
    assert (reading.status, reading.complete, reading.reusable) == (200, True, False)
    reading = read(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", is_head=True)
    assert (reading.complete, reading.reusable) == (True, True)


def test_without_a_length_it_goes_on_until_the_end():
    reading = read(b"HTTP/1.1 200 OK\r\n\r\nabc")
    assert (reading.status, reading.complete) == (200, False)
    assert reading.answer().body == b"abc"


def test_the_headers_that_count():
    reading = read(
        b"HTTP/1.1 307 -\r\nRETRY-AFTER: 7\r\nretry-after: 8\r\nLocation:  /\xff\x00x \r\ncontent-length: 0\r\n\r\n"
    )
    assert reading.answer() == WebhookResponse(307, b"", "7", "/��x")


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("timeout=5", 5.0),
        ("max=1000, Timeout = 15", 15.0),
        ('timeout="3"', 3.0),
        ("timeout=x", None),
        ("", None),
        ("5", None),
    ],
)
def test_how_long_a_receiver_keeps_the_connection(value: str, seconds: float | None):
    reading = read(f"HTTP/1.1 200 OK\r\nkeep-alive: {value}\r\ncontent-length: 0\r\n\r\n".encode())
    assert reading.kept_for() == seconds


@pytest.mark.parametrize("raw", [b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"nonsense"])
def test_nothing_is_left_for_the_garbage_collector(raw: bytes):
    class Watched(Reading):
        __slots__ = ("__weakref__",)

    reading = Watched()
    watch = weakref.ref(reading)
    gc.disable()
    try:
        with contextlib.suppress(NotHttp):
            reading.feed(raw)
        del reading
        assert watch() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "endless",
    [
        b"0\r\n" + b"x-a: yyyyyyyyyyyy\r\n" * 20_000,
        b"0\r\nx: " + b"y" * 300_000,
        b"2;" + b"a" * 300_000,
        b"1\r\na\r\n" * 60_000,
    ],
    ids=["trailers", "one trailer", "chunk extension", "small chunks"],
)
@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_whatever_surrounds_a_body_is_counted(endless: bytes, size: int):
    raw = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + endless
    reading = Reading()
    fed = 0
    while not reading.complete:
        reading.feed(raw[fed : fed + size])
        fed += size
    assert (reading.status, reading.reusable) == (200, False)
    assert fed <= ANSWER_LIMIT + size


@pytest.mark.parametrize("size", [1000, 1 << 20])
def test_greetings_without_end_are_no_answer(size: int):
    raw = b"HTTP/1.1 103 -\r\nlink: x\r\n\r\n" * 20_000
    reading = Reading()
    with pytest.raises(NotHttp, match="headers exceed"):
        for start in range(0, len(raw), size):
            reading.feed(raw[start : start + size])
