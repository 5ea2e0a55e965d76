"""Jobs: as a user writes them (JobSpec), as the store keeps them (JobRecord), as the API shows them (JobView)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

import msgspec

from onthedot.model import targets
from onthedot.model.alerts import JobAlerts
from onthedot.model.labels import MOST_OF_JOB, Label, with_labels
from onthedot.model.objective import Objective, ObjectiveReport
from onthedot.model.ping import Ping
from onthedot.model.policy import Policy
from onthedot.model.schedule import Schedule
from onthedot.model.struct import Strict

__all__ = [
    "KEY_PATTERN",
    "JobPause",
    "JobRecord",
    "JobSpec",
    "JobState",
    "JobStats",
    "JobStatus",
    "JobView",
    "OpenJobSpec",
]

KEY_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}\Z"
ACCEPTED_KEYS = "1 to 200 letters, digits, dots, underscores and hyphens, the first one a letter or digit"
JobState = Literal["active", "paused", "ended", "quarantined"]
Tag = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Owner = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Labels = Annotated[list[Label], msgspec.Meta(max_length=MOST_OF_JOB)]
Key = Annotated[str, msgspec.Meta(pattern=KEY_PATTERN, description=ACCEPTED_KEYS)]
Keys = Annotated[list[Key], msgspec.Meta(max_length=100)]


class JobSpec(Strict, frozen=True, kw_only=True):
    """What to do and when, as written. Equal specs mean: nothing changed."""

    key: Key | None = None
    name: Annotated[str, msgspec.Meta(max_length=500)] | None = None
    schedule: Schedule
    target: targets.Known
    policy: Policy = Policy()
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    tags: Annotated[list[Tag], msgspec.Meta(max_length=50)] = msgspec.field(default_factory=list)
    paused: bool = False
    owner: Owner | msgspec.UnsetType | None = msgspec.UNSET  # left out: who made it; in an update: who owns it already
    keep_result: bool = False  # also a result of more than 4 KB, up to 64 KB
    requires: Labels | msgspec.UnsetType = msgspec.UNSET  # labels that a node must have; left out: none
    run_now: bool | msgspec.UnsetType = msgspec.UNSET  # when it is made: run it at once, too. Never stored
    on_success: Keys | msgspec.UnsetType = msgspec.UNSET  # jobs that run after a run that is done
    on_failure: Keys | msgspec.UnsetType = msgspec.UNSET  # after one that failed for good, not after each try
    on_finish: Keys | msgspec.UnsetType = msgspec.UNSET  # after both. Unset, not empty, where nobody follows
    alerts: JobAlerts | msgspec.UnsetType = msgspec.UNSET  # left out: as the rules of the installation say
    objective: Objective | msgspec.UnsetType = msgspec.UNSET

    @property
    def chained(self) -> bool:
        """Whether the end of a run may start others."""
        return bool(self.on_success or self.on_failure or self.on_finish)

    def in_default_zone(self, zone: str) -> Self:
        """Its schedule in this zone, if it names none itself."""
        schedule = self.schedule.in_default_zone(zone)
        return self if schedule is self.schedule else msgspec.structs.replace(self, schedule=schedule)

    def in_zone_as_stored(self) -> Self:
        """With its zone named: one that was stored without is in UTC, whatever the default is by now."""
        if self.schedule.names_zone:
            return self
        return msgspec.structs.replace(self, schedule=msgspec.structs.replace(self.schedule, tz="UTC"))

    def requirement(self) -> str:
        """What a node must offer to run it, as one text: what the target needs, and the labels."""
        capability = self.target.capability()
        return with_labels(capability, self.requires) if self.requires else capability


class OpenJobSpec(JobSpec, frozen=True, kw_only=True):
    """A job as an older or less equipped node reads it: its target may be of a kind that is not known here."""

    target: targets.Target


class JobRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job as the store keeps it. All times in ms."""

    id: int
    tenant: int
    spec: JobSpec
    version: int
    state: JobState
    anchor_at: int  # when the present schedule was given: `every` and `in` count from here
    claimed_slot: int | None  # the newest scheduled slot ever claimed; survives pause and retention
    slots_used: int  # for `count`: slots consumed so far, fired or not
    created_at: int
    updated_at: int
    source: str | None = None  # the jobs file that owns it
    reason: str | None = None  # why it is quarantined
    paused_at: int | None = None
    pause_note: str | None = None
    pause_until: int | None = None


class JobPause(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Since when a job is paused, why, and when it goes on by itself (null: when somebody resumes it)."""

    since: str
    note: str | None
    until: str | None


class JobStats(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    runs: int = 0
    failures: int = 0
    avg_duration_ms: float | None = None
    last_duration_ms: int | None = None
    last_lateness_ms: int | None = None
    last_status: str | None = None
    last_run_id: str | None = None
    objective: ObjectiveReport | msgspec.UnsetType = msgspec.UNSET  # of one that has it; lists leave it out


class JobView(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job as the API shows it. All times RFC 3339."""

    id: int
    key: str | None
    name: str | None
    schedule: Schedule
    target: targets.Target
    policy: Policy
    params: dict[str, Any]
    tags: list[str]
    paused: bool
    version: int
    state: JobState
    reason: str | None
    next_run: str | None
    last_run: str | None
    created_at: str
    updated_at: str
    stats: JobStats
    owner: str | None = None
    pause: JobPause | None = None
    keep_result: bool = False
    requires: list[str] = msgspec.field(default_factory=list)
    on_success: list[str] = msgspec.field(default_factory=list)
    on_failure: list[str] = msgspec.field(default_factory=list)
    on_finish: list[str] = msgspec.field(default_factory=list)
    ping_url: str | msgspec.UnsetType = msgspec.UNSET  # where a job that runs elsewhere reports; masked for `read` keys
    ping_token: str | msgspec.UnsetType = msgspec.UNSET  # the last part of that URL
    last_ping: Ping | msgspec.UnsetType | None = msgspec.UNSET
    alerts: JobAlerts | msgspec.UnsetType = msgspec.UNSET
    objective: Objective | msgspec.UnsetType = msgspec.UNSET


class JobStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The run of a job that executes, else its next, else its last. `execution_time`: its slot, seconds since 1970."""

    execution_time: int | None
    key: str | None  # "<execution_time>-<job_id>"
    job_id: int
    user_id: str | None  # the owner
    status: str | None  # of the run; null: it has none yet
    attempt: int
