"""Taking secrets out of what leaves the house, such as an incident bundle. Pure.

Three ways, one after the other: values that are called a secret by their name; the secrets of the job itself, wherever
else they stand (a receiver may repeat them, a program may print them); and what looks like a credential in free text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from onthedot.model.secret_text import MASK, is_secret_name

__all__ = ["Redactor", "hidden_by_masks", "named_secrets"]

SHORTEST = 4
"""Characters. What is shorter is found in every other word."""

_TO_LINE_END = re.compile(
    r"(?im)(?<![\w-])((?:proxy-)?authorization|(?:set-)?cookie)([ \t]{0,4}[:=][ \t]{0,4})([^\n\"']+)"
)
_NAME = re.compile(r"(?:(?<![\w.-])|(?<=--))([A-Za-z_][\w.-]{1,80})\\{0,7}[\"']?[ \t]{0,4}(?:=>|[:=])[ \t]{0,4}")
_VALUE = re.compile(
    r"(\\{1,7}\")[^\"\n]{1,4000}?\1"  # JSON that stands in JSON as text
    r"|(\")(?:[^\"\\\n]|\\.){1,4000}\"|(')[^'\n]{1,4000}'|[^\s\"'&;,(){}\[\]<>|]{1,4000}"
)
_FLAG = re.compile(
    r"(?<![\w-])--([A-Za-z][\w-]{1,80})([ \t]{1,4})(?!-)(?:\"([^\"\n]{1,4000})\"|'([^'\n]{1,4000})'|([^\s\"']{1,4000}))"
)
_ELEMENT = re.compile(r"<([A-Za-z_][\w.:-]{1,80})>([^<>]{1,4000})(?=</)")
_LOOKS = tuple(
    (re.compile(pattern, re.DOTALL), instead)
    for pattern, instead in (
        (r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", MASK),
        (r"(://[^/\s:@\"']{0,200}):[^/\s@\"']{1,500}@", rf"\1:{MASK}@"),
        (r"(https?://)[^/\s:@\"'?#•]{8,500}@", rf"\1{MASK}@"),  # a user name alone is a token there
        (r"(?<![\w-])(-u|--user)([ =]\s{0,4}[\"']?[^\s:\"']{1,200}):[^\s\"']{1,500}", rf"\1\2:{MASK}"),
        (r"\b([Bb]earer|[Bb]asic)[ \t]+(?=\S*[0-9A-Z=_])[A-Za-z0-9._~+/=-]{6,4000}", rf"\1 {MASK}"),
        (r"\beyJ[A-Za-z0-9_-]{6,4000}\.[A-Za-z0-9_-]{6,4000}(?:\.[A-Za-z0-9_-]{1,4000})?", MASK),
        (r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b", MASK),
        (
            r"\b(?:otd_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|[sr]k_live_|[sr]k_test_|whsec_)[A-Za-z0-9_/+=-]{6,4000}",
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
            of_a_secret = _is_named_secret(value)
            return {
                str(name): _masked(each)
                if is_secret_name(str(name)) or (of_a_secret and name == "value")
                else self.value(each)
                for name, each in value.items()
            }
        if isinstance(value, Sequence):
            return self._list(value)
        return value

    def _list(self, values: Sequence[Any]) -> list[Any]:
        """A header as its name and value, and a flag before its value, are pairs, too."""
        pair = len(values) == 2 and isinstance(values[0], str) and is_secret_name(values[0])
        shown = []
        for nth, each in enumerate(values):
            before = values[nth - 1] if nth else None
            flag = isinstance(before, str) and before.startswith("-") and "=" not in before and is_secret_name(before)
            hidden = (pair and nth == 1) or (flag and not str(each).startswith("-"))
            shown.append(_masked(each) if hidden else self.value(each))
        return shown

    def text(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(MASK, text)
        for pattern, instead in _LOOKS:
            text = pattern.sub(instead, text)
        text = _with_pairs_masked(_TO_LINE_END.sub(rf"\1\2{MASK}", text))
        return _ELEMENT.sub(_masked_element, _FLAG.sub(_masked_flag, text)) if "--" in text or "</" in text else text


def _written(secret: str) -> set[str]:
    """As it may stand in a text: plainly, in JSON, in a URL."""
    in_json = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    return {secret, *in_json, quote(secret, safe=""), quote_plus(secret)}


def _with_pairs_masked(text: str) -> str:
    """`password=x` and its like. What follows a name that is no secret's is looked through, too: url=http://h?token=x."""
    parts, told, at = [], 0, 0
    while (name := _NAME.search(text, at)) is not None:
        at = name.end()
        if is_secret_name(name[1]) and (value := _VALUE.match(text, at)) is not None:
            mark = value[value.lastindex] if value.lastindex else ""
            parts += [text[told:at], mark, MASK, mark]
            told = at = value.end()
    return "".join([*parts, text[told:]])


def _masked_flag(match: re.Match[str]) -> str:
    name, space, double, single, _ = match.groups()
    mark = '"' if double is not None else "'" if single is not None else ""
    return f"--{name}{space}{mark}{MASK}{mark}" if is_secret_name(name) else match[0]


def _masked_element(match: re.Match[str]) -> str:
    return f"<{match[1]}>{MASK}" if is_secret_name(match[1]) else match[0]


def _is_named_secret(value: Mapping[Any, Any]) -> bool:
    """{"name": "DB_PASSWORD", "value": …}, as containers have their environment."""
    name = value.get("name", value.get("key"))
    return "value" in value and isinstance(name, str) and is_secret_name(name)


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _masked(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_masked(each) for each in value]
    return value if value is None or isinstance(value, bool) or value == "" else MASK


def named_secrets(value: Any) -> Iterator[str]:
    """Texts that are called a secret, anywhere in a JSON value."""
    if isinstance(value, Mapping):
        of_a_secret = _is_named_secret(value)
        for name, each in value.items():
            hidden = is_secret_name(str(name)) or (of_a_secret and name == "value")
            yield from _texts(each) if hidden else named_secrets(each)
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
