"""What a check of `onthedot doctor` reports."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Finding", "ok", "warning", "wrong"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    state: Literal["ok", "warning", "wrong"]
    subject: str
    found: str
    advice: str | None = None


def ok(subject: str, found: str) -> Finding:
    return Finding(state="ok", subject=subject, found=found)


def warning(subject: str, found: str, advice: str) -> Finding:
    return Finding(state="warning", subject=subject, found=found, advice=advice)


def wrong(subject: str, found: str, advice: str) -> Finding:
    return Finding(state="wrong", subject=subject, found=found, advice=advice)
