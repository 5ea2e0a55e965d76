"""If-Match: change a job only if it still has the given version. The ETag of a job is its version."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from starlette.requests import HTTPConnection, Request

from onthedot.api.context import service_of, tenant_of
from onthedot.api.http.problems import HttpProblem
from onthedot.api.operations import operation_of
from onthedot.errors import Invalid
from onthedot.model.job import JobView

__all__ = ["existence_wanted", "parse_if_match", "refuse_unversioned", "version_named", "version_wanted"]

_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')


def parse_if_match(header: str | None) -> frozenset[int] | None:
    """The versions named; None: any will do. Tags that no job can have name no version."""
    if header is None or header.strip() == "*":
        return None
    versions = set()
    for tag in (part.strip() for part in header.split(",")):
        if tag.isascii() and tag.isdecimal():  # people leave the quotes out
            tag = f'"{tag}"'
        if not _TAG.fullmatch(tag):
            raise Invalid.one(
                "If-Match", "not an entity tag", given=header[:200], accepted='the ETag of the job, such as "3"'
            )
        number = tag.strip('"')
        if not tag.startswith("W/") and number.isascii() and number.isdecimal() and len(number) <= 18:
            versions.add(int(number))
    return frozenset(versions)


def refuse_unversioned(connection: HTTPConnection) -> None:
    """A condition on what has no version is never met: to carry the request out all the same would be what who sent it
    wanted to rule out. `*` asks only that it exists."""
    if parse_if_match(header := connection.headers.get("if-match")) is not None:
        declared = operation_of(connection)
        raise HttpProblem(
            412,
            f"{declared.method} {declared.path} does not support If-Match: it changes nothing that has an ETag. "
            f"Nothing was changed (given: {str(header)[:100]}); leave If-Match out",
        )


def existence_wanted(request: Request) -> bool | None:
    """Of a request that creates or replaces: True to replace only, False to create only, None for either."""
    if (absent := request.headers.get("if-none-match")) is not None:
        if absent.strip() != "*":
            raise Invalid.one("If-None-Match", "names a version", given=absent[:200], accepted="*, to create only")
        return False
    return True if request.headers.get("if-match", "").strip() == "*" else None


async def version_wanted(header: str | None, read: Callable[[], Awaitable[JobView]]) -> int | None:
    """The one version that an update may start from. Of several tags, the one that the job has now. If it has none of
    them, the highest: the job is asked again in the transaction, where a repeat of what was carried out is known."""
    versions = parse_if_match(header)
    if versions is None:
        return None
    if len(versions) == 1:
        return next(iter(versions))
    if not versions:
        return 0
    current = (await read()).version
    return current if current in versions else max(versions)


async def version_named(request: Request, job_id: int) -> int | None:
    """The version that this job must have for the verb to be carried out; None: any."""
    return await version_wanted(
        request.headers.get("if-match"), lambda: service_of(request).get_job(tenant_of(request), job_id)
    )
