"""Make the jobs of a source what its file says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from onthedot.errors import FieldProblem, Invalid
from onthedot.model.job import JobSpec
from onthedot.model.unstorable import MOST_PROBLEMS
from onthedot.service.aside import FEW_JOBS
from onthedot.service.checking import check_job, gather
from onthedot.service.repeats import IdempotencyKey, idempotency
from onthedot.service.scripts import ScriptVerbs
from onthedot.service.stored_spec import as_stored, who_asks
from onthedot.store import SyncReport
from onthedot.store.jobs.sync import Others
from onthedot.telemetry import emit

__all__ = ["SyncVerbs"]


class SyncVerbs(ScriptVerbs):
    async def sync(
        self,
        tenant: int,
        source: str,
        specs: Sequence[JobSpec],
        prune: bool = False,
        dry_run: bool = False,
        idempotency_key: IdempotencyKey | None = None,
        *,
        file: str | None = None,
        others: Others = "refuse",
        former: str | None = None,
    ) -> SyncReport:
        """Make the jobs of `source` what the file says. One wrong job and nothing is applied.

        `file`: which one it is, where the source is only its name. From a database that several may share, only what
        was loaded from this very file is removed then; `kept` in the report says what was not."""
        file = None if self.settings.is_sqlite else file
        now = await self.time.now()
        checks = self._file_checks(tenant, specs, now)
        stored = list(checks) if len(specs) <= FEW_JOBS else await self.aside.collect(checks)
        await self.check_scripts(tenant, *(spec.target for spec in specs))
        more = () if others == "refuse" and former is None and file is None else (others, former, file)
        repeat = idempotency("sync", idempotency_key, source, body=(specs, prune, dry_run, *more))
        report = await self.store.sync_jobs(
            tenant,
            source,
            stored,
            prune=prune,
            dry_run=dry_run,
            others=others,
            former=former,
            file=file,
            run_now=frozenset(str(spec.key) for spec in specs if spec.run_now),
            owner=who_asks(),
            zone=self.settings.default_tz,
            idempotency=repeat,
        )
        if not dry_run and (report.created or report.updated or report.removed or report.adopted):
            emit("job.changed", tenant=tenant, source=source)
            await self.hint_now()
            await self.hint_orders()
        return report

    def _file_checks(self, tenant: int, specs: Sequence[JobSpec], now: int) -> Iterator[JobSpec]:
        """As they are stored; Invalid with the first hundred problems if there are any."""
        problems: list[FieldProblem] = []
        for place, spec in enumerate(specs):
            try:
                # whether an `at` is past is judged by the store's sync, which alone knows if the schedule is new
                check = partial(
                    check_job,
                    spec,
                    self.targets,
                    tenant=tenant,
                    now=now,
                    before=spec,
                    calls_back=self.calls_back,
                    channels=self.settings.channels,
                )
                gather(check, path=f"jobs[{place}]")
            except Invalid as invalid:
                problems.extend(invalid.problems)
                if len(problems) >= MOST_PROBLEMS:
                    break
            yield as_stored(spec, self.settings)
        if problems:
            raise Invalid(problems[:MOST_PROBLEMS])
