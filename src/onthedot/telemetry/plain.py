"""Escapes untrusted text for a terminal: control characters and escape sequences, and characters that change the text
direction.

Job names, responses of receivers and the output of commands may come from an attacker who wants to mislead the
operator.
"""

from __future__ import annotations

import re

__all__ = ["plain", "plain_json", "plain_line"]

_MARKS = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb"  # direction, lines, annotations
_HARMFUL = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_MARKS}\ud800-\udfff\U000e0000-\U000e007f]")
_IN_JSON = re.compile(f"[\x7f-\x9f{_MARKS}\U000e0000-\U000e007f]")
_TURN = re.compile("\r\n?")


def plain(text: str) -> str:
    """Escape text. Newlines and tabs are kept; a carriage return, which would overwrite the line, becomes a newline."""
    if _HARMFUL.search(text) is None:
        return text
    return _HARMFUL.sub(_shown, _TURN.sub("\n", text))


def plain_line(text: str) -> str:
    """Escape text and put it on one line."""
    return " ".join(plain(text).split("\n")).replace("\t", " ")


def plain_json(text: str) -> str:
    """Escape the characters that JSON itself does not escape; the document stays equivalent."""
    return _IN_JSON.sub(_escaped, text)


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))
