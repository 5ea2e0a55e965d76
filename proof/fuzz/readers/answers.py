"""A receiver's answer: no other exception than NotHttp, bounded, and the same however it is cut."""

from __future__ import annotations

import random

from onthedot.targets.webhook.http1.response import NotHttp, Reading
from onthedot.targets.webhook.verdict import SNIPPET
from proof.fuzz.reader import Reader, Wrong

__all__ = ["ANSWERS"]


def _read(portions: list[bytes]) -> tuple[object, ...]:
    reading = Reading()
    used = 0
    try:
        for portion in portions:
            if reading.complete:
                break
            reading.feed(portion)
            used += 1
    except NotHttp:
        return ("not http",)
    answer = reading.answer()
    if len(answer.body) > SNIPPET:
        raise Wrong(f"{len(answer.body)} bytes of body are kept")
    if answer.status and not 100 <= answer.status <= 999:
        raise Wrong(f"status {answer.status}")
    reading.kept_for()
    return answer.status, answer.body, answer.retry_after, answer.location, reading.complete


def check(raw: bytes, rng: random.Random) -> bool:
    whole = _read([raw])
    cuts = sorted(rng.randrange(len(raw) + 1) for _ in range(rng.randrange(4)))
    cut = _read([raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True) if b > a])
    if cut != whole:
        raise Wrong(f"whole {whole}, cut at {cuts} {cut}")
    return len(whole) > 1 and bool(whole[0])


ANSWERS = Reader(
    "answers",
    check,
    (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\nx: y\r\n\r\n",
        b"HTTP/1.1 503 -\r\ntransfer-encoding: chunked\r\n\r\n0\r\nretry-after: 9\r\n\r\n",
        b"HTTP/1.1 103 -\r\nlink: x\r\n\r\nHTTP/1.1 301 -\r\nlocation: /a\r\nconnection: close\r\n\r\nbody",
        b"HTTP/1.0 429 Too Many\r\nRetry-After: 120\r\nKeep-Alive: timeout=5, max=9\r\n\r\n",
        b"HTTP/1.1 101 -\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\nrest",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ),
    (
        b"HTTP/1.1 ", b"200", b"\r\n", b"\n", b": ", b"Content-Length", b"Transfer-Encoding", b"chunked", b"gzip",
        b"keep-alive",
        b"Connection", b"close", b"0\r\n\r\n", b"5\r\nhello\r\n", b"ffffffff\r\n", b";a=b", b"Retry-After",
        b"Location", b"Upgrade",
        b"timeout=", b"HTTP/1.1 100 Continue\r\n\r\n", b"\t", b" ",
    ),
)  # fmt: skip
