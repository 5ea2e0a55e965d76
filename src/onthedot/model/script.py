"""Scripts that were uploaded, known by what is in them: two that are equal are one."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated

import msgspec

from onthedot.model.struct import Strict

__all__ = ["LONGEST_CODE", "SCRIPT_ID", "ScriptDetail", "ScriptUpload", "ScriptView", "object_name", "script_id"]

LONGEST_CODE = 1 << 20
"""Bytes of an uploaded script, as UTF-8."""

SCRIPT_ID = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)


class ScriptUpload(Strict, frozen=True, kw_only=True):
    code: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST_CODE)]
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


class ScriptView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str | None
    size: int  # bytes
    created_at: str


class ScriptDetail(ScriptView, frozen=True, kw_only=True):
    """`jobs`: some of the jobs that use it and have not ended."""

    jobs: list[str]
    code: str


def script_id(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def object_name(tenant: int, script: str) -> str:
    """Where the object store has it. Tenants share nothing, not even what is equal."""
    return f"scripts/{tenant}/{script.removeprefix('sha256:')}"
