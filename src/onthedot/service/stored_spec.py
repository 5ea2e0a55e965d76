"""A job as it is stored: with what it does not say itself."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from onthedot.model.actor import ChangeActor
from onthedot.model.chains import EDGES
from onthedot.model.duration import SECOND, Duration
from onthedot.model.job import JobSpec
from onthedot.model.policy import Policy
from onthedot.settings import Settings
from onthedot.store.abandoned_requests import ASKER

__all__ = ["act_as", "as_stored", "who_asks"]


def as_stored(spec: JobSpec, settings: Settings, owner: str | None = None) -> JobSpec:
    """Where its kind of target has a time-out by default, that is written in the job, and reads back. `owner`: whose it
    is if it does not say so."""
    said: dict[str, Any] = {}
    if spec.policy.timeout is None and (seconds := spec.target.timeout_by(settings)) is not None:
        said["policy"] = _with_timeout(spec.policy, seconds)
    if owner is not None and spec.owner is msgspec.UNSET:
        said["owner"] = owner
    if spec.run_now is not msgspec.UNSET:
        said["run_now"] = msgspec.UNSET
    if spec.on_success == [] or spec.on_failure == [] or spec.on_finish == []:
        said |= {field: msgspec.UNSET for field in EDGES if not getattr(spec, field)}
    if spec.requires == []:
        said["requires"] = msgspec.UNSET
    return msgspec.structs.replace(spec, **said) if said else spec


@lru_cache(maxsize=256)
def _with_timeout(policy: Policy, seconds: float) -> Policy:
    return msgspec.structs.replace(policy, timeout=Duration(round(seconds * SECOND)))


class _Named:
    """Somebody in this process, who waits for as long as it takes."""

    def __init__(self, actor: ChangeActor) -> None:
        self.name: str | None = actor.name
        self.actor: ChangeActor | None = actor

    def check(self, *, late: bool = True) -> None:
        pass


def act_as(actor: ChangeActor) -> None:
    """What this task changes from now on is changed by this one; new jobs are its own, unless they say otherwise."""
    ASKER.set(_Named(actor))


def who_asks() -> str | None:
    """The name of the key that this request came with."""
    asker = ASKER.get()
    return None if asker is None else asker.name
