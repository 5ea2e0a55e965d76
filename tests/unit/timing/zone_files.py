"""The compiled zone files that the product's rules come from."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable


def zone_file(zone: str) -> Traversable:
    return resources.files("tzdata.zoneinfo").joinpath(*zone.split("/"))
