"""The receiver of the bench answers each request once, however the bytes arrive."""

from __future__ import annotations

from typing import Any, cast

import pytest

from bench.receiver import ANSWER, Receiving

POST = b'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n{"a":1}'
GET = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
LENGTH_LAST = b"POST / HTTP/1.1\r\ncontent-length:2\r\n\r\nok"
CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"


class Line:
    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data


def answers(*pieces: bytes) -> int:
    line = Line()
    receiving = Receiving()
    receiving.connection_made(cast("Any", line))
    for piece in pieces:
        receiving.data_received(piece)
    assert line.written == ANSWER * line.written.count(ANSWER)
    return line.written.count(ANSWER)


@pytest.mark.parametrize("request_", [POST, GET, LENGTH_LAST, CHUNKED])
def test_one_request_at_once_and_byte_by_byte(request_: bytes):
    assert answers(request_) == 1
    assert answers(*(request_[i : i + 1] for i in range(len(request_)))) == 1


def test_many_in_one_piece():
    assert answers(POST + CHUNKED + GET + POST[:-1]) == 3
    assert answers(POST + POST[:-1], POST[-1:]) == 2


def test_an_unfinished_one_is_not_answered():
    assert answers(POST[:-1]) == 0
