"""A node in a few lines: claims what is ready and ends it as a test says, through the store alone."""

from __future__ import annotations

import random

from onthedot.model.level import LEVEL
from onthedot.model.node import NodeInfo
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.plan import on_outcome
from onthedot.store import Store
from onthedot.store.runs.finish import Finished

__all__ = ["FAILED", "OK", "TinyNode"]

OK = Outcome(kind="ok", detail={"status_code": 204})
FAILED = Outcome(kind="error", error="410 Gone", detail={"status_code": 410})


class TinyNode:
    def __init__(self, store: Store, name: str = "tiny") -> None:
        self._store = store
        self.info = NodeInfo(
            id=f"{name}-1",
            name=name,
            host="localhost",
            pid=1,
            version="test",
            level=LEVEL,
            roles=["executor"],
            offers=["webhook", "command:backup"],
            capacity=100,
        )

    async def register(self) -> None:
        await self._store.register(self.info)

    async def claim(self) -> list[ClaimedRun]:
        claim = await self._store.claim(
            self.info.id, offers=self.info.offers, level=LEVEL, limit=100, lookahead_ms=2000
        )
        return claim.runs

    async def end(self, runs: list[ClaimedRun], outcome: Outcome, log: str | None = None) -> None:
        now = await self._store.now()
        results = [
            Finished(
                run=run,
                outcome=outcome,
                decision=on_outcome(run, outcome, now, random.Random(1)),
                started_at=now - 12,
                finished_at=now,
                lateness_ms=2,
                duration_ms=12,
                log=log,
            )
            for run in runs
        ]
        await self._store.finish(self.info.id, results)

    async def work(self, outcome: Outcome = OK, log: str | None = None) -> list[str]:
        """Claim and end all that is ready; the ids."""
        runs = await self.claim()
        await self.end(runs, outcome, log)
        return [run.id for run in runs]
