"""Why an engine can't be asked, told once until it answers for every execution again."""

from __future__ import annotations

from onthedot.targets.workflow.engine import EngineDown, StartRefused, WorkflowEngine
from onthedot.telemetry import emit

__all__ = ["Outages", "words_of"]


def words_of(error: Exception) -> str:
    """Of one that nobody foresaw, with its type."""
    return str(error) if isinstance(error, (EngineDown, StartRefused)) else f"{type(error).__name__}: {error}"


class Outages:
    """Of one engine, as this node uses it."""

    def __init__(self, engine: WorkflowEngine) -> None:
        self._engine = engine
        self._names: set[str] = set()

    def tell(self, name: str, why: str) -> None:
        """It could not be asked about this execution."""
        if not self._names:
            emit("workflows.unavailable", engine=self._engine.place, error=why)
        self._names.add(name)

    def over(self, name: str) -> None:
        """It was asked, or nobody wants to know any more."""
        self._names.discard(name)
