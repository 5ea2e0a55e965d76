"""Code levels: which jobs an older node must leave alone during an upgrade.

`LEVEL` rises by one when a release teaches jobs something that older code would get wrong (a new kind, a new field that
changes meaning). A job carries the lowest level that understands its whole spec; a node claims `level <= LEVEL` only.
"""

from __future__ import annotations

from msgspec import UNSET

from onthedot.model.job import JobSpec

__all__ = ["CHAINS", "LEVEL", "OWN_PARAMS", "level_of"]

LEVEL = 5
"""2: the `params` of a webhook without a body are sent, and runs have params of their own. 3: results that come later,
by a callback, and results of more than 4 KB; values of the run in a webhook's body, several signing secrets,
certificates, and retries by a plan or until the next slot. 4: jobs that the end of a run starts, concurrency groups. 5:
alerts and objectives of jobs."""

OWN_PARAMS = 2
"""The level that a run with params of its own needs."""

LATER_RESULTS = 3
"""The level that `completion: callback` and `keep_result` need."""

RETRY_PLANS = 3
"""The level that `retry.plan` and `retry.until` need."""

CHAINS = 4
"""The level that `on_success`, `on_failure` and `on_finish` need, and a run that the end of another has started."""


GROUPS = 4
"""The level that `concurrency` and `max_running` need."""

ALERTS = 5
"""The level that `alerts` and `objective` need."""


def level_of(spec: JobSpec) -> int:
    """The lowest level of the code that understands all of `spec`."""
    needed = spec.target.level_with(spec.params)
    if spec.keep_result or spec.policy.completion == "callback":
        needed = max(needed, LATER_RESULTS)
    if spec.chained:
        needed = max(needed, CHAINS)
    if spec.policy.concurrency is not UNSET or spec.policy.max_running is not UNSET:
        needed = max(needed, GROUPS)
    if spec.alerts is not UNSET or spec.objective is not UNSET:
        needed = max(needed, ALERTS)
    retry = spec.policy.retry
    return needed if retry.plan is UNSET and retry.until is UNSET else max(needed, RETRY_PLANS)
