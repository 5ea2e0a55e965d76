"""What is done when a run is due: a folder for each kind. Targets act outside on behalf of a run and never see the
store."""

from __future__ import annotations

from collections.abc import Sequence

from onthedot.model.run import Outcome
from onthedot.model.targets import Flag, TargetSpec, TargetSummary
from onthedot.model.targets.registry import BUILT_IN, load
from onthedot.settings import Settings
from onthedot.targets.contract import Call, Kind, Profile
from onthedot.targets.coroutine import from_coroutine
from onthedot.targets.inprocess.kind import InProcessFunctions
from onthedot.targets.plugins import plugin_kinds
from onthedot.targets.registry import Targets
from onthedot.targets.setup import FileGrants, KindSetup
from onthedot.targets.webhook.egress import EgressRule
from onthedot.targets.webhook.own_ports import OwnPort, ports_of_store, read_own_ports

__all__ = [
    "Call",
    "EgressRule",
    "FileGrants",
    "Flag",
    "InProcessFunctions",
    "Kind",
    "Outcome",
    "OwnPort",
    "Profile",
    "TargetSpec",
    "TargetSummary",
    "Targets",
    "build_targets",
    "from_coroutine",
    "ports_of_store",
    "read_own_ports",
]


def build_targets(
    settings: Settings | None = None,
    *,
    egress: EgressRule | None = None,
    import_paths: Sequence[str] = (),
    in_process: InProcessFunctions | None = None,
) -> Targets:
    """All that one node offers. `in_process` (an embedded Scheduler's own) take the place of functions in workers."""
    settings = settings or Settings()
    rule = egress or EgressRule.parse(settings.egress_allow)
    setup = KindSetup(settings=settings, egress=rule, import_paths=import_paths, in_process=in_process)
    built_in = [load(__name__, kind.kind).of(setup) for kind in BUILT_IN.values()]
    plugins, broken = plugin_kinds(settings.targets)
    return Targets(built_in, plugins, broken)
