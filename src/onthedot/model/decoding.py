"""Strict decoding that reports every invalid field at once, with its path, what was given and what is accepted.

The good case is msgspec's C path alone. Only when that refuses, the input is walked once more in Python
(`field_errors`) to find all that is wrong with it instead of the first thing.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

from onthedot.errors import FieldProblem, Invalid, NotAvailable, Unreadable
from onthedot.model.duration import ACCEPTED_DURATIONS, Duration
from onthedot.model.field_errors import dec_hook, mistakes
from onthedot.model.portions import WINDOW
from onthedot.model.unstorable import MAX_DEPTH, find_unstorable

__all__ = [
    "convert",
    "dec_hook",
    "decode_json",
    "decode_loose",
    "enc_hook",
    "encode_json",
    "schema_hook",
    "to_builtins",
    "work_out_fields",
]

T = TypeVar("T")

_LONG = re.compile(rb"[0-9]{19}")
"""The shortest number that 64 bits may not hold."""


@lru_cache(maxsize=1024, typed=True)
def enc_hook(value: Any) -> Any:
    """Cached: a job that is created writes ten durations, the same ones as the job before."""
    if isinstance(value, Duration):
        return str(value)
    raise NotImplementedError(type(value))


def schema_hook(kind: type) -> dict[str, Any]:
    if kind is Duration:
        return {"oneOf": [{"type": "number", "minimum": 0}, {"type": "string"}], "description": ACCEPTED_DURATIONS}
    raise NotImplementedError(kind)


_encoder = msgspec.json.Encoder(enc_hook=enc_hook)


def encode_json(value: Any) -> bytes:
    return _encoder.encode(value)


def to_builtins(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=enc_hook)


def decode_json(raw: bytes | str, kind: type[T]) -> T:
    """JSON text → struct. Unreadable (400) for what is no JSON, Invalid (422) for what is wrong.

    What can hold no hazard is decoded straight into the struct: half the time. If that refuses, the long way finds out
    what there is to say.
    """
    if isinstance(raw, (bytes, msgspec.Raw)) and _plain(raw):
        try:
            decoder: msgspec.json.Decoder[T] = _decoder_of(cast("Hashable", kind))
            return decoder.decode(raw)
        except (msgspec.DecodeError, UnicodeError, OverflowError, RecursionError):
            pass
    try:
        loose = decode_loose(raw)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Unreadable(f"the body is not valid JSON: {error}") from None
    except RecursionError:
        raise Unreadable("the body is nested too deeply") from None
    return convert(loose, kind)


def _plain(raw: bytes | msgspec.Raw) -> bool:
    """No hazard can hide in it: no escape (NUL, surrogates), no endless nesting, no number that is too long.

    Four looks, 2 µs; the same as one expression with alternatives took 4, and all was lost that decoding won.
    """
    text = bytes(raw)
    return (
        b"\\u" not in text
        and b"\x00" not in text
        and text.count(b"{") + text.count(b"[") < MAX_DEPTH
        and not _has_long_number(text)
    )


def _has_long_number(text: bytes) -> bool:
    """Looked for in windows: in one call, a megabyte held every thread for 20 ms."""
    return any(_LONG.search(text, start, start + WINDOW + 18) for start in range(0, len(text), WINDOW))


_first_use = threading.Lock()
_used: set[Any] = set()


def work_out_fields(kind: Any) -> None:
    """Of a struct and all that is in it, once, by one thread. msgspec does it when they are first needed, and threads
    that did it at the same time crashed the process (0.22): plain programs add jobs from several, and SQLite's writer
    decodes in a thread of its own."""
    if kind not in _used:
        with _first_use:
            msgspec.json.Decoder(kind, dec_hook=dec_hook)
            _used.add(kind)


@lru_cache(maxsize=64)
def _decoder_of(kind: Any) -> Any:
    work_out_fields(kind)
    return msgspec.json.Decoder(kind, dec_hook=dec_hook, float_hook=_finite)


def decode_loose(raw: bytes | str) -> Any:
    """JSON text → dicts and lists. Raises what msgspec raises."""
    return _loosely.decode(raw)


def _finite(text: str) -> float:
    """msgspec's own takes 17 µs for 1e308, Python's a tenth of one: a megabyte of them kept everybody waiting."""
    number = float(text)
    if not math.isfinite(number):
        raise msgspec.DecodeError("Number out of range")
    return number


_loosely = msgspec.json.Decoder(float_hook=_finite)


def convert(loose: Any, kind: type[T], *, path: str = "") -> T:
    """Plain dicts and lists (from JSON, YAML, TOML) → struct, or Invalid with every problem."""
    found = list(find_unstorable(loose, path))
    if found:
        raise Invalid(found)
    work_out_fields(kind)
    try:
        return msgspec.convert(loose, kind, dec_hook=dec_hook)
    except (msgspec.ValidationError, OverflowError) as error:
        problems = list(mistakes(loose, kind, path)) or [FieldProblem(path=path or "$", message=str(error))]
        if all(problem.message.startswith("not available") for problem in problems):
            raise NotAvailable(problems) from None
        raise Invalid(problems) from None
