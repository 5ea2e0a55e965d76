"""Two connections on a real PostgreSQL, statement by statement, in every order with at most two switches.

Whatever the order, afterwards the invariants of `check_invariants` hold (one cursor per active job, no slot twice in
runs and ledger, nothing claimable of a paused job, no lane held twice), no run is lost, and what a node holds ahead of
its instant either has the job as the verb left it or an order to give it back. Found here: a retry that was written
while its job was being paused or deleted stayed claimable, until verbs locked the running rows too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import asyncpg
import msgspec
import pytest

from onthedot.errors import Conflict, Invalid, NotFound
from onthedot.model.job import JobSpec
from onthedot.model.node import NodeLoad
from onthedot.model.policy import Overlap
from onthedot.model.run import ClaimedRun, Outcome
from onthedot.model.schedule import Schedule
from onthedot.model.work import Work
from onthedot.plan.outcome import OVERDUE_MS
from onthedot.store import Adopted, Claim, StartedWork, Store
from onthedot.store.driver import Row
from tests.store.conftest import START
from tests.store.hands import FAILED, OK, Hands, at, check_invariants, every, node_info, spec
from tests.store.stepping import Action, Stage, stage_of

TABLES = [
    "jobs",
    "job_tags",
    "deleted_jobs",
    "deleted_dead_letters",
    "job_chains",
    "runs",
    "run_params",
    "history",
    "job_stats",
    "dead_letters",
    "run_logs",
    "nodes",
    "duties",
    "endings",
    "notes",
]
_IDS = "SELECT id, state FROM jobs ORDER BY id"
HERE = "webhook@here"
SOON = START + 1500  # due in 1.5 s: a node may hold it already


class Scene:
    """One job and whatever was done to it before the two begin; brought back before each schedule; and what must hold
    after it."""

    def __init__(self, store: Store, watcher: asyncpg.Connection[Any]) -> None:
        self.hands = Hands(store, "n1")
        self.job = 0
        self.run: ClaimedRun | None = None
        self.before: set[str] = set()
        self.chained = False
        self.names: int | None = None  # in chains, afterwards
        self._watcher = watcher

    async def set(self, job: JobSpec, *, claimed: bool = False, waiting: bool = False) -> None:
        await self.hands.store.register(node_info("n1"))
        (view,) = await self.hands.create(job)
        self.job = view.id
        if claimed:
            await self.hands.sql(f"UPDATE test_clock SET now_ms = {SOON}")
            (self.run,) = [run for run in (await self.hands.claim()).runs if run.job_id == self.job]
        if waiting:
            await self.hands.store.run_job(1, self.job)
        self.before = {row["id"] for row in await self.hands.live() if not row["cursor"]}
        await self._watcher.execute("".join(f"CREATE TABLE was_{t} AS SELECT * FROM {t};" for t in TABLES))
        back = "".join(f"DELETE FROM {t}; INSERT INTO {t} SELECT * FROM was_{t};" for t in TABLES)
        # A function's statements are planned once, not for each of a hundred schedules.
        await self._watcher.execute(f"CREATE FUNCTION reset() RETURNS void LANGUAGE plpgsql AS 'BEGIN {back} END'")

    async def reset(self) -> None:
        await self._watcher.fetchval("SELECT reset()")

    def fired(self) -> ClaimedRun:
        assert self.run is not None
        return self.run

    async def finish_first(self, outcome: Outcome = OK) -> None:
        """Before the two begin."""
        await self.hands.finish(self.fired(), outcome=outcome)
        await self._keep()

    async def open_first(self, now: int) -> None:
        """Before the two begin, its node started its work and let go of it; now nobody has it."""
        run, store = self.fired(), self.hands.store
        work = Work(target=msgspec.to_builtins(run.spec.target), try_number=1, place="here")
        begun = StartedWork(run_id=run.id, token=run.token, work=work, capability=HERE, within_ms=1000)
        assert await store.begin_work("n1", [begun])
        assert await store.detach("n1", [(run.id, run.token, 1000)])
        await self.hands.sql(f"UPDATE test_clock SET now_ms = {now}")
        await self._keep()

    async def _keep(self) -> None:
        for table in TABLES:
            await self._watcher.execute(f"DELETE FROM was_{table}; INSERT INTO was_{table} SELECT * FROM {table};")

    async def check_closed(self) -> None:
        """In the end a job's row says what reading the job said all along."""
        states = [(await self.hands.store.get_job(1, row["id"])).state for row in await self.hands.sql(_IDS)]
        while await self.hands.store.close_one_offs():
            pass
        assert [row["state"] for row in await self.hands.sql(_IDS)] == states

    async def check(self, results: tuple[Any, Any]) -> None:
        for result in results:
            refused = isinstance(result, (Conflict, NotFound)) or (self.names and isinstance(result, Invalid))
            assert not isinstance(result, Exception) or refused, result
        jobs = await self._watcher.fetch("SELECT * FROM jobs")
        live = await self._watcher.fetch("SELECT *, (SELECT now_ms FROM test_clock) AS now FROM runs")
        ledger = await self._watcher.fetch("SELECT * FROM history")
        check_invariants(jobs, live, ledger, await self._watcher.fetch("SELECT * FROM endings"))
        after = {row["id"] for row in [*live, *ledger]}
        assert self.before <= after, f"lost: {self.before - after}"
        if self.chained:
            started = [row for row in [*live, *ledger] if row["kind"] == "chain"]
            assert len(started) + await self._watcher.fetchval("SELECT count(*) FROM notes") == 1
        if self.names is not None:
            assert await self._watcher.fetchval("SELECT count(*) FROM job_chains") == self.names
        claims = [run for result in results if isinstance(result, Claim) for run in result.runs]
        check_held(jobs, live, claims)
        check_lanes(live)
        taken = [each for result in results if isinstance(result, list) for each in result]
        adopted = [each.run.id for each in taken if isinstance(each, Adopted)]
        assert len(adopted) == len(set(adopted)), "adopted twice"


def check_held(jobs: Sequence[Row], live: Sequence[Row], claimed: Sequence[ClaimedRun]) -> None:
    """A run that a node holds ahead fires the job as it is now, or is on its way back."""
    versions = {row["id"]: row["version"] for row in jobs if row["state"] != "paused"}
    rows = {(row["id"], row["token"]): row for row in live if row["state"] == "running"}
    for run in claimed:
        row = rows.get((run.id, run.token))
        if row is not None and row["kind"] != "manual" and row["due_at"] > row["now"] and row["orders"] is None:
            assert versions.get(run.job_id) == run.version, f"{run.id} fires what was changed"


def check_lanes(live: Sequence[Row]) -> None:
    """Who waits for a lane, waits for somebody."""
    held = {row["lane"] for row in live if row["state"] == "running"}
    ready = {row["lane"] for row in live if row["state"] == "pending" and row["parked"] is None and not row["cursor"]}
    stuck = [row["id"] for row in live if row["parked"] == "lane" and row["lane"] not in held | ready]
    assert not stuck, f"waits for nobody: {stuck}"


@pytest.fixture
async def scene(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Scene, Stage]]:
    async with stage_of(postgres_url, monkeypatch) as (stage, store, watcher):
        yield Scene(store, watcher), stage


def claim(store: Store) -> Awaitable[Claim]:
    return store.claim("n1", offers=["webhook"], level=1, limit=10, lookahead_ms=2000)


def other_claim(store: Store) -> Awaitable[Claim]:
    return store.claim("n2", offers=["webhook"], level=1, limit=10, lookahead_ms=2000)


def close_one_offs(store: Store) -> Awaitable[int]:
    return store.close_one_offs()


def adopt(node: str) -> Action:
    return lambda store: store.adopt(node, [HERE], level=1, limit=10)


Verb = Callable[[Scene], Action]


def edit(to: JobSpec) -> Verb:
    return lambda scene: lambda store: store.update_job(1, scene.job, lambda _: to)


def retag(scene: Scene) -> Action:
    return lambda store: store.update_job(1, scene.job, lambda old: msgspec.structs.replace(old, params={"v": 2}))


def finish(outcome: Outcome) -> Verb:
    return lambda scene: lambda store: Hands(store, "n1").finish(scene.fired(), outcome=outcome)


async def _lose(store: Store) -> int:
    await store.declare_lost("n1", 0)
    return await store.reclaim()


VERBS: dict[str, Verb] = {
    "edit": edit(spec(every(700))),
    "retarget": retag,
    "pause": lambda scene: lambda store: store.pause_job(1, scene.job),
    "delete": lambda scene: lambda store: store.delete_job(1, scene.job),
    "run": lambda scene: lambda store: store.run_job(1, scene.job),
    "backfill": lambda scene: lambda store: store.backfill_job(1, scene.job, start=START - 5000, end=SOON, force=True),
    "cancel": lambda scene: lambda store: store.cancel_run(1, f"{scene.job}-{SOON}"),
    "reclaim": lambda scene: _lose,
    "beat": lambda scene: lambda store: store.beat("n1", NodeLoad()),
    "claim": lambda scene: other_claim,
}


async def explore(scene: Scene, stage: Stage, one: Verb, other: Verb) -> int:
    """All schedules of the two, each once; how many there were."""

    async def check() -> None:
        await scene.check((stage.actors[0].result, stage.actors[1].result))

    return await stage.explore(lambda: (one(scene), other(scene)), before=scene.reset, after=check)


@pytest.mark.parametrize("verb", list(VERBS))
async def test_claim_of_a_recurring_job(scene: tuple[Scene, Stage], verb: str) -> None:
    """The node takes 12:00:01.5 ahead while somebody changes the job."""
    play, stage = scene
    await play.set(spec(every(1500)))
    assert await explore(play, stage, lambda _: claim, VERBS[verb]) > 10
    assert not stage.actors[0].hung, "a claim waits for nobody"


@pytest.mark.parametrize("verb", ["edit", "retarget", "pause", "delete", "run", "cancel", "reclaim", "claim"])
async def test_claim_of_a_one_off(scene: tuple[Scene, Stage], verb: str) -> None:
    play, stage = scene
    verbs = {**VERBS, "edit": edit(spec(at(START + 900)))}
    await play.set(spec(at(SOON)))
    assert await explore(play, stage, lambda _: claim, verbs[verb]) > 10
    assert not stage.actors[0].hung, "a claim waits for nobody"


RECURRING, ONE_OFF = every(1500), at(SOON)


@pytest.mark.parametrize(
    ("schedule", "outcome", "verb"),
    [
        *((RECURRING, FAILED, verb) for verb in ("pause", "delete", "edit", "reclaim")),
        *((RECURRING, OK, verb) for verb in ("delete", "cancel")),
        *((ONE_OFF, FAILED, verb) for verb in ("pause", "delete", "cancel", "reclaim")),
        *((ONE_OFF, OK, verb) for verb in ("edit", "retarget", "delete", "cancel")),
    ],
)
async def test_finish(scene: tuple[Scene, Stage], schedule: Schedule, verb: str, outcome: Outcome) -> None:
    play, stage = scene
    verbs = {**VERBS, "edit": edit(spec(at(START + 9000)) if schedule.at else spec(every(700)))}
    await play.set(spec(schedule), claimed=True)
    assert await explore(play, stage, finish(outcome), verbs[verb]) > 5


@pytest.mark.parametrize("verb", ["edit", "retarget", "pause", "delete", "run", "close_one_offs", "finish"])
async def test_closing_one_offs(scene: tuple[Scene, Stage], verb: str) -> None:
    """The run of a one-off is over, its job's row does not say so yet, and somebody does something with the job."""
    play, stage = scene
    edits = {"edit": edit(spec(at(START + 9000))), "close_one_offs": lambda _: close_one_offs, "finish": finish(OK)}
    await play.set(spec(at(SOON)), claimed=True)
    if verb != "finish":
        await play.finish_first()
    assert await explore(play, stage, lambda _: close_one_offs, {**VERBS, **edits}[verb]) > 2
    await play.check_closed()


@pytest.mark.parametrize("outcome", [OK, FAILED], ids=["done", "retry"])
async def test_claim_and_finish(scene: tuple[Scene, Stage], outcome: Outcome) -> None:
    play, stage = scene
    await play.set(spec(every(1500)), claimed=True, waiting=True)
    assert await explore(play, stage, lambda _: other_claim, finish(outcome)) > 5


@pytest.mark.parametrize(
    ("overlap", "verb"),
    [
        *(("queue", verb) for verb in ("done", "retry", "pause", "delete", "cancel", "reclaim", "claim", "give_back")),
        ("replace", "done"),
        ("replace", "retry"),
        ("skip", "done"),
    ],
)
async def test_lanes(scene: tuple[Scene, Stage], overlap: Overlap, verb: str) -> None:
    """One of the job runs, one asked for by hand is due: it must run, wait and be released, or be kept by the pause."""
    play, stage = scene
    verbs = {
        **VERBS,
        "done": finish(OK),
        "retry": finish(FAILED),
        "give_back": lambda scene: lambda store: store.give_back("n1", [(scene.fired().id, scene.fired().token)]),
    }
    await play.set(spec(every(1500), overlap=overlap), claimed=True, waiting=True)
    assert await explore(play, stage, lambda _: other_claim, verbs[verb]) > 5


@pytest.mark.parametrize("verb", ["adopt", "cancel", "delete", "pause", "detach", "overdue"])
@pytest.mark.parametrize("overlap", ["allow", "queue"])
async def test_adopt(scene: tuple[Scene, Stage], verb: str, overlap: Overlap) -> None:
    """A run is open. One node adopts it while somebody else does, wants something of it, or ends it as overdue."""
    play, stage = scene
    verbs: dict[str, Verb] = {
        **VERBS,
        "adopt": lambda _: adopt("n3"),
        "detach": lambda scene: lambda store: store.detach("n1", [(scene.fired().id, scene.fired().token, 1000)]),
        "overdue": lambda _: lambda store: store.reclaim(),
    }
    await play.set(spec(at(SOON), overlap=overlap), claimed=True)
    await play.open_first(SOON + 1000 + OVERDUE_MS if verb == "overdue" else SOON)
    assert await explore(play, stage, lambda _: adopt("n2"), verbs[verb]) > 5


GONE = Outcome(kind="error", error="410", parks="410")


def carry_out(store: Store) -> Awaitable[object]:
    return store.carry_out_notes()


@pytest.mark.parametrize("verb", ["edit", "pause", "delete", "run", "cancel", "claim", "finish", "carry_out"])
async def test_parking(scene: tuple[Scene, Stage], verb: str) -> None:
    """A run was told that its receiver is gone. Its job is parked while somebody does something with the job."""
    play, stage = scene
    verbs: dict[str, Verb] = {**VERBS, "finish": finish(GONE), "carry_out": lambda _: carry_out}
    await play.set(spec(every(1500)), claimed=True)
    if verb != "finish":
        await play.finish_first(GONE)
    assert await explore(play, stage, lambda _: carry_out, verbs[verb]) > 2


@pytest.mark.parametrize("verb", ["edit", "pause", "delete", "unchain", "claim", "carry_out"])
async def test_chaining(scene: tuple[Scene, Stage], verb: str) -> None:
    """A run has ended that another job follows. That gets its run, once, while somebody does something with it, or
    while it is named no more."""
    play, stage = scene
    (follower,) = await play.hands.create(spec(every(1500), key="b"))
    await play.set(msgspec.structs.replace(spec(at(SOON)), on_success=["b"]), claimed=True)
    named, play.job, play.chained = play.job, follower.id, True
    await play.finish_first()

    def unchain(_: Scene) -> Action:
        return lambda store: store.update_job(
            1, named, lambda old: msgspec.structs.replace(old, on_success=msgspec.UNSET)
        )

    changed = edit(spec(every(700), key="b"))
    verbs: dict[str, Verb] = {**VERBS, "edit": changed, "unchain": unchain, "carry_out": lambda _: carry_out}
    assert await explore(play, stage, lambda _: carry_out, verbs[verb]) > 2


async def test_half_a_cycle_each(scene: tuple[Scene, Stage]) -> None:
    """b → c and d → a are there; one adds a → b, the other c → d. They change different jobs, and one of them is
    refused."""
    play, stage = scene
    far = at(START + 10**9)
    chained = [("c", msgspec.UNSET), ("b", ["c"]), ("a", msgspec.UNSET)]
    made = await play.hands.create(*(msgspec.structs.replace(spec(far, key=k), on_success=on) for k, on in chained))
    await play.set(msgspec.structs.replace(spec(far, key="d"), on_success=["a"]))
    ids, play.names = {view.key: view.id for view in made}, 3

    def name(key: str, other: str) -> Verb:
        def named(old: JobSpec) -> JobSpec:
            return msgspec.structs.replace(old, on_success=[other])

        return lambda _: lambda store: store.update_job(1, ids[key], named)

    assert await explore(play, stage, name("a", "b"), name("c", "d")) > 10
