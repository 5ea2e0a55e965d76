"""Pages of lists end early when they are large: no answer is half a gigabyte, and nothing is left out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest

from onthedot.model.bulk import BulkRequest
from onthedot.model.decoding import encode_json
from onthedot.model.job import JobSpec, JobView
from onthedot.model.run import RunView
from onthedot.store import JobFilter, LetterFilter, Page, RunFilter, Store
from onthedot.store.driver import Transaction
from onthedot.store.jobs import views
from onthedot.store.paging import LONGEST_PAGE, within_bytes
from onthedot.store.queries import PAGE_BYTES, SMALL_BYTES
from tests.store.conftest import START, Times
from tests.store.given import execute
from tests.store.hands import REFUSED, Hands, at, spec

LARGE = 1_000_000
COUNT = 10
Ask = Callable[[str | None], Awaitable[Page[Any]]]


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


def params(size: int = LARGE) -> dict[str, Any]:
    return {"text": "é" * (size // 2)}


def large_jobs() -> list[JobSpec]:
    """Large ones with a small one behind each; every third without a name, so that a list by name has two parts."""
    found = []
    for n in range(COUNT):
        named = f"name {n:02}" if n % 3 else None
        facts: dict[str, Any] = {"tags": ["t"], "owner": "o", "name": named, "params": params()}
        found += [msgspec.structs.replace(spec(at(START + 3_600_000 + n), key=f"k{n:02}"), **facts)]
        found += [msgspec.structs.replace(spec(at(START + 3_600_000 + n)), tags=["t"], owner="o")]
    return found


async def all_pages(ask: Ask) -> list[Page[Any]]:
    pages = [await ask(None)]
    while pages[-1].next is not None:
        assert len(pages) < 100, "pages without end"
        pages.append(await ask(pages[-1].next))
    return pages


def check_sizes(pages: list[Page[Any]]) -> None:
    sizes = [len(encode_json(page.items)) for page in pages]
    assert max(sizes) < PAGE_BYTES + LARGE + 100_000, sizes
    assert len(sizes) == 2, sizes
    assert sizes[0] >= PAGE_BYTES, "it ended before it was full"


def test_a_page_ends_with_the_item_that_fills_it():
    assert within_bytes([]) == 0
    assert within_bytes([5, 5, 5], 100) == 3
    assert within_bytes([5, 5, 5], 10) == 2
    assert within_bytes([5, 5, 5], 9) == 2
    assert within_bytes([500, 1], 9) == 1, "at least one"
    assert SMALL_BYTES * LONGEST_PAGE <= PAGE_BYTES


@pytest.mark.parametrize(
    "by",
    [{}, {"sort": "name"}, {"sort": "-next"}, {"q": "k"}, {"tag": "t"}, {"owner": "o"}, {"status": "active"}],
    ids=str,
)
async def test_jobs(hands: Hands, by: dict[str, Any]):
    made = {job.id: len(job.params) for job in await hands.create(*large_jobs())}
    pages = await all_pages(lambda cursor: hands.store.list_jobs(1, JobFilter(**by, limit=LONGEST_PAGE, cursor=cursor)))
    listed = [job for page in pages for job in page.items]
    wanted = {job_id for job_id, large in made.items() if large} if by == {"q": "k"} else set(made)
    assert sorted(job.id for job in listed) == sorted(wanted)
    assert all(job.params == params() for job in listed if made[job.id]), "large ones are whole"
    check_sizes([page for page in pages if page.items])


async def test_a_job_that_is_gone_when_its_spec_is_read_is_left_out(hands: Hands, monkeypatch: pytest.MonkeyPatch):
    first, second = await hands.create(*large_jobs()[:3:2])
    read = views.read_views

    async def without_first(tx: Transaction, tenant: int, ids: Sequence[int]) -> dict[int, JobView]:
        return await read(tx, tenant, [each for each in ids if each != first.id])

    monkeypatch.setattr(views, "read_views", without_first)
    assert [job.id for job in (await hands.store.list_jobs(1, JobFilter())).items] == [second.id]


@pytest.mark.parametrize("by", [{}, {"trigger": "manual"}], ids=str)
async def test_runs_and_dead_letters(hands: Hands, times: Times, by: dict[str, Any]):
    job, store = await hands.job(at(START + 3_600_000)), hands.store
    for _ in range(COUNT):
        await store.run_job(1, job, params=params())
        await times.advance(1)

    def of_runs(**wanted: Any) -> Ask:
        return lambda cursor: store.list_runs(1, RunFilter(**by, **wanted, limit=LONGEST_PAGE, cursor=cursor))

    async def check(ask: Ask) -> None:
        pages = await all_pages(ask)
        check_sizes(pages)
        listed: list[RunView] = [run for page in pages for run in page.items]
        assert len({run.id for run in listed}) == len(listed) == COUNT
        assert all(run.params == params() for run in listed)

    await check(of_runs(until=START + 60_000))
    runs = (await hands.claim()).runs
    await check(of_runs(status="EXECUTING"))
    await hands.finish(*runs, outcome=REFUSED)
    await check(of_runs(until=START + 60_000))
    await check(lambda cursor: store.list_dead(1, LetterFilter(), limit=LONGEST_PAGE, cursor=cursor))
    assert len(await store.discard(1, LetterFilter(), note=None, actor=None)) == COUNT
    await check(lambda cursor: store.list_discarded(1, LetterFilter(), limit=LONGEST_PAGE, cursor=cursor))


async def test_versions(hands: Hands, times: Times):
    (job,) = await hands.create(msgspec.structs.replace(spec(at(START + 3_600_000)), params=params()))
    for n in range(2, COUNT + 1):
        await hands.store.update_job(1, job.id, partial(msgspec.structs.replace, name=f"v{n}"))
    pages = await all_pages(lambda cursor: hands.store.list_versions(1, job.id, limit=LONGEST_PAGE, cursor=cursor))
    check_sizes(pages)
    assert [each.version for page in pages for each in page.items] == [*range(COUNT, 0, -1)]
    oldest = await hands.store.get_version(1, job.id, 1)
    assert (oldest.version, oldest.current, oldest.spec.name) == (1, False, None)


async def test_operations(hands: Hands):
    (job,) = await hands.create(spec(at(START + 3_600_000), key="k"))
    for _ in range(COUNT):
        await hands.store.start_operation(1, BulkRequest(verb="pause", ids=[job.id]), actor="me")
    await execute(hands.store, f"""UPDATE operations SET params = '{{"x": "{"y" * LARGE}"}}'""")
    pages = await all_pages(lambda cursor: hands.store.list_operations(1, limit=LONGEST_PAGE, cursor=cursor))
    check_sizes(pages)
    ids = [each.id for page in pages for each in page.items]
    assert (len(set(ids)), ids) == (COUNT, sorted(ids, reverse=True))
