"""What a worker process says, taken apart. The other side is `worker_process`, which can't import this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from onthedot.model.run import Outcome
from onthedot.targets.function.worker_process import HEAD, NEW_OUTPUT, OK, REPLACE, RESULT, RETRYABLE

__all__ = ["Answers", "CallResult", "Nonsense", "outcome_of"]

_OK = Outcome(kind="ok")
_LONGEST = 2 * 1024 * 1024  # of one part


class Nonsense(Exception):
    """Bytes that no worker writes: user code got hold of the socket."""


class CallResult(msgspec.Struct, frozen=True, gc=False):
    number: int
    begun: float  # monotonic, as on this machine every process reads it
    ended: float
    flags: int
    error: bytes
    result: bytes
    output: bytes

    @property
    def ok(self) -> bool:
        return bool(self.flags & OK)

    @property
    def retryable(self) -> bool:
        return bool(self.flags & RETRYABLE)

    @property
    def has_result(self) -> bool:
        return bool(self.flags & RESULT)

    @property
    def new_output(self) -> bool:
        """The worker has a new pipe from here on; its reading end came along."""
        return bool(self.flags & NEW_OUTPUT)

    @property
    def replace(self) -> bool:
        """The worker has grown and would be replaced."""
        return bool(self.flags & REPLACE)


class Answers:
    """Bytes in, as they come; whole answers out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, portion: bytes) -> Iterator[CallResult]:
        raw = self._rest + portion if self._rest else portion
        at = 0
        while len(raw) - at >= HEAD.size:
            number, begun, ended, flags, error, result, output = HEAD.unpack_from(raw, at)
            if not error and not result and not output:  # most of them: it was done, and there is nothing to say
                yield CallResult(number, begun, ended, flags, b"", b"", b"")
                at += HEAD.size
                continue
            if max(error, result, output) > _LONGEST:
                raise Nonsense
            error_at = at + HEAD.size
            result_at = error_at + error
            output_at = result_at + result
            end = output_at + output
            if end > len(raw):
                break
            yield CallResult(
                number, begun, ended, flags, raw[error_at:result_at], raw[result_at:output_at], raw[output_at:end]
            )
            at = end
        self._rest = raw[at:]


def outcome_of(result: CallResult) -> Outcome:
    if result.ok:
        if not result.result:
            return _OK
        if result.has_result:
            return Outcome(kind="ok", detail=_decoded(result.result))
        return Outcome(kind="ok", detail={"result_note": result.result.decode("utf-8", "replace")})
    return Outcome(kind="error", retryable=result.retryable, error=result.error.decode("utf-8", "replace"))


def _decoded(result: bytes) -> dict[str, Any]:
    try:
        return {"result": msgspec.json.decode(result)}
    except (ValueError, RecursionError):  # it is JSON for the other side, but nested too deep for ours
        return {"result_note": "not kept: it is nested too deeply"}
