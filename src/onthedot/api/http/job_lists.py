"""A body with a list of jobs, however long: cut into its jobs first, which are then decoded one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from onthedot.api.http.bodies import decode_large
from onthedot.errors import FieldProblem, Invalid, TooLarge, Unreadable
from onthedot.model.decoding import convert, decode_loose
from onthedot.model.job import JobSpec
from onthedot.model.portions import WINDOW, check_values, object_parts
from onthedot.service.aside import Aside

__all__ = ["job_specs", "taken_apart"]

T = TypeVar("T")
NAMED_MOST = 100  # problems that one answer names
FIELDS_MOST = 20


async def taken_apart(
    raw: bytes, aside: Aside, envelope: type[T], *, most: int, field_bytes: int = WINDOW
) -> tuple[T, list[bytes]]:
    """What stands beside the jobs, and each of them as it is written."""
    parts = await aside.collect(_bounded(object_parts(raw, b'"jobs"', field_bytes), most))
    fields = [name + b":" + value for name, value in parts if name is not None]
    asked = await aside.run(decode_large, b"{" + b",".join(fields) + b"}", envelope)
    return asked, [value for name, value in parts if name is None]


def _bounded(parts: Iterator[tuple[bytes | None, bytes]], most: int) -> Iterator[tuple[bytes | None, bytes]]:
    items = fields = 0
    for name, value in parts:
        if name is None:
            items += 1
        else:
            fields += 1
        if items > most:
            raise TooLarge(f"more than {most} jobs, the maximum for one request")
        if fields > FIELDS_MOST:
            raise TooLarge(f"more than {FIELDS_MOST} fields beside the jobs")
        yield name, value


def job_specs(items: Iterable[Any]) -> Iterator[JobSpec]:
    """Of jobs as written, or decoded already. Stops when there are enough problems to name."""
    problems: list[FieldProblem] = []
    for place, item in enumerate(items):
        try:
            loose = item
            if isinstance(item, bytes):
                check_values(item)
                loose = decode_loose(item)
            spec = convert(loose, JobSpec, path=f"jobs[{place}]")
            if not problems:
                yield spec
        except Invalid as invalid:
            problems.extend(invalid.problems)
        except TooLarge as error:
            problems.append(FieldProblem(path=f"jobs[{place}]", message=str(error), accepted="a smaller job"))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise Unreadable(f"the body is not valid JSON: {error} (in jobs[{place}])") from None
        if len(problems) >= NAMED_MOST:
            break
    if problems:
        raise Invalid(problems[:NAMED_MOST])
