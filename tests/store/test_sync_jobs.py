"""Sync: the jobs of a file become what it says, all of it or nothing."""

from __future__ import annotations

import pytest

from onthedot.errors import Conflict, Invalid
from onthedot.model.decoding import encode_json
from onthedot.model.instant import format_instant
from onthedot.store import JobFilter, Store, SyncReport
from tests.store.conftest import START, Times
from tests.store.given import change, create, fetch, history_of, runs_of, spec

FILE = "jobs.json"


def report(
    created: str = "", updated: str = "", unchanged: str = "", removed: str = "", adopted: str = "", kept: str = ""
) -> SyncReport:
    return SyncReport(
        created=created.split(),
        updated=updated.split(),
        unchanged=unchanged.split(),
        removed=removed.split(),
        adopted=adopted.split(),
        kept=kept.split(),
    )


async def keys(store: Store) -> list[str]:
    return sorted(job.key or "" for job in (await store.list_jobs(1, JobFilter())).items)


async def test_the_same_file_twice_changes_nothing(store: Store, times: Times) -> None:
    specs = [spec(key="a", tags=["t"]), spec(key="b", schedule={"in": "10s"})]
    assert await store.sync_jobs(1, FILE, specs, prune=True) == report(created="a b")
    before = await fetch(store, "SELECT * FROM jobs ORDER BY id"), await fetch(store, "SELECT * FROM runs ORDER BY id")
    await times.advance(60_000)
    assert await store.sync_jobs(1, FILE, specs, prune=True) == report(unchanged="a b")
    after = await fetch(store, "SELECT * FROM jobs ORDER BY id"), await fetch(store, "SELECT * FROM runs ORDER BY id")
    assert after == before


async def test_a_changed_job_keeps_its_id(store: Store, times: Times) -> None:
    await store.sync_jobs(1, FILE, [spec(key="a"), spec(key="b")], prune=False)
    before = await store.get_job_by_key(1, "a")
    assert await store.sync_jobs(1, FILE, [spec(key="a", name="x"), spec(key="b")], prune=False) == report(
        updated="a", unchanged="b"
    )
    after = await store.get_job_by_key(1, "a")
    assert (after.id, after.version, after.name, after.next_run) == (before.id, 2, "x", before.next_run)


async def test_a_removed_one_goes_only_with_prune(store: Store, times: Times) -> None:
    manual = await create(store, key="by-hand")
    await store.sync_jobs(1, "other.json", [spec(key="other")], prune=True)
    await store.sync_jobs(1, FILE, [spec(key="a"), spec(key="b")], prune=True)
    b = await store.get_job_by_key(1, "b")
    assert await store.sync_jobs(1, FILE, [spec(key="a")], prune=False) == report(unchanged="a", kept="b")
    assert await keys(store) == ["a", "b", "by-hand", "other"]
    assert await store.sync_jobs(1, FILE, [spec(key="a")], prune=True) == report(unchanged="a", removed="b")
    assert await keys(store) == ["a", "by-hand", "other"]
    assert [row["reason"] for row in await history_of(store, b)] == ["deleted"]
    assert await runs_of(store, b) == []
    assert (await store.get_job(1, manual.id)).version == 1


async def test_a_dry_run_tells_and_does_nothing(store: Store, times: Times) -> None:
    await store.sync_jobs(1, FILE, [spec(key="a"), spec(key="b")], prune=False)
    wanted = [spec(key="a", name="x"), spec(key="c")]
    assert await store.sync_jobs(1, FILE, wanted, prune=True, dry_run=True) == report("c", "a", "", "b")
    assert await keys(store) == ["a", "b"]
    assert (await store.get_job_by_key(1, "a")).version == 1


async def test_keys_of_others_are_refused_and_nothing_is_applied(store: Store, times: Times) -> None:
    manual = await create(store, key="mine")
    await store.sync_jobs(1, "other.json", [spec(key="theirs")], prune=True)
    await store.sync_jobs(1, FILE, [spec(key="a")], prune=True)
    with pytest.raises(Conflict, match=f"'mine' belongs to a job that is not from a file .job {manual.id}"):
        await store.sync_jobs(1, FILE, [spec(key="a", name="x"), spec(key="new"), spec(key="mine")], prune=True)
    with pytest.raises(Conflict, match=r"'theirs' belongs to the file 'other\.json'"):
        await store.sync_jobs(1, FILE, [spec(key="theirs")], prune=True)
    assert await keys(store) == ["a", "mine", "theirs"]
    assert (await store.get_job_by_key(1, "a")).name is None


async def test_every_job_of_a_file_has_a_key_of_its_own(store: Store) -> None:
    with pytest.raises(Invalid) as caught:
        await store.sync_jobs(1, FILE, [spec(key="a"), spec(), spec(key="a")], prune=False)
    assert [problem.path for problem in caught.value.problems] == ["jobs[1].key", "jobs[2].key"]
    assert await keys(store) == []


async def test_a_past_at_is_refused_only_when_it_is_new(store: Store, times: Times) -> None:
    at = {"at": format_instant(START + 10_000)}
    await store.sync_jobs(1, FILE, [spec(key="a", schedule=at)], prune=False)
    await times.advance(60_000)
    assert await store.sync_jobs(1, FILE, [spec(key="a", schedule=at)], prune=False) == report(unchanged="a")
    assert await store.sync_jobs(1, FILE, [spec(key="a", schedule=at, name="x")], prune=False) == report(updated="a")
    for wrong in ([spec(key="b", schedule=at)], [spec(key="a", schedule={"at": format_instant(START)})]):
        with pytest.raises(Invalid) as caught:
            await store.sync_jobs(1, FILE, wrong, prune=False)
        assert caught.value.problems[0].path == "jobs[0].schedule.at"
    assert await keys(store) == ["a"]


async def test_a_pause_by_hand_outlives_the_next_load(store: Store, times: Times) -> None:
    await store.sync_jobs(1, FILE, [spec(key="a")], prune=False)
    job = await store.get_job_by_key(1, "a")
    await store.pause_job(1, job.id)
    assert await store.sync_jobs(1, FILE, [spec(key="a")], prune=False) == report(unchanged="a")
    assert await store.sync_jobs(1, FILE, [spec(key="a", name="x")], prune=False) == report(updated="a")
    assert (await store.get_job(1, job.id)).state == "paused"


async def test_a_pause_in_the_file_counts_when_it_is_new(store: Store, times: Times) -> None:
    await store.sync_jobs(1, FILE, [spec(key="a")], prune=False)
    job = await store.get_job_by_key(1, "a")
    assert await store.sync_jobs(1, FILE, [spec(key="a", paused=True)], prune=False) == report(updated="a")
    assert (await store.get_job(1, job.id)).state == "paused"
    await store.resume_job(1, job.id)
    assert await store.sync_jobs(1, FILE, [spec(key="a", paused=True)], prune=False) == report(unchanged="a")
    assert (await store.get_job(1, job.id)).state == "active"
    assert await store.sync_jobs(1, FILE, [spec(key="a")], prune=False) == report(unchanged="a")
    await store.pause_job(1, job.id)
    assert await store.sync_jobs(1, FILE, [spec(key="a")], prune=False) == report(unchanged="a")


async def test_an_edit_by_hand_is_set_right_by_the_file(store: Store, times: Times) -> None:
    await store.sync_jobs(1, FILE, [spec(key="a", name="file")], prune=False)
    job = await store.get_job_by_key(1, "a")
    await change(store, job, key="a", name="hand")
    assert await store.sync_jobs(1, FILE, [spec(key="a", name="file")], prune=False) == report(updated="a")
    assert (await store.get_job(1, job.id)).name == "file"


async def test_tenants_have_their_own_files(store: Store, times: Times) -> None:
    await store.sync_jobs(1, FILE, [spec(key="a")], prune=True)
    assert await store.sync_jobs(2, FILE, [spec(key="a"), spec(key="b")], prune=True) == report(created="a b")
    assert await store.sync_jobs(2, FILE, [], prune=True) == report(removed="a b")
    assert await keys(store) == ["a"]


async def test_a_secret_in_the_file_stays(store: Store, times: Times) -> None:
    target = {"type": "webhook", "url": "https://example.com", "secret": "whsec_x"}
    specs = [spec(key="a", target=target)]
    await store.sync_jobs(1, FILE, specs, prune=False)
    assert await store.sync_jobs(1, FILE, specs, prune=False) == report(unchanged="a")
    assert b"whsec_x" not in encode_json(await store.get_job_by_key(1, "a"))


class TestKeysOfOthers:
    """A renamed file finds its keys taken: by what it was called before."""

    async def test_they_are_left_alone_and_the_rest_is_applied(self, store: Store, times: Times) -> None:
        await store.sync_jobs(1, "old.json", [spec(key="a"), spec(key="b")], prune=True)
        manual = await create(store, key="c")
        told = await store.sync_jobs(
            1, FILE, [spec(key="a", name="new"), spec(key="c"), spec(key="d")], prune=True, others="leave"
        )
        a = await store.get_job_by_key(1, "a")
        assert told.created == ["d"]
        nobodys = f"a job that is not from a file (job {manual.id})"
        assert told.held == {"a": f"the file 'old.json' (job {a.id})", "c": nobodys}
        assert (a.version, a.name) == (1, None)
        assert await keys(store) == ["a", "b", "c", "d"]

    async def test_they_are_refused_unless_asked_for(self, store: Store, times: Times) -> None:
        await store.sync_jobs(1, "old.json", [spec(key="a")], prune=True)
        held = await store.get_job_by_key(1, "a")
        with pytest.raises(Conflict, match=r"nothing was applied: 'a' belongs to the file 'old.json'") as refused:
            await store.sync_jobs(1, FILE, [spec(key="d"), spec(key="a")], prune=True)
        (problem,) = refused.value.problems
        assert (problem.path, problem.given) == ("jobs[1].key", "a")
        assert problem.message == f"belongs to the file 'old.json' (job {held.id})"
        assert "`adopt`" in str(problem.accepted)
        assert await keys(store) == ["a"]

    async def test_adopted_they_keep_their_id_and_history(self, store: Store, times: Times) -> None:
        await store.sync_jobs(1, "old.json", [spec(key="a"), spec(key="b"), spec(key="left")], prune=True)
        await create(store, key="c")
        before = {key: await store.get_job_by_key(1, key) for key in ("a", "b", "c")}
        specs = [spec(key="a"), spec(key="b", name="new"), spec(key="c", paused=True)]
        dry = await store.sync_jobs(1, FILE, specs, prune=True, others="adopt", dry_run=True)
        assert dry == report(updated="b c", unchanged="a", adopted="a b c")
        assert [row["source"] for row in await fetch(store, "SELECT source FROM jobs WHERE key = 'a'")] == ["old.json"]
        assert await store.sync_jobs(1, FILE, specs, prune=True, others="adopt") == dry
        for key, version in (("a", 1), ("b", 2), ("c", 2)):
            now = await store.get_job_by_key(1, key)
            assert (now.id, now.version) == (before[key].id, version)
        assert (await store.get_job_by_key(1, "c")).state == "paused"
        assert await store.sync_jobs(1, FILE, specs, prune=True) == report(unchanged="a b c")
        assert await store.sync_jobs(1, "old.json", [], prune=True) == report(removed="left")

    async def test_a_pause_by_hand_outlives_it(self, store: Store, times: Times) -> None:
        await store.sync_jobs(1, "old.json", [spec(key="a")], prune=True)
        await store.pause_job(1, (await store.get_job_by_key(1, "a")).id)
        await store.sync_jobs(1, FILE, [spec(key="a")], prune=True, others="adopt")
        assert (await store.get_job_by_key(1, "a")).state == "paused"

    async def test_what_it_was_called_before_is_still_its_own(self, store: Store, times: Times) -> None:
        """A source is written into a file whose jobs are kept under its name; those of its namesake stay."""
        await store.sync_jobs(1, FILE, [spec(key="a"), spec(key="namesake")], prune=False)
        told = await store.sync_jobs(1, "shop", [spec(key="a")], prune=True, others="leave", former=FILE)
        assert told == report(unchanged="a", adopted="a")
        assert await keys(store) == ["a", "namesake"]
        assert await store.sync_jobs(1, "shop", [], prune=True) == report(removed="a")


async def test_only_what_came_from_this_file_is_removed(store: Store, times: Times) -> None:
    """Where the source is only the name of a file, which another one may have."""
    mine, theirs = "host:/one/jobs.json", "host:/two/jobs.json"
    await store.sync_jobs(1, FILE, [spec(key="a"), spec(key="b"), spec(key="moved")], prune=True, file=mine)
    await store.sync_jobs(1, FILE, [spec(key="c"), spec(key="moved")], prune=True, file=theirs)
    assert await keys(store) == ["a", "b", "c", "moved"]
    assert await store.sync_jobs(1, FILE, [spec(key="a")], prune=True, file=mine) == report(
        unchanged="a", removed="b", kept="moved c"
    )
    assert await store.sync_jobs(1, FILE, [spec(key="a")], prune=True) == report(unchanged="a", removed="moved c")
