"""docs/architecture.md tells the way of a webhook run: a run is watched, and its way must be what the page says."""

from __future__ import annotations

import random
import re
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import CodeType, FrameType

import pytest

from onthedot.clock import SystemClock
from onthedot.engine import EngineSettings, Node
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec, JobView
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from onthedot.store import NewJob, RunFilter, Store, open_store
from onthedot.targets import EgressRule, Kind, build_targets
from tests.services.waiting import until
from tests.targets.receivers import server, written

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
SOURCES = f"{ROOT / 'src' / 'onthedot'}/"
LOOP = ("clock.py", "timerfd.py")  # who sleeps is called back by them, as by the event loop
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Edge = tuple[str, str]


class Watch:
    """Every call of one function of ours by another, in their order: (caller, callee), as `file.py:Class.method`."""

    def __init__(self) -> None:
        self.edges: list[Edge] = []

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and _is_ours(frame.f_code):
            caller = frame.f_back
            while caller is not None and not _is_ours(caller.f_code):
                caller = caller.f_back
            self.edges.append(("" if caller is None else _name(caller.f_code), _name(frame.f_code)))


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(SOURCES) and code.co_filename.removeprefix(SOURCES) not in LOOP


def _name(code: CodeType) -> str:
    return f"{code.co_filename.removeprefix(SOURCES)}:{code.co_qualname}"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(f"sqlite:///{tmp_path / 'watched.db'}", threads=False)  # all of it on this thread
    yield store
    await store.close()


@pytest.fixture
async def watched(store: Store) -> list[Edge]:
    """The second of two runs, which finds a connection open, from its creation to its row in the history."""
    targets = build_targets(egress=EgressRule(allow_private=True))
    async with server(written(OK)) as url, targets:
        clock, rng = SystemClock(), random.Random(1)
        async with Node(store=store, targets=targets, clock=clock, rng=rng, settings=EngineSettings(alone=True)):
            await _run(store, url)
            watch = Watch()
            sys.setprofile(watch)
            try:
                await _run(store, url)
            finally:
                sys.setprofile(None)
    return watch.edges


async def _run(store: Store, url: str) -> None:
    spec = JobSpec(schedule=Schedule(in_=Duration(300)), target=WebhookTarget(url=url))
    (job,) = await store.create_jobs([NewJob(tenant=1, spec=spec)])
    assert isinstance(job, JobView)
    await store.notify("due")

    async def is_done() -> bool:
        runs = await store.list_runs(1, RunFilter(job_id=job.id, status="DONE"))
        return bool(runs.items)

    await until(is_done)


def _section(heading: str) -> str:
    (text,) = re.findall(rf"^#+ [^\n]*{heading}[^\n]*\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def _levels() -> Iterator[list[tuple[str, int]]]:
    """The layers of each import contract: (module, how deep)."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for contract in pyproject["tool"]["importlinter"]["contracts"]:
        for container in contract.get("containers", ()):
            yield [
                (f"{container}.{module}", depth)
                for depth, layer in enumerate(contract["layers"])
                for module in re.split(r" [|:] ", layer)
            ]


LEVELS = list(_levels())


def _depth(module: str, levels: list[tuple[str, int]]) -> int | None:
    return next((depth for layer, depth in levels if f"{module}.".startswith(f"{layer}.")), None)


def _goes_up(edge: Edge) -> bool:
    """By any contract: from a module to one that it may not import."""
    caller, callee = (
        f"onthedot.{name.partition(':')[0]}".removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        for name in edge
    )
    for levels in LEVELS:
        below, above = _depth(caller, levels), _depth(callee, levels)
        if below is not None and above is not None and above < below:
            return True
    return False


def _is_asked_for(callee: str) -> bool:
    """What carries out a protocol of the caller's own layer (a driver, a kind), and what stands in an expression."""
    method = callee.rpartition(".")[2]
    return callee.startswith("store/sqlite/") or method in vars(Kind) or callee.endswith(">")


async def test_a_run_goes_the_way_of_the_page(watched: list[Edge]) -> None:
    way = re.findall(r"^\d+\. .*?`([\w/]+\.py:[\w.]+)`", _section("The path of a webhook run"), re.MULTILINE)
    assert len(way) > 8
    seen = iter(callee for _, callee in watched)
    missing = [hop for hop in way if hop not in seen]  # an iterator: each is looked for after the one before it
    assert missing == []
    assert f"| Hops of a webhook run | {len(way)} |" in PAGE


async def test_the_calls_that_go_up_are_those_of_the_page(watched: list[Edge]) -> None:
    told = set(re.findall(r"^\| `([\w/]+\.py:[\w.]+)` \|", _section("Calls that go up"), re.MULTILINE))
    path = [edge for edge in watched if not edge[0].startswith("engine/membership/")]  # a beat may come or not
    up = {callee for caller, callee in path if _goes_up((caller, callee)) and not _is_asked_for(callee)}
    assert up == told
    assert f"| Calls that go up | {len(told)} |" in PAGE
