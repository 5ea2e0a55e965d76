"""What of a target nobody is shown: its signing secret, headers and parts of its URL that hold secrets by their name.

They read back as the mask, for every scope. The mask sent back means the secret there is; where there is none, it is an
error: nobody means six dots.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote_plus

import msgspec

from onthedot.errors import FieldProblem, Invalid
from onthedot.model.target import MASK, Target, WebhookTarget

__all__ = ["is_secret_name", "kept", "mask_problems", "masked", "masked_url"]

_NAMES = re.compile(
    r"authorization|cookie|token|secret|passw|pwd|credential|signature"
    r"|(?:api|access|auth|subscription|functions?|private|client|shared)[-_]?key|^x-auth(?:$|-)|^auth$|^sig$",
    re.IGNORECASE,
)
_PASSWORD = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://[^/?#@:]*):[^/?#@]*@")
_MASKS = (MASK, quote(MASK), quote(MASK).lower())
_ACCEPTED = "the secret itself; the mask only where there is one already"


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Does what is called so hold a secret? "Authorization", "X-Api-Key", "session-token" do."""
    return _NAMES.search(name) is not None


def masked(target: Target) -> Target:
    """As it is shown."""
    if not isinstance(target, WebhookTarget):
        return target
    if target.secret is None and not target.headers and not _may_hide(target.url):
        return target
    return msgspec.structs.replace(
        target,
        url=masked_url(target.url),
        headers={name: MASK if is_secret_name(name) else value for name, value in target.headers.items()},
        secret=None if target.secret is None else MASK,
    )


def masked_url(url: str) -> str:
    if not _may_hide(url):
        return url
    url = _PASSWORD.sub(rf"\1:{MASK}@", url)
    before, mark, query, fragment = _split(url)
    pairs = [_Pair.read(text) for text in query.split("&")]
    return before + mark + "&".join(pair.lead + MASK if pair.hides else pair.text for pair in pairs) + fragment


def mask_problems(target: Target) -> list[FieldProblem]:
    """Masks in a target that replaces nothing, or nothing that had these."""
    if not isinstance(target, WebhookTarget):
        return []
    if target.secret is None and not target.headers and "?" not in target.url:
        return []
    paths = [f"target.headers.{name}" for name, value in target.headers.items() if _is_mask(name, value)]
    if target.secret == MASK:
        paths.append("target.secret")
    if "?" in target.url and any(pair.is_mask for pair in _pairs(target.url)):
        paths.append("target.url")
    return [FieldProblem(path=path, message="this is the mask, not a secret", accepted=_ACCEPTED) for path in paths]


def kept(new: Target, old: Target) -> Target:
    """With the old one's secrets in place of masks. Invalid where there is no such secret."""
    if not mask_problems(new):
        return new
    assert isinstance(new, WebhookTarget)
    if isinstance(old, WebhookTarget):
        new = _filled(new, old)
    if problems := mask_problems(new):
        raise Invalid(problems)
    return new


def _filled(new: WebhookTarget, old: WebhookTarget) -> WebhookTarget:
    known = {name.lower(): value for name, value in old.headers.items()}
    headers = {
        name: known.get(name.lower(), value) if _is_mask(name, value) else value for name, value in new.headers.items()
    }
    secret = old.secret if new.secret == MASK and old.secret is not None else new.secret
    return msgspec.structs.replace(new, headers=headers, secret=secret, url=_filled_url(new.url, old.url))


def _filled_url(new: str, old: str) -> str:
    """Only at the same place: a secret in a URL is that place's own."""
    before, mark, query, fragment = _split(new)
    if _place(new) != _place(old) or not query:
        return new
    known: dict[str, list[str]] = {}
    for pair in reversed(_pairs(old)):
        known.setdefault(pair.name, []).append(pair.text)
    texts = []
    for pair in (_Pair.read(text) for text in query.split("&")):
        there = known.get(pair.name)
        text = there.pop() if there else pair.text
        texts.append(text if pair.is_mask else pair.text)
    return before + mark + "&".join(texts) + fragment


def _is_mask(name: str, value: str) -> bool:
    return value == MASK and is_secret_name(name)


def _may_hide(url: str) -> bool:
    return "?" in url or "@" in url


def _split(url: str) -> tuple[str, str, str, str]:
    """What is before the query, "?", the query, and the fragment with its "#"."""
    whole, sharp, fragment = url.partition("#")
    before, mark, query = whole.partition("?")
    return before, mark, query, sharp + fragment


def _place(url: str) -> str:
    return url.partition("?")[0].partition("#")[0].partition("://")[2].partition("/")[0].lower()


class _Pair(msgspec.Struct, frozen=True):
    """One "name=value" of a query."""

    text: str
    lead: str  # with its "="
    name: str
    value: str

    @classmethod
    def read(cls, text: str) -> _Pair:
        name, sign, value = text.partition("=")
        return cls(text, name + sign, unquote_plus(name), value)

    @property
    def hides(self) -> bool:
        return bool(self.value) and is_secret_name(self.name)

    @property
    def is_mask(self) -> bool:
        return self.value in _MASKS and is_secret_name(self.name)


def _pairs(url: str) -> list[_Pair]:
    return [_Pair.read(text) for text in _split(url)[2].split("&")]
