"""Names that say that something is secret, and URLs without the secrets in them."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote_plus

import msgspec

__all__ = ["MASK", "filled_url", "has_masks", "is_secret_name", "masked_url"]

MASK = "••••••"
"""What a secret reads back as. Sent back in an update it means: keep the secret there is."""

_NAMES = re.compile(
    r"authorization|cookie|token|secret|passw|passphrase|pwd|credential|signature|(?:^|[_-])pass$"
    r"|(?:api|access|auth|subscription|functions?|private|client|shared)[-_]?key|^x-auth(?:$|-)|^auth$|^sig$",
    re.IGNORECASE,
)
_PASSWORD = re.compile(r"^((?:[^\s=]+=)?[A-Za-z][A-Za-z0-9+.-]*://[^/?#@:]*):([^/?#]+)@")
"""Also of `--database=postgres://…`."""
_MASKS = (MASK, quote(MASK), quote(MASK).lower())


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Does what is called so hold a secret? "Authorization", "X-Api-Key", "session-token" do."""
    return _NAMES.search(name) is not None


def masked_url(url: str) -> str:
    if "?" not in url and "@" not in url:
        return url
    url = _PASSWORD.sub(rf"\1:{MASK}@", url)
    before, mark, query, fragment = _split(url)
    pairs = [_Pair.read(text) for text in query.split("&")]
    return before + mark + "&".join(pair.lead + MASK if pair.hides else pair.text for pair in pairs) + fragment


def has_masks(url: str) -> bool:
    """Whether a secret in it is the mask."""
    if "://" not in url:
        return False
    password = _PASSWORD.match(url)
    return (password is not None and password[2] in _MASKS) or ("?" in url and any(p.is_mask for p in _pairs(url)))


def filled_url(new: str, old: str) -> str:
    """With the old one's secrets in place of masks. Only at the same place: a secret in a URL is that place's own."""
    if _place(new) != _place(old):
        return new
    masked, present = _PASSWORD.match(new), _PASSWORD.match(old)
    if masked is not None and present is not None and masked[2] in _MASKS:
        new = f"{masked[1]}:{present[2]}{new[masked.end(2) :]}"
    before, mark, query, fragment = _split(new)
    if not query:
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


def _split(url: str) -> tuple[str, str, str, str]:
    """What is before the query, "?", the query, and the fragment with its "#"."""
    whole, sharp, fragment = url.partition("#")
    before, mark, query = whole.partition("?")
    return before, mark, query, sharp + fragment


def _place(url: str) -> str:
    """Where it leads, without the password."""
    url = _PASSWORD.sub(r"\1@", url)
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
