"""Editing: the cursor, the waiting runs and what nodes hold ahead follow the new spec."""

from __future__ import annotations

import msgspec
import pytest

from onthedot.errors import Conflict, Invalid, NotFound, VersionMismatch
from onthedot.model.instant import NEVER, format_instant
from onthedot.model.job import JobSpec
from onthedot.model.secret_text import MASK
from onthedot.model.targets import WebhookTarget
from onthedot.store import Store
from tests.store.conftest import START, Times
from tests.store.given import (
    HOUR,
    change,
    create,
    cursor_of,
    execute,
    fetch,
    history_of,
    hold,
    retrying,
    runs_of,
    spec,
)

NEXT_HOUR = START - START % HOUR + HOUR
HALF_PAST = START - START % HOUR + HOUR // 2
WEBHOOK = {"type": "webhook", "url": "https://example.com/hook"}


class TestVersions:
    async def test_each_change_is_a_version(self, store: Store, times: Times) -> None:
        job = await create(store)
        await times.advance(5)
        changed = await change(store, job, name="new")
        assert (changed.version, changed.name) == (2, "new")
        assert (changed.created_at, changed.updated_at) == (job.created_at, format_instant(START + 5))
        assert await store.get_job(1, job.id) == changed

    async def test_an_equal_spec_changes_nothing(self, store: Store, times: Times) -> None:
        job = await create(store, name="x", tags=["a"])
        before = await runs_of(store, job)
        await times.advance(5)
        assert await change(store, job, name="x", tags=["a"]) == job
        assert await runs_of(store, job) == before

    async def test_if_match_names_the_version(self, store: Store, times: Times) -> None:
        job = await create(store)
        assert (await change(store, job, if_match=1, name="x")).version == 2
        with pytest.raises(VersionMismatch, match="version 2"):
            await change(store, job, if_match=1, name="y")
        with pytest.raises(VersionMismatch):
            await store.delete_job(1, job.id, if_match=1)
        assert (await store.get_job(1, job.id)).name == "x"

    async def test_an_error_in_the_change_leaves_all_as_it_was(self, store: Store, times: Times) -> None:
        job = await create(store)

        def refuse(_: JobSpec) -> JobSpec:
            raise Invalid.one("name", "no")

        with pytest.raises(Invalid):
            await store.update_job(1, job.id, refuse)
        assert await store.get_job(1, job.id) == job

    async def test_no_such_job(self, store: Store) -> None:
        with pytest.raises(NotFound):
            await store.update_job(1, 99, lambda old: old)
        with pytest.raises(NotFound):
            await store.delete_job(1, 99)


class TestKeysAndTags:
    async def test_a_key_can_change_to_a_free_one(self, store: Store, times: Times) -> None:
        job = await create(store, key="a")
        other = await create(store, key="b")
        assert (await change(store, job, key="c")).key == "c"
        with pytest.raises(Conflict, match=rf"'b' is already used by job {other.id}"):
            await change(store, job, key="b")
        assert (await create(store, key="a")).key == "a"
        assert (await store.get_job(1, job.id)).key == "c"

    async def test_a_key_can_be_given_up(self, store: Store, times: Times) -> None:
        job = await create(store, key="a")
        assert (await change(store, job)).key is None
        assert (await create(store, key="a")).id != job.id

    async def test_tags_follow(self, store: Store, times: Times) -> None:
        job = await create(store, tags=["a", "b"])
        await change(store, job, tags=["b", "c", "c"])
        assert await fetch(store, "SELECT tag FROM job_tags ORDER BY tag") == [{"tag": "b"}, {"tag": "c"}]
        await change(store, job)
        assert await fetch(store, "SELECT tag FROM job_tags") == []


class TestSecrets:
    async def test_the_mask_keeps_the_secret(self, store: Store, times: Times) -> None:
        job = await create(store, target={**WEBHOOK, "secret": "whsec_1"})
        changed = await change(store, job, name="x", target={**WEBHOOK, "secret": MASK})
        assert changed.version == 2
        assert _secret(await self._spec(store, job.id)) == "whsec_1"
        await change(store, job, target={**WEBHOOK, "secret": "whsec_2"})
        assert _secret(await self._spec(store, job.id)) == "whsec_2"
        await change(store, job, target=WEBHOOK)
        assert _secret(await self._spec(store, job.id)) is None

    async def test_the_mask_alone_is_no_change(self, store: Store, times: Times) -> None:
        job = await create(store, target={**WEBHOOK, "secret": "whsec_1"})
        assert await change(store, job, target={**WEBHOOK, "secret": MASK}) == job

    async def test_the_mask_is_no_secret(self, store: Store, times: Times) -> None:
        job = await create(store)
        with pytest.raises(Invalid, match="mask"):
            await change(store, job, target={**WEBHOOK, "secret": MASK})

    async def _spec(self, store: Store, job_id: int) -> JobSpec:
        return (await store.get_record(1, job_id)).spec


def _secret(spec: JobSpec) -> str | None:
    assert isinstance(spec.target, WebhookTarget)
    return spec.target.secret


class TestCursor:
    async def test_another_schedule_moves_it(self, store: Store, times: Times) -> None:
        job = await create(store)
        changed = await change(store, job, schedule={"cron": "30 * * * *"})
        (run,) = await runs_of(store, job)
        assert bool(run["cursor"])
        assert run["slot"] == max(HALF_PAST, HALF_PAST + HOUR * (HALF_PAST <= START))
        assert changed.next_run == format_instant(run["due_at"])
        assert await history_of(store, job) == []

    async def test_the_same_schedule_leaves_it(self, store: Store, times: Times) -> None:
        job = await create(store)
        await times.advance(60_000)
        changed = await change(store, job, name="x")
        assert (await cursor_of(store, job))["slot"] == NEXT_HOUR
        assert changed.next_run == job.next_run

    async def test_every_counts_from_the_edit_only_if_it_changed(self, store: Store, times: Times) -> None:
        job = await create(store, schedule={"every": "90s"})
        await times.advance(30_000)
        await change(store, job, schedule={"every": "90s"}, name="x")
        assert (await cursor_of(store, job))["slot"] == START + 90_000
        await change(store, job, schedule={"every": "60s"})
        assert (await cursor_of(store, job))["slot"] == START + 30_000 + 60_000

    async def test_jitter_and_overlap_move_the_instants(self, store: Store, times: Times) -> None:
        job = await create(store)
        await change(store, job, policy={"jitter": "30m"})
        run = await cursor_of(store, job)
        assert run["slot"] == NEXT_HOUR
        assert run["due_at"] != NEXT_HOUR
        await change(store, job, policy={"overlap": "queue"})
        run = await cursor_of(store, job)
        assert (run["due_at"], run["ready_at"], run["lane"]) == (NEXT_HOUR, NEXT_HOUR, job.id)
        await change(store, job)
        run = await cursor_of(store, job)
        assert (run["ready_at"], run["lane"]) == (NEXT_HOUR - 2000, None)

    async def test_from_recurring_to_one_off_and_back(self, store: Store, times: Times) -> None:
        job = await create(store)
        await change(store, job, schedule={"in": "10s"})
        run = await cursor_of(store, job)
        assert run["slot"] == START + 10_000
        assert not run["recurring"]
        assert (await fetch(store, "SELECT schedule_kind, target_type FROM jobs"))[0]["schedule_kind"] == "in"
        await change(store, job, schedule={"every": "1m"})
        run = await cursor_of(store, job)
        assert run["slot"] == START + 60_000
        assert bool(run["recurring"])

    async def test_slots_that_were_due_get_their_row(self, store: Store, times: Times) -> None:
        """The ledger has no hole: what the old schedule owed up to the edit is one range row."""
        job = await create(store, schedule={"every": "1m"})
        await times.advance(150_000)
        await change(store, job, schedule={"every": "1h"})
        (row,) = await history_of(store, job)
        assert (row["slot"], row["until_slot"], row["slots"]) == (START + 60_000, START + 120_000, 2)
        assert (row["status"], row["reason"], row["id"]) == ("skipped", "late", f"{job.id}-{START + 60_000}")


class TestStates:
    async def test_paused_in_the_spec_is_the_state(self, store: Store, times: Times) -> None:
        job = await create(store)
        paused = await change(store, job, paused=True)
        assert (paused.state, paused.paused, paused.next_run) == ("paused", True, None)
        assert (await cursor_of(store, job))["ready_at"] == NEVER
        active = await change(store, job, paused=False)
        assert (active.state, active.paused, active.next_run) == ("active", False, job.next_run)

    async def test_a_patch_on_a_job_paused_by_hand_resumes_it(self, store: Store, times: Times) -> None:
        job = await create(store)
        await store.pause_job(1, job.id)
        resumed = await store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, paused=False))
        assert resumed.state == "active"

    async def test_an_edit_revives_an_ended_job(self, store: Store, times: Times) -> None:
        job = await create(store, schedule={"in": "1s"})
        await execute(store, f"DELETE FROM runs WHERE job_id = {job.id}")
        await execute(store, f"UPDATE jobs SET state = 'ended', ended_at = {START} WHERE id = {job.id}")
        await times.advance(60_000)
        revived = await change(store, job, schedule={"in": "5s"})
        assert (revived.state, revived.next_run) == ("active", format_instant(START + 65_000))
        assert await fetch(store, "SELECT ended_at FROM jobs") == [{"ended_at": None}]

    async def test_an_edit_revives_a_quarantined_job(self, store: Store, times: Times) -> None:
        job = await create(store)
        await execute(store, f"UPDATE jobs SET state = 'quarantined', reason = 'broken' WHERE id = {job.id}")
        await execute(store, f"UPDATE runs SET parked = 'quarantined', ready_at = {NEVER} WHERE job_id = {job.id}")
        assert (await store.get_job(1, job.id)).reason == "broken"
        revived = await change(store, job, schedule={"cron": "30 * * * *"})
        assert (revived.state, revived.reason) == ("active", None)
        run = await cursor_of(store, job)
        assert (run["parked"], run["ready_at"]) == (None, run["due_at"] - 2000)


class TestWaitingRuns:
    async def test_they_need_what_the_new_target_needs(self, store: Store, times: Times) -> None:
        job = await create(store, schedule={"every": "1m"})
        first = await cursor_of(store, job)
        await retrying(store, first["id"], START + 70_000)
        await change(store, job, schedule={"every": "1m"}, target={"type": "command", "command": "backup"})
        assert [run["requires"] for run in await runs_of(store, job)] == ["command:backup"]

    async def test_a_retry_goes_on_under_another_schedule(self, store: Store, times: Times) -> None:
        job = await create(store, schedule={"every": "1m"})
        first = await cursor_of(store, job)
        await retrying(store, first["id"], START + 70_000)
        await change(store, job, schedule={"every": "1h"})
        runs = await runs_of(store, job)
        assert [bool(run["cursor"]) for run in runs] == [False, True]
        assert (runs[0]["id"], runs[0]["ready_at"]) == (first["id"], START + 70_000)

    async def test_given_back_but_not_in_the_new_schedule(self, store: Store, times: Times) -> None:
        job = await create(store, schedule={"every": "1m"})
        first = await cursor_of(store, job)
        await execute(store, f"UPDATE runs SET cursor = false, token = 1 WHERE id = '{first['id']}'")
        await change(store, job, schedule={"every": "7m"})
        (row,) = await history_of(store, job)
        assert (row["id"], row["status"], row["reason"], row["token"]) == (first["id"], "cancelled", "rescheduled", 1)
        assert [run["slot"] for run in await runs_of(store, job)] == [START + 7 * 60_000]

    async def test_lanes_follow_and_waiters_are_released(self, store: Store, times: Times) -> None:
        job = await create(store, schedule={"every": "1m"}, policy={"overlap": "queue"})
        first = await cursor_of(store, job)
        await execute(
            store,
            "UPDATE runs SET cursor = false, tries = 1, parked = 'lane', "
            f"ready_at = {NEVER} WHERE id = '{first['id']}'",
        )
        await change(store, job, schedule={"every": "1m"})
        (run,) = [run for run in await runs_of(store, job) if run["id"] == first["id"]]
        assert (run["lane"], run["parked"], run["ready_at"]) == (None, None, START)

    async def test_what_a_node_holds_ahead_is_recalled(self, store: Store, times: Times) -> None:
        job = await create(store, schedule={"in": "1s"})
        (run,) = await runs_of(store, job)
        await hold(store, run["id"])
        await change(store, job, schedule={"in": "1s"}, name="x")
        assert [run["orders"] for run in await runs_of(store, job)] == ["recall"]

    async def test_what_executes_may_be_given_back_if_it_has_not_begun(self, store: Store, times: Times) -> None:
        job = await create(store, schedule={"in": "1s"})
        (run,) = await runs_of(store, job)
        await hold(store, run["id"])
        await times.advance(1_000)
        await change(store, job, schedule={"in": "1s"}, name="x")
        assert [run["orders"] for run in await runs_of(store, job)] == ["recall"]

    async def test_a_cancel_is_not_overwritten_by_a_recall(self, store: Store, times: Times) -> None:
        job = await create(store, schedule={"in": "1s"})
        (run,) = await runs_of(store, job)
        await hold(store, run["id"])
        await execute(store, "UPDATE runs SET orders = 'cancel'")
        await change(store, job, schedule={"in": "1s"}, name="x")
        assert [run["orders"] for run in await runs_of(store, job)] == ["cancel"]


class TestPut:
    async def test_creates_then_replaces(self, store: Store, times: Times) -> None:
        job, created = await store.put_job(1, "a", lambda old: spec(key="a", name="one" if old is None else "two"))
        assert (created, job.name, job.version) == (True, "one", 1)
        again, created = await store.put_job(1, "a", lambda old: spec(key="a", name="one" if old is None else "two"))
        assert (created, again.name, again.version, again.id) == (False, "two", 2, job.id)
        same, created = await store.put_job(1, "a", lambda _: spec(key="a", name="two"))
        assert (created, same) == (False, again)

    async def test_if_match(self, store: Store, times: Times) -> None:
        with pytest.raises(VersionMismatch):
            await store.put_job(1, "a", lambda _: spec(key="a"), if_match=1)
        await store.put_job(1, "a", lambda _: spec(key="a"))
        with pytest.raises(VersionMismatch):
            await store.put_job(1, "a", lambda _: spec(key="a", name="x"), if_match=2)

    async def test_a_wrong_spec_creates_nothing(self, store: Store, times: Times) -> None:
        with pytest.raises(Invalid):
            await store.put_job(1, "a", lambda _: spec(key="a", target={**WEBHOOK, "secret": MASK}))
        assert await fetch(store, "SELECT id FROM jobs") == []
