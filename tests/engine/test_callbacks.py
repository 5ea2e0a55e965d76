"""Calls that are completed by a callback: sent, accepted, and then nobody's, until the receiver tells."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from onthedot.clock import FakeClock
from onthedot.model.callback import run_and_token, try_named
from onthedot.model.duration import Duration
from onthedot.model.run import Outcome
from onthedot.model.schedule import Schedule
from onthedot.store import open_store
from tests.engine.cluster import Cluster, Member
from tests.engine.making import FAILED, spec

BASE = "http://127.0.0.1:8000"
DONE = Outcome(kind="ok", detail={"result": 7})
BAD = Outcome(kind="error", retryable=True, error="no rows")


class Stage(Cluster):
    async def sender(self, **more: Any) -> Member:
        return await self.node(callback_base=BASE, **more)

    async def begin(self, schedule: Schedule | None = None, **policy: Any) -> int:
        wanted = {"completion": "callback", "completion_timeout": Duration(60_000), **policy}
        return (await self.create(spec(schedule=schedule, **wanted))).id

    async def accepted(self, member: Member, calls: int = 1) -> str:
        """The callback URL of the last call, once that many were accepted."""
        await self.until(lambda: len(member.sender.calls) == calls)
        await self.clock.advance(0.1)
        url = member.sender.calls[-1].callback
        assert isinstance(url, str)
        return url

    async def complete(self, url: str, outcome: Outcome = DONE) -> None:
        run_id, token = run_and_token(url)
        try_number = try_named(await self.store.callback_secret("unused"), run_id, token)
        assert try_number is not None, "not a token of this installation"
        await self.store.complete(run_id, try_number, outcome)


@pytest.fixture
async def stage(fake_clock: FakeClock):
    stage = Stage(fake_clock, await open_store("sqlite:///:memory:", fake_clock, threads=False))
    yield stage
    await stage.close()


async def test_it_is_accepted_and_then_nobody_has_it(stage):
    member = await stage.sender()
    job_id = await stage.begin()
    url = await stage.accepted(member)
    assert url.startswith(f"{BASE}/v1/runs/{job_id}-")
    run = await stage.run(job_id)
    assert (run.status, run.waiting, run.node, run.tries) == ("EXECUTING", "callback", None, 0)
    assert (member.node.load.held, member.node.load.running) == (0, 0), "no slot"
    await stage.complete(url)
    run = await stage.store.get_run(1, run.id)
    assert (run.status, run.result, run.tries) == ("DONE", 7, 1)


async def test_other_calls_get_no_callback(stage):
    member = await stage.sender()
    await stage.create(spec())
    await stage.until(lambda: member.sender.calls)
    assert member.sender.calls[0].callback is None


async def test_every_send_of_a_try_has_the_same_url_and_every_try_its_own(stage):
    first, second = await stage.sender(), await stage.sender()
    await stage.begin(delivery="at_least_once")
    held = first.sender.hold = second.sender.hold = asyncio.Event()
    await stage.until(lambda: first.sender.calls or second.sender.calls)
    had = first if first.sender.calls else second
    other = second if had is first else first
    had.kill()
    held.set()
    other.sender.hold = None
    other.sender.outcomes = [FAILED]
    await stage.until(lambda: len(other.sender.calls) == 2, most=30)
    urls = [call.callback for call in (*had.sender.calls, *other.sender.calls)]
    assert urls[0] == urls[1], "lost, and sent again: the same try"
    assert urls[2] != urls[1], "failed, and tried again"


async def test_a_callback_for_the_try_before_ends_it_while_the_next_one_waits(stage):
    member = await stage.sender()
    job_id = await stage.begin()
    member.sender.outcomes = [Outcome(kind="timeout", retryable=True, error="timed out")]
    await stage.until(lambda: len(member.sender.calls) == 2)
    await stage.clock.advance(0.2)
    await stage.complete(member.sender.calls[0].callback)
    assert (await stage.run(job_id)).status == "DONE"


async def test_one_that_fails_is_called_again(stage):
    member = await stage.sender()
    job_id = await stage.begin()
    await stage.complete(await stage.accepted(member), BAD)
    url = await stage.accepted(member, calls=2)
    await stage.complete(url)
    run = await stage.run(job_id)
    assert (run.status, run.tries, [each.outcome for each in run.attempts]) == ("DONE", 2, ["error", "ok"])


async def test_nobody_calls_back_in_time(stage):
    member = await stage.sender()
    job_id = await stage.begin()
    await stage.accepted(member)
    waited = await stage.until(lambda: len(member.sender.calls) == 2, most=70)
    assert 59 < waited < 65, "its time, a beat, and the backoff"
    run = await stage.run(job_id)
    assert run.attempts[0].error == "accepted, but not completed within 1m"


async def test_it_survives_the_end_of_every_node(stage):
    first = await stage.sender()
    job_id = await stage.begin()
    url = await stage.accepted(first)
    first.kill()
    await stage.clock.advance(20)
    await stage.complete(url)
    assert (await stage.run(job_id)).status == "DONE"
    second = await stage.sender()
    await stage.clock.advance(20)
    assert second.sender.calls == []


async def test_the_answer_to_the_acceptance_is_lost(stage):
    member = await stage.sender(lose=["finish"])
    job_id = await stage.begin()
    url = await stage.accepted(member)
    await stage.clock.advance(2)
    assert (await stage.run(job_id)).waiting == "callback"
    await stage.complete(url)
    assert (await stage.run(job_id)).status == "DONE"


async def test_a_receiver_that_completes_before_it_has_answered(stage):
    member = await stage.sender()
    hold = member.sender.hold = asyncio.Event()
    job_id = await stage.begin()
    await stage.until(lambda: member.sender.calls)
    await stage.complete(member.sender.calls[0].callback)
    hold.set()
    await stage.clock.advance(2)
    run = await stage.run(job_id)
    assert (run.status, run.tries, run.losses) == ("DONE", 1, 0)
    assert member.node.ready
    assert len(member.sender.calls) == 1


async def test_at_most_once_whose_node_is_lost_waits_for_its_callback(stage):
    first, second = await stage.sender(), await stage.sender()
    first.sender.hold = second.sender.hold = asyncio.Event()
    job_id = await stage.begin(delivery="at_most_once")
    await stage.until(lambda: first.sender.calls or second.sender.calls)
    had = first if first.sender.calls else second
    had.kill()
    await stage.clock.advance(15)
    run = await stage.run(job_id)
    assert (run.status, run.waiting) == ("EXECUTING", "callback")
    assert len(first.sender.calls) + len(second.sender.calls) == 1, "never sent again"
    await stage.complete(had.sender.calls[0].callback)
    assert (await stage.run(job_id)).status == "DONE"


async def test_at_most_once_whose_callback_never_comes_is_unknown(stage):
    first, second = await stage.sender(), await stage.sender()
    first.sender.hold = second.sender.hold = asyncio.Event()
    job_id = await stage.begin(delivery="at_most_once")
    await stage.until(lambda: first.sender.calls or second.sender.calls)
    (first if first.sender.calls else second).kill()
    await stage.clock.advance(65)
    run = await stage.run(job_id)
    assert (run.status, run.reason, run.outcome) == ("FAILED", "unknown", {"kind": "unknown"})


async def test_a_queued_run_follows_when_the_callback_comes(stage):
    """Its lane stays taken while nobody has it, also by the death of the node that had sent it."""
    first = await stage.sender()
    job_id = await stage.begin(Schedule(every=Duration(10_000)), overlap="queue")
    url = await stage.accepted(first)
    first.kill()
    second = await stage.sender()
    await stage.clock.advance(15)
    assert second.sender.calls == [], "the lane is taken"
    await stage.complete(url)
    await stage.store.notify("due")
    await stage.until(lambda: second.sender.calls, most=3)
    runs = [run for run in await stage.runs(job_id) if run.status in ("DONE", "EXECUTING")]
    assert [run.status for run in runs] == ["DONE", "EXECUTING"]


async def test_a_node_that_receivers_can_not_reach_sends_nothing(stage):
    member = await stage.node()
    job_id = await stage.begin()
    await stage.clock.advance(3)
    assert member.sender.calls == []
    run = await stage.run(job_id)
    assert "PUBLIC_URL" in (run.error or "")


async def test_a_node_without_an_api_uses_that_of_its_machine(stage):
    await stage.node("command:backup", roles=("api",), binding="127.0.0.1:9000", host="h")
    member = await stage.node("webhook", host="h")
    await stage.begin()
    await stage.clock.advance(3)
    url = await stage.accepted(member)
    assert url.startswith("http://127.0.0.1:9000/v1/runs/")
