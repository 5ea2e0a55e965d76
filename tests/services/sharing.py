"""Which tests go to the same worker, because they share something that is dear to make.

`xdist_group` is not used: pytest-xdist 3.8 writes the group into the test's id, and pytest 9.2 does not read it there,
so each worker built everything. Here the id itself says where a test belongs. Groups are begun before single tests.
"""

from __future__ import annotations

import re
from typing import Any

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # it publishes no types

__all__ = ["Sharing", "group_of"]

GROUPS = (
    # two servers that live as long as the session
    (re.compile(r"^tests/acceptance/.*\[(sqlite|postgres)"), "acceptance on {}"),
    # tables of a million rows
    (re.compile(r"^tests/store/test_query_plans_\w+\.py::[Tt]est_?(sqlite|postgres)", re.IGNORECASE), "plans of {}"),
    # a broker that takes seconds to start
    (re.compile(r"^tests/(?:targets|intake)/.*\[rabbitmq"), "rabbitmq"),
    # one browser
    (re.compile(r"^tests/web/test_browser\.py"), "browser"),
    # a company with its node, or ten thousand jobs
    (re.compile(r"^tests/pages/test_(\w+)\.py::.*\[.*\b(sqlite|postgres)\b"), "{} pages on {}"),
    # one server
    (re.compile(r"^tests/cli/test_(jobs|runs|diagnosis)\.py"), "command line"),
)


def group_of(test: str) -> str:
    """The group of a test, or its own id: then any worker may have it."""
    for pattern, name in GROUPS:
        if found := pattern.match(test):
            return name.format(*map(str.lower, found.groups()))
    return test


class Sharing(LoadScopeScheduling):  # type: ignore[misc]
    """`--dist loadscope` with our own idea of what belongs together."""

    def _split_scope(self, nodeid: str) -> Any:
        return group_of(nodeid)
