"""What of a target nobody is shown: the fields it calls secret, and headers and parts of URLs that are by their name.

They read back as the mask, for every scope. The mask sent back means the secret there is; where there is none, it is an
error: nobody means six dots.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import msgspec

from onthedot.errors import FieldProblem, Invalid
from onthedot.model.accepted import basic, members
from onthedot.model.secret_text import MASK, filled_url, has_masks, is_secret_name, masked_url
from onthedot.model.targets import OpaqueTarget, Target, TargetSpec

__all__ = ["kept", "mask_problems", "masked"]

_SPACE = re.compile(r"\s")
_ACCEPTED = "the secret itself; the mask only where there is one already"


@lru_cache(maxsize=64)
def _shape(kind: type[TargetSpec]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The fields of a kind that map names to text, those that are text, and those that are lists of text."""
    types = {field.name: [basic(member) for member in members(field.type)] for field in msgspec.structs.fields(kind)}
    maps = tuple(name for name, found in types.items() if dict[str, str] in found)
    texts = tuple(name for name, found in types.items() if str in found and name not in kind.plain_fields)
    return maps, texts, tuple(name for name, found in types.items() if list[str] in found)


def masked(target: Target) -> Target:
    """As it is shown."""
    if not isinstance(target, TargetSpec):
        assert isinstance(target, OpaqueTarget)
        return target.masked()
    maps, texts, lists = _shape(type(target))
    shown: dict[str, Any] = {}
    for name in maps:
        if values := getattr(target, name):
            shown[name] = {key: MASK if is_secret_name(key) else _shown_value(value) for key, value in values.items()}
    for name in texts:
        if (text := getattr(target, name)) and ("?" in text or "@" in text) and "://" in text:
            shown[name] = masked_url(text)
    for name in lists:
        if (values := getattr(target, name)) and (entries := [_shown_value(value) for value in values]) != values:
            shown[name] = entries
    for name in target.secret_fields():
        if value := getattr(target, name):
            shown[name] = _masks(value)
    return msgspec.structs.replace(target, **shown) if shown else target


def _shown_value(text: str) -> str:
    """Of a variable, a header or an argument: a URL is shown without its secrets. A text with spaces is none."""
    return masked_url(text) if "://" in text and not _SPACE.search(text) else text


def _masks(value: Any) -> Any:
    if isinstance(value, dict):
        return dict.fromkeys(value, MASK)
    return [MASK] * len(value) if isinstance(value, list) else MASK


def mask_problems(target: Target) -> list[FieldProblem]:
    """Masks in a target that replaces nothing, or nothing that had these."""
    if not isinstance(target, TargetSpec):
        return []
    maps, texts, lists = _shape(type(target))
    paths: list[str] = []
    for name in maps:
        if values := getattr(target, name):
            whole = name in target.secret_fields()
            paths += [
                f"target.{name}.{key}"
                for key, value in values.items()
                if _is_mask(key, value, whole) or has_masks(value)
            ]
    urls: list[str] = []
    for name in texts:
        if text := getattr(target, name):
            if text == MASK and name in target.secret_fields():
                paths.append(f"target.{name}")
            elif has_masks(text):
                urls.append(f"target.{name}")
    for name in lists:
        whole = name in target.secret_fields()
        for place, value in enumerate(getattr(target, name) or ()):
            if (value == MASK) if whole else has_masks(value):
                paths.append(f"target.{name}[{place}]")
    paths += urls
    return [FieldProblem(path=path, message="this is the mask, not a secret", accepted=_ACCEPTED) for path in paths]


def kept(new: Target, old: Target) -> Target:
    """With the old one's secrets in place of masks. Invalid where there is no such secret."""
    if not isinstance(new, TargetSpec) or not mask_problems(new):
        return new
    if isinstance(old, type(new)):
        new = _filled(new, old)
    if problems := mask_problems(new):
        raise Invalid(problems)
    return new


def _filled(new: TargetSpec, old: TargetSpec) -> TargetSpec:
    maps, texts, lists = _shape(type(new))
    secret = new.secret_fields()
    filled: dict[str, Any] = {}
    for name in maps:
        known = {key.lower(): value for key, value in getattr(old, name).items()}
        filled[name] = {
            key: known.get(key.lower(), value)
            if _is_mask(key, value, name in secret)
            else filled_url(value, known.get(key.lower(), ""))
            for key, value in getattr(new, name).items()
        }
    for name in texts:
        text, before = getattr(new, name), getattr(old, name)
        if text is not None and before is not None:
            filled[name] = before if name in secret and text == MASK else filled_url(text, before)
        elif text == MASK and name in secret:
            filled[name] = old.secret_for(name, 0) or MASK
    for name in lists:
        values, before = getattr(new, name) or [], getattr(old, name) or []
        if name in secret and values:
            filled[name] = [
                (old.secret_for(name, place) or MASK) if value == MASK else value for place, value in enumerate(values)
            ]
        elif values:
            pairs = zip_longest(values, before[: len(values)], fillvalue="")
            filled[name] = [filled_url(value, present) for value, present in pairs]
    return msgspec.structs.replace(new, **filled)


def _is_mask(name: str, value: str, whole: bool) -> bool:
    return value == MASK and (whole or is_secret_name(name))
