"""Named statements: `-- name: lock_job` starts one, in any `.sql` file of a dialect's `queries` folder.

`{now}` stands for the database's clock in ms, `{now_us}` in µs, `{of_job r j.id}` for "this row of `r` is a run of that
job", `{columns NewRun}` and its like for rows with names (see `shapes`), `{NEVER}` and other words in capitals for what
`plan` and `model` call so. `{part due}` is the text after `-- part: due`: what several statements of a dialect share.

A statement may hold `{where}`, `{order}` … places, and a fragment is a statement named `place.name` (`where.tag`):
asking for `list_jobs+where.tag+where.state` puts the fragments into their places (several in `where` are joined with
AND). Each part counts its own parameters from 1; the arguments of all parts follow each other in the order of the
parts. So a list with any set of filters is built of fixed text, and no value is ever formatted into SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources

from onthedot.model.alerts import NO_ALERTING
from onthedot.model.duration import HOUR, MINUTE
from onthedot.model.histogram import BOUNDS
from onthedot.model.instant import NEVER
from onthedot.model.run import ASKED_KINDS
from onthedot.plan import FIRINGS, LOOKAHEAD_MS
from onthedot.plan.groups import TURN_MS
from onthedot.plan.outcome import OVERDUE_MS
from onthedot.plan.shares import BACKLOG_MS
from onthedot.store.shapes import fill_in

__all__ = ["DUTY_MS", "LATE_MS", "LOG_LIMIT", "LONGEST_PROCESS", "MOVED_MARK", "PAGE_BYTES", "SMALL_BYTES", "Queries"]

NAME_NOTED_MS = HOUR
"""How exactly it is known when a node was last there, once it is gone: its name is not written with each look."""
DUTY_MS = 15_000
"""How long a duty is somebody's who does not renew it."""

LOG_LIMIT = 65_536
"""Characters that are kept of what the attempts of a run print: the last ones."""

PAGE_BYTES = 8 * 1024 * 1024
"""A page ends with the item that makes it as large as this: five hundred jobs may be half a gigabyte."""

SMALL_BYTES = PAGE_BYTES // 512
"""What is no larger is read with its row, and the longest page of such rows is no larger than any other. What is larger
is read after that, as far as the page holds it."""

FULL = 64
"""So many runs that may be held ahead are claimed without waiting for more of them."""

LONGEST_PROCESS = 50
"""Characters of `<pid>@<host>`, by which the connections of a node are found."""

MOVED_MARK = 999_999_999
"""The number of the row in `meta` that keeps every version from serving a store that is being moved, or was (see
`moving.marks`): for one that knows nothing of it, it is a migration of a newer version that it can't live with."""

LATE_MS = 1000
"""A run that begins later than this after its instant is late, and so is a job whose last or next run is."""

COUNTED = 1000
"""Runs that wait for one destination or group are counted so far."""

_WORDS = {
    "ASKED_KINDS": "({})".format(", ".join(f"'{kind}'" for kind in ASKED_KINDS)),
    "NEVER": str(NEVER),
    "BACKLOG_MS": str(BACKLOG_MS),
    "DUTY_MS": str(DUTY_MS),
    "NAME_NOTED_MS": str(NAME_NOTED_MS),
    "FIRINGS": "({})".format(", ".join(f"'{kind}'" for kind in FIRINGS)),
    "COUNTED": str(COUNTED),
    "FULL": str(FULL),
    "LATE_MS": str(LATE_MS),
    "MINUTE_MS": str(MINUTE),
    "LATENESS_BUCKET": "CASE WHEN lateness_ms IS NULL THEN NULL {} ELSE {} END".format(
        " ".join(f"WHEN lateness_ms <= {bound} THEN {place}" for place, bound in enumerate(BOUNDS)), len(BOUNDS)
    ),
    "LOG_LIMIT": str(LOG_LIMIT),
    "LONGEST_PROCESS": str(LONGEST_PROCESS),
    "MOVED_MARK": str(MOVED_MARK),
    "OVERDUE_MS": str(OVERDUE_MS),
    "PAGE_BYTES": str(PAGE_BYTES),
    "SMALL_BYTES": str(SMALL_BYTES),
    "TURN_MS": str(TURN_MS),
}

_NAME = re.compile(r"^-- (name|part): *([a-z0-9_.]+)\s*$", re.MULTILINE)
_PART = re.compile(r"\{part ([a-z0-9_]+)\}")
_WORD = re.compile(r"\{([A-Z_]+)\}")
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_PLACE = re.compile(r"\{([a-z_]+)\}")
_PARAMETER = {"sqlite": re.compile(r"\?(\d+)"), "postgres": re.compile(r"\$(\d+)")}
_OF_JOB = re.compile(r"\{of_job ([a-z]+) (\S+)\}")
_RANGE = {
    "sqlite": r"(\1.id >= \2 || '-' AND \1.id < \2 || '.')",
    "postgres": r"(\1.id >= \2::bigint || '-' AND \1.id < \2::bigint || '.')",
}
"""A job's runs by their own key: an id is `<job>-<slot>…`, and `.` is what follows `-`. So runs need no index by job,
into which each claim would have to write them again. With `ORDER BY id LIMIT 1` no plan thinks of anything but the key.
"""


class Queries:
    """The statements of one dialect, by name; and the one setting that goes into rows."""

    def __init__(
        self, dialect: str, now: str, texts: Iterable[str] | None = None, *, now_us: str | None = None
    ) -> None:
        self.dialect = dialect
        self.lookahead = LOOKAHEAD_MS  # before its instant a run may be claimed; `open_store` sets it
        self.alerting = NO_ALERTING  # what the settings say of alerts; `open_store` sets it
        self._now = now
        self._now_us = now_us or f"({now}) * 1000"
        self._parameter = _PARAMETER[dialect]
        if texts is None:
            # Rendering hundreds of statements takes 40 ms; every store of this process has the same.
            statements, self._parts = _of_files(dialect, self._now, self._now_us)
            self._statements = dict(statements)
        else:
            written, self._parts = _read(dialect, texts)
            self._statements = {name: self.render(body) for name, body in written.items()}

    def render(self, text: str) -> str:
        """Text with everything filled in but the places of fragments."""
        return _rendered(text, self.dialect, self._now, self._now_us, self._parts)

    def names(self) -> set[str]:
        """What the files define; compositions are not listed."""
        return {name for name in self._statements if "+" not in name}

    def __getitem__(self, name: str) -> str:
        try:
            return self._statements[name]
        except KeyError:
            pass
        if "+" not in name:
            raise KeyError(f"{self.dialect}: there is no statement {name!r}")
        self._statements[name] = composed = self._compose(*name.split("+"))
        return composed

    def _compose(self, main: str, *fragments: str) -> str:
        places: dict[str, list[str]] = {}
        text = self[main]
        shift = self._parameters(text)
        for fragment in fragments:
            piece = self[fragment]
            places.setdefault(fragment.partition(".")[0], []).append(self._shifted(piece, shift))
            shift += self._parameters(piece)
        for place, pieces in places.items():
            if f"{{{place}}}" not in text:
                raise KeyError(f"{self.dialect}: statement {main!r} has no place {{{place}}}")
            text = text.replace(f"{{{place}}}", " AND ".join(pieces))
        for conditions in ("{where}", "{kinds}"):
            text = text.replace(conditions, "true" if self.dialect == "postgres" else "1")
        return _PLACE.sub("", text)

    def _parameters(self, text: str) -> int:
        return max((int(number) for number in self._parameter.findall(text)), default=0)

    def _shifted(self, text: str, by: int) -> str:
        return self._parameter.sub(lambda match: f"{match[0][0]}{int(match[1]) + by}", text)


@lru_cache(8)
def _of_files(dialect: str, now: str, now_us: str) -> tuple[dict[str, str], dict[str, str]]:
    """The statements and the parts that the files of a dialect define."""
    written, parts = _read(dialect, _files(dialect))
    return {name: _rendered(body, dialect, now, now_us, parts) for name, body in written.items()}, parts


def _read(dialect: str, texts: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    statements: dict[str, str] = {}
    parts: dict[str, str] = {}
    for text in texts:
        pieces = _NAME.split(text)
        for kind, name, body in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            known = statements if kind == "name" else parts
            if name in known:
                raise ValueError(f"{dialect}: {'statement' if kind == 'name' else kind} {name!r} is defined twice")
            known[name] = _COMMENT.sub("", body).strip().removesuffix(";")
    return statements, parts


def _rendered(text: str, dialect: str, now: str, now_us: str, parts: dict[str, str]) -> str:
    while "{part " in text:
        text = _PART.sub(lambda match: parts[match[1]], text)
    text = text.replace("{now}", now).replace("{now_us}", now_us)
    text = _WORD.sub(lambda match: _WORDS[match[1]], fill_in(text, dialect))
    return _OF_JOB.sub(_RANGE[dialect], text)


def _files(dialect: str) -> Iterable[str]:
    folder = resources.files("onthedot.store") / dialect / "queries"
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".sql"):
            yield file.read_text("utf-8")
