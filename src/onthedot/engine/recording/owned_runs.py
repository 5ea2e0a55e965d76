"""What this node believes to own: every run from its claim until the Recorder wrote how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onthedot.engine.messages import Fence
from onthedot.model.run import ClaimedRun

__all__ = ["OwnedRuns"]


class OwnedRuns:
    def __init__(self) -> None:
        self._tokens: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._tokens)

    def add(self, run_id: str, token: int) -> None:
        self._tokens[run_id] = token

    def add_all(self, runs: Sequence[ClaimedRun]) -> None:
        self._tokens.update([(run.id, run.token) for run in runs])

    def release(self, run_id: str, token: int) -> None:
        """Only if it is that very claim: a retried run may be ours again before the answer to its finish arrives."""
        if self._tokens.get(run_id) == token:
            del self._tokens[run_id]

    def has(self, run_id: str, token: int) -> bool:
        return self._tokens.get(run_id) == token

    def snapshot(self) -> dict[str, int]:
        return dict(self._tokens)

    def strays(self, rows: Iterable[Fence], before: dict[str, int]) -> list[Fence]:
        """Rows that carry our name though we know nothing of them: the answer to their claim was lost.

        What was finished while the rows were read is in `before`, so it is not taken for a stray.
        """
        return [fence for fence in rows if before.get(fence[0]) != fence[1] and not self.has(*fence)]
