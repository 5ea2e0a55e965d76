"""What is done when a run is due: one kind, one small module. Targets act outside on behalf of a run and never see the
store."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from onthedot.descriptors import for_sending, limit
from onthedot.settings import CommandSetting
from onthedot.targets.command.kind import Commands
from onthedot.targets.contract import Call, Kind
from onthedot.targets.coroutine import from_coroutine
from onthedot.targets.function.kind import Functions
from onthedot.targets.inprocess.kind import Callables
from onthedot.targets.registry import Targets
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.kind import Webhooks
from onthedot.targets.webhook.own_ports import OwnPort, doors_of_store, read_doors

__all__ = [
    "Call",
    "Callables",
    "EgressRule",
    "Kind",
    "OwnPort",
    "Targets",
    "build_targets",
    "doors_of_store",
    "from_coroutine",
    "read_doors",
]


def build_targets(
    *,
    version: str,
    egress: EgressRule | None = None,
    functions: Iterable[str] = (),
    commands: Mapping[str, CommandSetting] | None = None,
    function_processes: int | None = None,
    import_paths: Sequence[str] = (),
    callables: Callables | None = None,
) -> Targets:
    """All that one node offers. `callables` (an embedded Scheduler's own) take the place of functions in workers."""
    processes = function_processes or 2 * (os.cpu_count() or 1)
    connections = for_sending(limit(), processes if callables is None else 0)
    return Targets(
        [
            Webhooks(egress or EgressRule(), version=version, connections=connections),
            callables or Functions(functions, processes=processes, import_paths=import_paths),
            Commands(commands or {}, capacity=processes),
        ]
    )
