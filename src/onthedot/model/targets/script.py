"""Scripts of users, run in a sandbox."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.field_note import FieldNote
from onthedot.model.script import SCRIPT_ID
from onthedot.model.size import ACCEPTED_SIZES, format_size, read_size
from onthedot.model.targets.spec import Flag, TargetSpec, TargetSummary

__all__ = ["ScriptTarget", "script_named_in"]

LONGEST_INLINE = 64 * 1024
LEAST_MEMORY = 16 << 20
MOST_ARGS, LONGEST_ARG, MOST_ENV = 100, 4096, 100
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}", re.ASCII)
_RESERVED = re.compile(r"ONTHEDOT_.*|LD_.*|GLIBC_TUNABLES", re.ASCII)
_ENDS = re.compile(r"[^\w.-]")


class ScriptTarget(TargetSpec, frozen=True, kw_only=True, tag="script"):
    notes: ClassVar[Mapping[str, FieldNote]] = {
        "code": FieldNote("The script itself, up to 64 KB.", {"code": "print('hello')"}),
        "script": FieldNote(
            "The ID of an uploaded script, instead of `code`.", {"script": "sha256:" + "0123456789abcdef" * 4}
        ),
        "interpreter": FieldNote("The name of an interpreter that the operator listed.", {"interpreter": "python"}),
        "args": FieldNote("Command-line arguments.", {"args": ["--verbose"]}),
        "env": FieldNote("Environment variables.", {"env": {"MODE": "fast"}}),
        "network": FieldNote("Whether it may use the network, if the operator allows that.", {"network": True}),
        "memory": FieldNote("The memory limit.", {"memory": "512M"}),
        "cpus": FieldNote("The number of CPUs.", {"cpus": 0.5}),
    }
    flags: ClassVar[tuple[Flag, ...]] = (
        Flag("code", "Script: file with the code to run in a sandbox", ("--script",), file=True),
        Flag("interpreter", "Script: interpreter [default: python]"),
        Flag("memory", "Script: memory limit [default: 256M]"),
        Flag("cpus", "Script: number of CPUs [default: 1]"),
        Flag("network", "Script: allow network access, true or false [default: false]"),
        Flag("script", "Script: id of an uploaded script, sha256:…", ("--script-id",), chooses=True),
    )

    plain_fields: ClassVar[tuple[str, ...]] = ("code",)

    code: Annotated[str, msgspec.Meta(max_length=LONGEST_INLINE)] | None = None
    script: Annotated[str, msgspec.Meta(max_length=71)] | None = None  # the id of an uploaded one
    interpreter: Annotated[str, msgspec.Meta(max_length=100)] = "python"
    args: Annotated[list[str], msgspec.Meta(max_length=MOST_ARGS)] = msgspec.field(default_factory=list)
    env: dict[str, str] = msgspec.field(default_factory=dict)
    network: bool = False
    memory: Annotated[str, msgspec.Meta(max_length=20)] = "256M"
    cpus: Annotated[float, msgspec.Meta(ge=0.01, le=256)] = 1.0

    def capability(self) -> str:
        return f"script:{self.interpreter}{':network' if self.network else ''}"

    def scripts(self) -> tuple[str, ...]:
        return () if self.script is None else (self.script,)

    @property
    def memory_bytes(self) -> int:
        return read_size(self.memory)

    def problems(self) -> Iterator[FieldProblem]:
        yield from self._code_problems()
        if not self.interpreter or _ENDS.search(self.interpreter):
            accepted = "the name of an interpreter, such as python"
            yield _problem("interpreter", "not a valid name", self.interpreter[:100], accepted)
        try:
            if self.memory_bytes < LEAST_MEMORY:
                yield _problem("memory", "too small", self.memory, f"at least {format_size(LEAST_MEMORY)}")
        except ValueError:
            yield _problem("memory", "not a valid size", self.memory, ACCEPTED_SIZES)
        for place, arg in enumerate(self.args):
            if len(arg) > LONGEST_ARG:
                yield _problem(f"args[{place}]", "too long", None, f"at most {LONGEST_ARG} characters")
        yield from self._env_problems()

    def _code_problems(self) -> Iterator[FieldProblem]:
        if (self.code is None) == (self.script is None):
            both = "can't be combined with target.code" if self.code is not None else None
            accepted = "exactly one of code (the script itself) and script (the ID of an uploaded one)"
            yield _problem("script", both or "required: code, or the ID of an uploaded script", None, accepted)
        elif self.script is not None and not SCRIPT_ID.fullmatch(self.script):
            yield _problem("script", "not a valid script ID", self.script, "sha256: and 64 hexadecimal digits")
        elif self.code is not None and not self.code.strip():
            yield _problem("code", "is empty", None, "the text of a script")
        elif self.code is not None and len(self.code.encode()) > LONGEST_INLINE:
            accepted = f"at most {LONGEST_INLINE // 1024} KiB; upload longer ones with POST /v1/scripts"
            yield _problem("code", "too long", None, accepted)

    def _env_problems(self) -> Iterator[FieldProblem]:
        if len(self.env) > MOST_ENV:
            yield _problem("env", "too many variables", None, f"at most {MOST_ENV}")
        for name, value in self.env.items():
            if not _VARIABLE.fullmatch(name):
                yield _problem(f"env.{name[:100]}", "not a valid name", name[:100], "letters, digits and _")
            elif _RESERVED.fullmatch(name):
                yield _problem(f"env.{name}", "reserved", None, "any name without the prefix ONTHEDOT_ or LD_")
            if len(value) > LONGEST_ARG:
                yield _problem(f"env.{name[:100]}", "too long", None, f"at most {LONGEST_ARG} characters")

    def summary(self) -> TargetSummary:
        if self.script is not None:
            what = f"{self.interpreter} {self.script[:19]}…"
        else:
            first = next((line.strip() for line in (self.code or "").splitlines() if line.strip()), "")
            what = f"{self.interpreter}: {first[:60]}"
        return TargetSummary("script", what, f"script {what}")

    @classmethod
    def how_to_offer(cls, name: str) -> str:
        interpreter, _, network = name.partition(":")
        if network:
            return "set network = true in [scripts] of a node's onthedot.toml, if scripts may use its network"
        return f"run `onthedot doctor` on a node: it says whether its sandbox works and {interpreter} is in [scripts]"


def script_named_in(patch: Any) -> str | None:
    """The id of the uploaded script that a change puts into a target. What is no id is refused with the rest."""
    named = patch.get("script") if isinstance(patch, dict) else None
    return named if isinstance(named, str) and SCRIPT_ID.fullmatch(named) else None


def _problem(field: str, message: str, given: str | None, accepted: str) -> FieldProblem:
    return FieldProblem(path=f"target.{field}", message=message, given=given, accepted=accepted)
