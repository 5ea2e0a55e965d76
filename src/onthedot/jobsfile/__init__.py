"""Reads a jobs file (.json, .yaml, .toml) into job specs, or reports every problem with file, line and field.

Two forms of a job can be mixed: the short form (`identifier`, `path`, `function_name`, `periodicity` …) and the full
form, as in the API. A file with an error is not applied at all.

The top-level field `source` names the owner of the file's jobs. It defaults to the file name, which another file on the
same database may share.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from onthedot.clock import SystemClock
from onthedot.errors import FieldProblem, Invalid, SettingsError, Unreadable
from onthedot.jobsfile.positions import line_of, lines_of
from onthedot.jobsfile.reading import loose
from onthedot.jobsfile.short_form import WRITTEN_AS, from_short_form, is_short_form
from onthedot.model.checks import check_spec
from onthedot.model.decoding import convert
from onthedot.model.job import JobSpec
from onthedot.model.unstorable import MOST_PROBLEMS
from onthedot.settings import EXTENSIONS, CommandSetting, read_commands
from onthedot.timing import check_schedule

__all__ = ["JobsFile", "parse_jobs", "read_jobs_file"]

TOP_LEVEL = ("jobs", "commands", "source")
LONGEST_SOURCE = 200
LONGEST_ORIGIN = 1000
MOST_BYTES = 16 * 2**20


class JobsFile(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a jobs file. `source` names the owner of its jobs; `named`: it was set explicitly."""

    name: str
    source: str
    named: bool = False
    directory: Path
    specs: list[JobSpec]
    commands: dict[str, CommandSetting]
    text: str
    extension: str
    short: frozenset[int] = frozenset()  # the indexes of jobs in short form

    @property
    def origin(self) -> str | None:
        """Host and path of the file, if the source is only its name; None if the source was set explicitly."""
        return None if self.named else f"{platform.node()}:{self.directory / self.name}"[-LONGEST_ORIGIN:]

    @property
    def former(self) -> str | None:
        """The source of its jobs before one was set explicitly; those jobs still belong to the file."""
        return self.name if self.source != self.name else None

    def located(self, invalid: Invalid) -> Invalid:
        """The same problems with file, line and the file's own field names; for problems found after reading."""
        return _located(invalid.problems, self.name, self.text, self.extension, self.short)


def read_jobs_file(
    path: Path | str, extensions: Sequence[str] = EXTENSIONS, *, single: bool = False, source: str | None = None
) -> JobsFile:
    """Read and validate a file. Raises Unreadable, or Invalid with every problem at once.

    `single`: the file may contain a single job, and jobs need no key (for `jobs add`). `source` overrides the file's.
    """
    path = Path(path)
    extension = path.suffix.lower().lstrip(".")
    if extension not in extensions:
        accepted = ", ".join(f".{name}" for name in extensions)
        raise Unreadable(f"{path}: not a supported file type. Accepted: {accepted} (setting SUPPORTED_EXTENSIONS)")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise Unreadable(f"{path}: larger than {MOST_BYTES // 2**20} MiB, the maximum for a jobs file")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise Unreadable(f"{path}: can't be read: {error.strerror}") from None
    return parse_jobs(text, extension, path, single=single, source=source)


def parse_jobs(
    text: str, extension: str, path: Path | str = "jobs", *, single: bool = False, source: str | None = None
) -> JobsFile:
    path = Path(path)
    problems: list[FieldProblem] = []
    document = loose(text, extension, path.name)
    alone = single and isinstance(document, dict) and "jobs" not in document
    items = [document] if alone else _items(document, problems)
    places = [""] if alone else [f"jobs[{place}]" for place in range(len(items))]
    specs: list[JobSpec | None] = []
    for item, place in zip(items, places, strict=True):
        specs.append(_spec(item, place, problems, keyed=not single))
        if len(problems) > MOST_PROBLEMS:
            break
    short = frozenset(place for place, item in enumerate(items) if is_short_form(item))
    problems.extend(_repeated(items))
    commands = {} if alone else _commands(document, problems)
    chosen = source or (None if alone else _source(document, problems))
    if extension != "toml":
        problems.extend(_written_twice(text, extension))
    if problems:
        raise _located(problems, path.name, text, extension, short)
    directory = path.parent.resolve()
    return JobsFile(
        name=path.name,
        source=chosen or path.name,
        named=chosen is not None,
        directory=directory,
        specs=[spec for spec in specs if spec is not None],
        commands=commands,
        text=text,
        extension=extension,
        short=short,
    )


def _items(document: Any, problems: list[FieldProblem]) -> list[Any]:
    """`{"jobs": [...]}`, or the list alone."""
    if isinstance(document, list):
        return document
    if not isinstance(document, dict):
        problems.append(FieldProblem(path="jobs", message="required field is missing", accepted='{"jobs": [...]}'))
        return []
    problems.extend(
        FieldProblem(path=str(name), message="unknown field", accepted=", ".join(TOP_LEVEL))
        for name in document
        if name not in TOP_LEVEL
    )
    items = document.get("jobs")
    if isinstance(items, list):
        return items
    message = "required field is missing" if items is None else "must be a list"
    problems.append(FieldProblem(path="jobs", message=message, accepted="a list of jobs"))
    return []


def _spec(item: Any, path: str, problems: list[FieldProblem], *, keyed: bool) -> JobSpec | None:
    try:
        spec = from_short_form(item, path) if is_short_form(item) else convert(item, JobSpec, path=path)
    except Invalid as invalid:
        problems.extend(invalid.problems)
        return None
    inside = f"{path}." if path else ""
    if spec.key is None and keyed:
        accepted = "a unique key, so that reloading the file finds the job"
        problems.append(FieldProblem(path=f"{inside}key", message="required in a jobs file", accepted=accepted))
    found: list[FieldProblem] = []
    try:
        check_spec(spec)
    except Invalid as invalid:
        found.extend(invalid.problems)
    try:  # a time in the past is an error only in a changed job, which only the store can tell
        check_schedule(spec.schedule, now=SystemClock().now_ms(), changed=False)
    except Invalid as invalid:
        found.extend(invalid.problems)
    problems.extend(msgspec.structs.replace(problem, path=f"{inside}{problem.path}") for problem in found)
    return spec


def _repeated(items: list[Any]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    first: dict[str, int] = {}
    for place, item in enumerate(items):
        name = "identifier" if is_short_form(item) else "key"
        key = item.get(name) if isinstance(item, dict) else None
        if not isinstance(key, str):
            continue
        if key in first:
            message = f"duplicate: jobs[{first[key]}] has the same {name}"
            problems.append(
                FieldProblem(path=f"jobs[{place}].{name}", message=message, given=key, accepted=f"a unique {name}")
            )
        first.setdefault(key, place)
    return problems


def _commands(document: Any, problems: list[FieldProblem]) -> dict[str, CommandSetting]:
    if not isinstance(document, dict) or "commands" not in document:
        return {}
    try:
        return read_commands(document["commands"])
    except SettingsError as error:
        problems.append(FieldProblem(path="commands", message=str(error).removeprefix("commands: ")))
        return {}


def _source(document: Any, problems: list[FieldProblem]) -> str | None:
    if not isinstance(document, dict) or "source" not in document:
        return None
    given = document["source"]
    if isinstance(given, str) and 0 < len(given) <= LONGEST_SOURCE and given.isprintable():
        return given
    accepted = f"printable text of 1 to {LONGEST_SOURCE} characters"
    problems.append(FieldProblem(path="source", message="not a valid source name", given=given, accepted=accepted))
    return None


def _written_twice(text: str, extension: str) -> list[FieldProblem]:
    """JSON and YAML parsers silently keep the last of two equal names; here that is an error."""
    seen: set[str] = set()
    problems = []
    for path, _ in lines_of(text, extension):
        if path in seen:
            problems.append(FieldProblem(path=path, message="duplicate field"))
        seen.add(path)
    return problems


def _located(problems: Sequence[FieldProblem], name: str, text: str, extension: str, short: frozenset[int]) -> Invalid:
    lines: dict[str, int] = {}
    for path, number in lines_of(text, extension):
        lines.setdefault(path, number)
    found = []
    for problem in problems[:MOST_PROBLEMS]:
        # one that was not known stands in the file as it is: `key` in a job in short form is not its `identifier`
        path = problem.path if problem.message == "unknown field" else _as_written(problem.path, short)
        line = line_of(path, lines) or line_of(path.removeprefix("jobs"), lines)  # the latter for a list alone
        place = name if line is None else f"{name}:{line}"
        found.append(msgspec.structs.replace(problem, path=f"{place}: {path}"))
    if len(problems) > MOST_PROBLEMS:
        found.append(FieldProblem(path=name, message=f"more errors not shown: these are the first {MOST_PROBLEMS}"))
    return Invalid(found)


def _as_written(path: str, short: frozenset[int]) -> str:
    """`jobs[0].schedule.every` of a job in short form is `jobs[0].periodicity` in the file."""
    item, _, field = path.partition("].")
    place = item.removeprefix("jobs[")
    if field and place.isdigit() and int(place) in short:
        return f"{item}].{WRITTEN_AS.get(field, field)}"
    return path
