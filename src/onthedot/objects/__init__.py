"""The object store: named bytes that are too large for rows, in a directory or in S3."""

from __future__ import annotations

from pathlib import Path

from onthedot.objects.contract import ObjectStore
from onthedot.objects.directory import DirectoryObjects

__all__ = ["ObjectStore", "open_objects"]


def open_objects(place: str) -> ObjectStore:
    """The store at a directory, or at `s3://bucket/prefix`. Nothing is read or made before the first object is."""
    if place.startswith("s3://"):
        from onthedot.objects.s3 import S3Objects  # loads its client, which is an extra

        return S3Objects.at(place)
    return DirectoryObjects(Path(place))
