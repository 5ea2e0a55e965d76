"""A kind of target: `notes` appends a line to a file in the directory that the operator configured."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from onthedot.errors import FieldProblem
from onthedot.targets import Call, Flag, Kind, Outcome, Profile, TargetSpec, TargetSummary, from_coroutine


class NotesTarget(TargetSpec, frozen=True, kw_only=True, tag="notes"):
    """What a job says: {"type": "notes", "file": "diary", "line": "good morning"}."""

    flags: ClassVar[tuple[Flag, ...]] = (Flag("file", "Notes: file to write to"), Flag("line", "Notes: text to add"))

    file: str
    line: str

    def problems(self) -> Iterator[FieldProblem]:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,50}", self.file):
            yield FieldProblem(path="target.file", message="not a file name", accepted="letters, digits, - and _")

    def summary(self) -> TargetSummary:
        return TargetSummary("notes", self.file, f"notes {self.file}")


class NotesSettings(msgspec.Struct, forbid_unknown_fields=True):
    """What the operator says: the table [targets.notes] in onthedot.toml."""

    directory: str


spec = NotesTarget


def kind(settings: dict[str, Any]) -> Kind:
    directory = Path(msgspec.convert(settings, NotesSettings).directory)

    async def send(call: Call) -> Outcome:
        target = call.target
        assert isinstance(target, NotesTarget)
        path = directory / f"{target.file}.txt"
        length = await asyncio.to_thread(append, path, target.line)
        call.log(f"{path} has {length} bytes now\n")
        return Outcome(kind="ok", detail={"bytes": length})

    return from_coroutine(send, spec=NotesTarget, profile=Profile(capacity=10))


def append(path: Path, line: str) -> int:
    with path.open("a") as file:
        file.write(f"{line}\n")
        return file.tell()
