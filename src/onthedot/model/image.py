"""Names of container images, and which of them an operator allows. Pure.

A name has many spellings: `alpine`, `library/alpine` and `index.docker.io/library/alpine:latest` are one image. What is
judged is the full name, and that is also what an engine is asked for: given `deadbeef`, an engine looks for an image
whose id begins like that, whatever registry it came from.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import msgspec

__all__ = ["ACCEPTED_IMAGES", "ImageName", "ImageRule"]

ACCEPTED_IMAGES = "the name of an image, such as alpine:3.20 or registry.example/team/app@sha256:…"
_DEFAULT_REGISTRY, _OFFICIAL, _LATEST = "docker.io", "library", "latest"
_OTHER_NAMES = {"index.docker.io": _DEFAULT_REGISTRY, "registry-1.docker.io": _DEFAULT_REGISTRY}
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_REGISTRY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-f:.]+\])(?::[0-9]{{1,5}})?", re.ASCII)
_PART = r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*"
_PATH = re.compile(rf"{_PART}(?:/{_PART})*", re.ASCII)
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-f]{32,128}", re.ASCII)
_LONGEST = 255
_WILD = re.compile(r"[*?\[]")


class ImageName(msgspec.Struct, frozen=True):
    """One of `tag` and `digest` is set. A digest says exactly which image is meant, and a tag beside it is not read by
    engines: it is left out, so that it can't be what allows the image."""

    registry: str
    path: str
    tag: str | None
    digest: str | None

    @classmethod
    def parse(cls, text: str) -> ImageName:
        """ValueError if it is no name of an image."""
        registry, path, tag, digest = _split(text)
        fits = (
            len(path) <= _LONGEST
            and _REGISTRY.fullmatch(registry)
            and _PATH.fullmatch(path)
            and (tag is None or _TAG.fullmatch(tag))
            and (digest is None or _DIGEST.fullmatch(digest))
        )
        if not fits:
            raise ValueError(f"{text[:300]!r} is not {ACCEPTED_IMAGES}")
        return cls(registry, path, (tag or _LATEST) if digest is None else None, digest)

    @property
    def repository(self) -> str:
        return f"{self.registry}/{self.path}"

    def __str__(self) -> str:
        return f"{self.repository}:{self.tag}" if self.digest is None else f"{self.repository}@{self.digest}"


class ImageRule(msgspec.Struct, frozen=True):
    """Images that are allowed: `registry.example/*`, `python:3.*`. Without a tag or digest, all of them are. `*` stands
    for any text, also with slashes, but not for parts of two fields: in a registry it does not reach into the path."""

    registry: str
    path: str
    tag: str | None
    digest: str | None

    @classmethod
    def parse(cls, text: str) -> ImageRule:
        """ValueError if it could never match."""
        if text == "*":
            return cls("*", "*", None, None)
        registry, path, tag, digest = _split(text)
        # A digit is as good in a port as in a name.
        example = [_WILD.sub("1", part).replace("]", "1") for part in (registry, path)]
        if not _REGISTRY.fullmatch(example[0]) or not _PATH.fullmatch(example[1]) or tag == "" or digest == "":
            raise ValueError(f"{text[:300]!r} is not a pattern such as registry.example/* or python:3.*")
        return cls(registry, path, tag, digest)

    def allows(self, image: ImageName) -> bool:
        if not fnmatchcase(image.registry, self.registry) or not fnmatchcase(image.path, self.path):
            return False
        if self.digest is not None:
            return image.digest is not None and fnmatchcase(image.digest, self.digest)
        if self.tag is not None:
            return image.tag is not None and fnmatchcase(image.tag, self.tag)
        return True


def _split(text: str) -> tuple[str, str, str | None, str | None]:
    """Registry, path, tag and digest, as Docker reads them."""
    rest, at, after = text.partition("@")
    digest = after if at else None
    first, slash, more = rest.partition("/")
    if slash and ("." in first or ":" in first or first.lower() != first or first == "localhost"):
        registry, rest = first.lower(), more
    else:
        registry = _DEFAULT_REGISTRY
    registry = _OTHER_NAMES.get(registry, registry)
    folder, slash, last = rest.rpartition("/")
    name, colon, tag = last.partition(":")
    path = f"{folder}{slash}{name}"
    if registry == _DEFAULT_REGISTRY and "/" not in path:
        path = f"{_OFFICIAL}/{path}"
    return registry, path, tag if colon else None, digest
