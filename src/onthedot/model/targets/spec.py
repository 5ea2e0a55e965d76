"""What every kind of target says about itself: what a node needs to run it, what is wrong with it, what is secret.

A kind is one struct, told apart by its tag. Nothing outside `model.targets` and `targets` asks which kind a target is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from onthedot.errors import FieldProblem
from onthedot.model.duration import Duration
from onthedot.model.field_note import FieldNote
from onthedot.model.run_request import RunRequest, SentRun
from onthedot.model.struct import Strict

__all__ = ["Flag", "Target", "TargetSpec", "TargetSummary"]


class TargetSummary(msgspec.Struct, frozen=True):
    """A target in words: a label and what exactly, for two columns, and both as one short line."""

    label: str  # "POST", "function"
    what: str  # the URL, the name
    line: str


class Flag(msgspec.Struct, frozen=True):
    """A flag of `onthedot jobs add` that fills one field. How its text is read follows from the type of the field."""

    field: str
    help: str
    names: tuple[str, ...] = ()  # the field's own name, if none is given
    chooses: bool = False  # it chooses the kind as the kind's first flag does
    file: bool = False  # what is given is the name of a file, whose text fills the field
    divider: str = ":"  # of a field that maps names to text: what stands between the two


class Target:
    """What is done when a run is due, of whatever kind, also of one that this process does not know."""

    __slots__ = ()

    default_timeout: ClassVar[Duration | None] = None  # None: as long as it takes
    timeout_setting: ClassVar[str | None] = None  # the setting (in seconds) that decides instead
    writes_log: ClassVar[bool] = True  # False: a one-off run gets no log file of its own
    calls_back: ClassVar[bool] = False  # what it calls gets a callback URL, and can tell later how it ended
    reports: ClassVar[bool] = False  # it runs elsewhere, and reports (`report_within`)
    label: ClassVar[str | None] = None  # its type in words; None: the type is a word
    waits_for: ClassVar[str] = "destination"  # what its runs wait for while that is away or busy, as `waiting` says it
    level: ClassVar[int] = 1  # the lowest code level (`model.level`) that runs this kind
    flags: ClassVar[tuple[Flag, ...]] = ()
    notes: ClassVar[Mapping[str, FieldNote]] = {}  # what each field means, for the manual and the OpenAPI document
    plain_fields: ClassVar[tuple[str, ...]] = ()  # text that is shown as it is, whatever it looks like: it is no URL

    @property
    def type(self) -> str:
        raise NotImplementedError

    @property
    def report_within(self) -> int | None:
        """ms after its slot in which the job, which runs elsewhere, reports at its ping URL; None: it runs here."""
        return None

    def capability(self) -> str:
        """What a node must offer to run it: its type, or more exactly "function:reports"."""
        return self.type

    def level_with(self, params: Mapping[str, Any]) -> int:
        """The lowest code level that runs it with these params."""
        return self.level

    def problems(self) -> Iterator[FieldProblem]:
        """What is wrong with it wherever it would run."""
        return iter(())

    def problems_with(self, params: Mapping[str, Any], *, callback: bool = False) -> Iterator[FieldProblem]:
        """What is wrong with it in a job that has these params. `callback`: its calls carry a callback URL."""
        return iter(())

    def secret_fields(self) -> tuple[str, ...]:
        """Fields that are secret as a whole. Headers and parts of URLs that are so by their name need no mention."""
        return ()

    def secret_for(self, field: str, place: int) -> str | None:
        """The secret that the mask at this place of a list of secrets stands for."""
        values = getattr(self, field) or ()
        return values[place] if place < len(values) else None

    def scripts(self) -> tuple[str, ...]:
        """Ids of uploaded scripts that it uses."""
        return ()

    def summary(self) -> TargetSummary:
        return TargetSummary(self.type, "", self.type)

    def request(self, sent: SentRun) -> RunRequest:
        """What a run of it sent; asked of a target whose secrets are masked."""
        return RunRequest(type=self.type, what=self.summary().line, body=dict(sent.params) or None)

    @classmethod
    def how_to_offer(cls, name: str) -> str:
        """Advice to an operator whose nodes all lack the capability `type:name`."""
        return "start a node with the executor role"

    @classmethod
    def timeout_by(cls, settings: object) -> float | None:
        """Seconds, for a job that does not say. `settings`: whatever has the attribute that `timeout_setting` names."""
        if cls.timeout_setting is not None:
            seconds: float = getattr(settings, cls.timeout_setting)
            return seconds
        return None if cls.default_timeout is None else cls.default_timeout.seconds


class TargetSpec(Strict, Target, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """A kind that this process knows. Its subclasses are structs with a `tag`, which is the `type` of their JSON."""

    @property
    def type(self) -> str:
        return self.__struct_config__.tag  # type: ignore[return-value]
