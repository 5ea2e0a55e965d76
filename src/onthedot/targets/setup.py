"""What kinds of target are made from, and what a jobs file adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onthedot.settings import CommandSetting, Settings

if TYPE_CHECKING:
    from onthedot.model.targets import Target
    from onthedot.targets.contract import Kind
    from onthedot.targets.webhook.egress import EgressRule

__all__ = ["FileGrants", "KindSetup"]


@dataclass(frozen=True, kw_only=True)
class KindSetup:
    """What the factory of a kind is given."""

    settings: Settings
    egress: EgressRule
    import_paths: Sequence[str] = ()  # where modules of functions are found
    in_process: Kind | None = None
    """The functions of a program that embeds us: they take the place of functions in worker processes."""

    @property
    def worker_processes(self) -> int:
        return self.settings.function_processes if self.in_process is None else 0


@dataclass(frozen=True)
class FileGrants:
    """What the operator grants one tenant by a jobs file: what its jobs name, and the commands that it defines."""

    targets: Sequence[Target] = ()
    commands: Mapping[str, CommandSetting] = field(default_factory=dict)
