"""One answer as it comes in, in any portions. No I/O: bytes go in, what they mean can be read off.

- The head is the verdict: once it is there, nothing that follows can undo it, not even what is no HTTP at all.
- Of the body 2 KB are kept, of JSON all of it; past 64 KB it is not worth the wait, and the connection is given up
  instead. What surrounds it (chunk sizes and their extensions, trailers, a body that nobody expects) counts like the
  body; greetings count like the head. No more than that is ever parsed.
- 204, 304 and an answer to HEAD have no body, whatever they announce. A connection on which one was announced is not
  used again: what would come then is the body that should not be.
- 1xx are greetings, passed over; but 101 is an end: there is nothing we could upgrade to.
- As forgiving as browsers (llhttp's leniencies): a receiver that writes LF for CRLF has still said 200.
- One parser per answer, so that nothing of one answer can leak into the next: 0.3 µs more than one per connection.
"""

from __future__ import annotations

import httptools
import msgspec

from onthedot.targets.webhook.verdict import SNIPPET

__all__ = ["ANSWER_LIMIT", "BODY_LIMIT", "HEAD_LIMIT", "NotHttp", "Reading", "WebhookResponse"]

BODY_LIMIT = 64 * 1024
HEAD_LIMIT = 64 * 1024
ANSWER_LIMIT = HEAD_LIMIT + BODY_LIMIT  # of all its bytes
_WANTED = frozenset(
    {
        b"retry-after",
        b"location",
        b"webhook-delivery",
        b"content-length",
        b"transfer-encoding",
        b"keep-alive",
        b"content-type",
    }
)


class NotHttp(ValueError):
    """What came is no answer."""


class WebhookResponse(msgspec.Struct, frozen=True, gc=False):
    status: int
    body: bytes
    retry_after: str | None
    location: str | None
    is_json: bool = False  # it says so, and the body is all that came
    delivery: str | None = None


class Reading:
    """`feed` what came until `complete`; `status` is 0 until the head is there. httptools calls the on_… methods."""

    __slots__ = ("_body", "_headers", "_is_head", "_parser", "_read", "_size", "complete", "reusable", "status")

    def __init__(self, *, is_head: bool = False) -> None:
        self.status = 0
        self.complete = False
        self.reusable = False
        """May the connection be used again? Only meant once it is complete."""
        self._is_head = is_head
        self._headers: dict[bytes, bytes] = {}
        self._body = b""
        self._size = 0
        self._read = 0
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def feed(self, data: bytes) -> None:
        """Raises NotHttp only while there is no verdict yet."""
        assert self._parser is not None, "it is complete"
        room = HEAD_LIMIT - self._read
        if not self.status and len(data) > room:
            if not self._parse(data[:room]):
                self._parser = None
                raise NotHttp(f"the headers exceed {HEAD_LIMIT} bytes")
            data = data[room:]
        if self._parser is not None:
            self._parse(data[: ANSWER_LIMIT - self._read])
        if self._read >= ANSWER_LIMIT and not self.complete:
            self._end(reusable=False)
            self._parser = None

    def _parse(self, data: bytes) -> bool:
        """Whether there is a verdict."""
        assert self._parser is not None
        self._read += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._end(reusable=False)
        except httptools.HttpParserError as error:
            if not self.status:
                self._parser = None
                raise NotHttp(str(error) or type(error).__name__) from None
            self._end(reusable=False)
        if self.complete:
            self._parser = None  # it holds our methods: a ring that only the garbage collector would find
        return self.status > 0

    def answer(self) -> WebhookResponse:
        """What is known, complete or not."""
        headers = self._headers
        if not headers:
            return WebhookResponse(self.status, self._body, None, None)
        return WebhookResponse(
            self.status,
            self._body,
            _text(headers.get(b"retry-after")),
            _text(headers.get(b"location")),
            self._body != b"" and self._size <= BODY_LIMIT and self._is_json(),
            _text(headers.get(b"webhook-delivery")),
        )

    def _is_json(self) -> bool:
        """By what the receiver says: application/json, or what is JSON in the end (application/problem+json)."""
        said = self._headers.get(b"content-type", b"").lower()
        if b"json" not in said:
            return False
        media = said.partition(b";")[0].strip()
        return media == b"application/json" or media.endswith(b"+json")

    def kept_for(self) -> float | None:
        """For how many seconds the receiver says that it keeps an idle connection."""
        if b"keep-alive" not in self._headers:
            return None
        for part in self._headers[b"keep-alive"].split(b","):
            name, _, value = part.partition(b"=")
            if name.strip().lower() == b"timeout" and (digits := value.strip(b' "')).isdigit():
                return float(digits[:9])
        return None

    def _end(self, *, reusable: bool) -> None:
        self.complete, self.reusable = True, reusable

    def on_message_begin(self) -> None:
        if self.complete:
            self.reusable = False  # more than was asked for
        elif self._headers:
            self._headers = {}  # those of a greeting

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.lower()
        if key in _WANTED and not self.status:  # later ones are trailers, or nobody's
            self._headers.setdefault(key, value)

    def on_headers_complete(self) -> None:
        if self.complete:
            return
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200 and status != 101:
            return
        self.status = status
        if self._is_head:
            self._end(reusable=self._parser.should_keep_alive())
        elif status in (204, 304):
            self._end(reusable=self._parser.should_keep_alive() and not self._announces_a_body())
        elif status == 101:
            self._end(reusable=False)

    def _announces_a_body(self) -> bool:
        return b"transfer-encoding" in self._headers or self._headers.get(b"content-length", b"0").strip() != b"0"

    def on_body(self, portion: bytes) -> None:
        if self.complete:
            self.reusable = False
            return
        if self._size + len(portion) <= SNIPPET or self._is_json():  # JSON is the result of the run: kept as a whole
            self._body += portion
        elif self._size < SNIPPET:
            self._body += portion[: SNIPPET - self._size]
        self._size += len(portion)
        if self._size > BODY_LIMIT:
            self._end(reusable=False)

    def on_message_complete(self) -> None:
        if self.status and not self.complete:
            assert self._parser is not None
            self._end(reusable=self._parser.should_keep_alive())


def _text(value: bytes | None) -> str | None:
    """A header as text that any store can hold."""
    return None if value is None else value.strip().decode("utf-8", errors="replace").replace("\x00", "�")
