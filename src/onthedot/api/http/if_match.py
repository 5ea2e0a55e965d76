"""If-Match: change a job only if it still has the given version. The ETag of a job is its version."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from starlette.requests import Request

from onthedot.api.context import service_of, tenant_of
from onthedot.errors import Invalid, VersionMismatch
from onthedot.model.job import JobView

__all__ = ["parse_if_match", "version_named", "version_wanted"]

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


async def version_wanted(header: str | None, read: Callable[[], Awaitable[JobView]]) -> int | None:
    """The one version that an update may start from. Of several tags, the one that the job has now."""
    versions = parse_if_match(header)
    if versions is None:
        return None
    if len(versions) == 1:
        return next(iter(versions))
    current = (await read()).version
    if current not in versions:
        raise VersionMismatch(f"the job has version {current}")
    return current


async def version_named(request: Request, job_id: int) -> int | None:
    """The version that this job must have for the verb to be carried out; None: any."""
    return await version_wanted(
        request.headers.get("if-match"), lambda: service_of(request).get_job(tenant_of(request), job_id)
    )
