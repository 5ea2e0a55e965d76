"""Taking secrets out of what leaves the house, such as an incident bundle. Pure.

Three ways, one after the other: values that are called a secret by their name; the secrets of the job itself, wherever
else they stand (a receiver may repeat them, a program may print them); and what looks like a credential in free text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from onthedot.model.secret_text import MASK, is_secret_name

__all__ = ["Redactor", "hidden_by_masks", "named_secrets"]

SHORTEST = 4
"""Characters. What is shorter is found in every other word."""

_TO_LINE_END = re.compile(
    r"(?im)(?<![\w-])((?:proxy-)?authorization|(?:set-)?cookie)([ \t]{0,4}[:=][ \t]{0,4})([^\n\"']+)"
)
_PAIR = re.compile(
    r"(?<![\w.-])([A-Za-z_][\w.-]{1,80})([\"']?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4})"
    r"(?:\"((?:[^\"\\\n]|\\.){1,4000})\"|'([^'\n]{1,4000})'|([^\s\"'&;,(){}\[\]<>|]{1,4000}))"
)
_LOOKS = tuple(
    (re.compile(pattern, re.DOTALL), instead)
    for pattern, instead in (
        (r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", MASK),
        (r"(://[^/\s:@\"']{0,200}):[^/\s@\"']{1,500}@", rf"\1:{MASK}@"),
        (r"\b([Bb]earer|[Bb]asic)[ \t]+(?=\S*[0-9A-Z=_])[A-Za-z0-9._~+/=-]{6,4000}", rf"\1 {MASK}"),
        (r"\beyJ[A-Za-z0-9_-]{6,4000}\.[A-Za-z0-9_-]{6,4000}(?:\.[A-Za-z0-9_-]{1,4000})?", MASK),
        (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", MASK),
        (
            r"\b(?:otd_|gh[pousr]_|github_pat_|xox[abeprs]-|[sr]k_live_|[sr]k_test_|whsec_)[A-Za-z0-9_/+=-]{6,4000}",
            MASK,
        ),
        (r"(/ping/)[A-Za-z0-9_-]{16,200}", rf"\1{MASK}"),
        (r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[^\s\"'<>]{1,500}", rf"\1{MASK}"),
    )
)


class Redactor:
    """`secrets`: texts that must not be seen, whatever stands around them."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _written(secret)}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._known = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def value(self, value: Any) -> Any:
        """JSON values. Names stay; what a secret name holds is masked whole."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                str(name): _masked(each) if is_secret_name(str(name)) else self.value(each)
                for name, each in value.items()
            }
        if isinstance(value, Sequence):
            return [self.value(each) for each in value]
        return value

    def text(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(MASK, text)
        for pattern, instead in _LOOKS:
            text = pattern.sub(instead, text)
        return _PAIR.sub(_masked_pair, _TO_LINE_END.sub(rf"\1\2{MASK}", text))


def _written(secret: str) -> set[str]:
    """As it may stand in a text: plainly, in JSON, in a URL."""
    return {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], quote(secret, safe="")}


def _masked_pair(match: re.Match[str]) -> str:
    name, sign, *values = match.groups()
    if not is_secret_name(name):
        return match[0]
    mark = '"' if values[0] is not None else "'" if values[1] is not None else ""
    return f"{name}{sign}{mark}{MASK}{mark}"


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _masked(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_masked(each) for each in value]
    return value if value is None or isinstance(value, bool) or value == "" else MASK


def named_secrets(value: Any) -> Iterator[str]:
    """Texts that are called a secret, anywhere in a JSON value."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _texts(each) if is_secret_name(str(name)) else named_secrets(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from named_secrets(each)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from _texts(each)


def hidden_by_masks(plain: Any, masked: Any) -> Iterator[str]:
    """What masks hide: both are the same JSON value, once as it is stored and once as it is shown."""
    if isinstance(masked, str) and MASK in masked:
        if isinstance(plain, str):
            around = map(re.escape, masked.split(MASK))
            match = re.fullmatch("(.*?)".join(around), plain, re.DOTALL)
            yield from (plain,) if match is None else (each for each in match.groups() if each)
        else:
            yield from _texts(plain)
    elif isinstance(masked, Mapping) and isinstance(plain, Mapping):
        for name, each in masked.items():
            yield from hidden_by_masks(plain.get(name), each)
    elif isinstance(masked, list | tuple) and isinstance(plain, list | tuple):
        for one, other in zip(plain, masked, strict=False):
            yield from hidden_by_masks(one, other)
