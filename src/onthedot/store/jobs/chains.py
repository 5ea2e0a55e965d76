"""Which jobs name each other in chains: checked and written with the jobs that name, looked up before one that may be
named goes.

Whoever adds names first locks the tenant, as a sync does, so that two who each close half of a cycle take turns; and
then the jobs that are named, against those who delete them. To name nobody, or fewer, needs no lock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from onthedot.errors import Conflict, Invalid
from onthedot.model.chains import ChainLink, ChainNeighbours, edges_of
from onthedot.model.job import JobRecord, JobSpec
from onthedot.plan import chain_objections
from onthedot.store.driver import Row, Transaction
from onthedot.store.jobs.rows import KeyOfJob, job_record
from onthedot.store.jobs.views import no_job
from onthedot.store.shapes import Rows, Shape
from onthedot.store.topic import Topic

__all__ = [
    "ChainedJob",
    "JobChains",
    "TenantNotLocked",
    "chain_rows",
    "check_chains",
    "lock_tenants",
    "names_more",
    "refuse_if_named",
    "write_chains",
]

NAMED_MOST = 10


class ChainedJob(Shape, frozen=True):
    """One name: the job `source_key`, if it has a key, names `target_key` in its field `edge`."""

    tenant: int
    job_id: int
    edge: str
    source_key: str | None
    target_key: str


class JobChains(Topic):
    async def chain_of(self, tenant: int, job_id: int) -> ChainNeighbours:
        async def body(tx: Transaction) -> ChainNeighbours:
            row = await tx.row("find_job", tenant, job_id)
            if row is None:
                raise no_job(job_id)
            spec = job_record(row).spec
            edges = list(edges_of(spec))
            named = [KeyOfJob(tenant, key) for key in sorted({key for _, _, key in edges})]
            ids = {each["key"]: each["id"] for each in await tx.rows("holders_of_keys", Rows(named))} if named else {}
            naming = [] if spec.key is None else await tx.rows("naming_jobs", Rows([KeyOfJob(tenant, spec.key)]))
            return ChainNeighbours(
                follows=[ChainLink(on=each["edge"], id=each["job_id"], key=each["source_key"]) for each in naming],
                followers=[ChainLink(on=field, id=ids[key], key=key) for field, _, key in edges if key in ids],
            )

        return await self.driver.read(body)


class TenantNotLocked(Exception):
    """Only now it is known that names are added: the transaction is repeated with the tenant locked first."""


def chain_rows(tenant: int, job_id: int, spec: JobSpec) -> list[ChainedJob]:
    return [ChainedJob(tenant, job_id, field, spec.key, key) for field, _, key in edges_of(spec)]


def names_more(new: JobSpec, old: JobSpec | None) -> bool:
    """Whether it names jobs that it did not name."""
    if not new.chained:
        return False
    before = set() if old is None else {key for _, _, key in edges_of(old)}
    return not before >= {key for _, _, key in edges_of(new)}


async def lock_tenants(tx: Transaction, tenants: Iterable[int]) -> None:
    """Before any job: whoever needs both takes them in this order."""
    for tenant in sorted(set(tenants)):
        await tx.rows("lock_tenant", tenant)


async def check_chains(
    tx: Transaction, tenant: int, specs: Sequence[JobSpec], *, gone: Collection[str] = ()
) -> dict[int, Invalid]:
    """Which of these jobs, written together, can't be: by place. `gone`: keys of jobs that are removed with it. The
    tenant is locked."""
    own = {spec.key for spec in specs if spec.key is not None}
    named = {key for spec in specs for _, _, key in edges_of(spec)}
    if not named:
        return {}
    holders = await tx.rows("lock_named", tenant, sorted(named - own - set(gone)))
    graph: dict[str, list[str]] = {}
    for row in await tx.rows("chains_around", tenant, sorted(named - own), sorted(own)):
        if row["source_key"] not in own and row["source_key"] not in gone:
            graph.setdefault(row["source_key"], []).append(row["target_key"])
    objections = chain_objections(specs, {row["key"] for row in holders}, graph)
    return {place: Invalid(problems) for place, problems in objections.items()}


async def write_chains(tx: Transaction, record: JobRecord, spec: JobSpec) -> None:
    """What a job that is changed names now."""
    before = chain_rows(record.tenant, record.id, record.spec)
    after = chain_rows(record.tenant, record.id, spec)
    if before == after:
        return
    if before:
        await tx.execute("delete_chains", [record.id])
    if after:
        await tx.execute("insert_chains", Rows(after))


async def refuse_if_named(
    tx: Transaction, tenant: int, keys: Collection[str], what: str, *, but: Collection[int] = ()
) -> None:
    """Conflict if a job names one of these keys, whose jobs are locked; `but`: other than these jobs. `what`: would be
    done to them."""
    if not keys:
        return
    rows = await tx.rows("naming_jobs", Rows([KeyOfJob(tenant, key) for key in sorted(keys)]))
    naming = [row for row in rows if row["job_id"] not in but]
    if naming:
        told = [f"{row['edge']} of {_whose(row)} names {row['target_key']!r}" for row in naming[:NAMED_MOST]]
        more = [f"{len(naming) - NAMED_MOST} more"] if len(naming) > NAMED_MOST else []
        raise Conflict(f"can't {what}: {'; '.join([*told, *more])}. Remove the name there first")


def _whose(row: Row) -> str:
    key = row["source_key"]
    return f"job {row['job_id']}" if key is None else f"job {row['job_id']} ({key!r})"
