"""Labels that a job requires of a node: claimed only by who has them, told where nobody does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from onthedot import telemetry
from onthedot.model.job import JobSpec
from onthedot.model.schedule import Schedule
from onthedot.model.targets import CommandTarget
from onthedot.store import Store, TurnedAway
from onthedot.store.jobs.rows import decode_spec
from tests.store.conftest import START, Times
from tests.store.hands import FAILED, Hands, at, every, node_info, spec

MINUTE = 60_000


@pytest.fixture
def hands(store: Store, times: Times) -> Hands:
    return Hands(store)


def labelled(*labels: str, schedule: Schedule | None = None, **more: Any) -> JobSpec:
    return msgspec.structs.replace(spec(schedule, **more), requires=list(labels))


class TestClaim:
    @pytest.mark.parametrize(
        "more",
        [{}, {"schedule": every(MINUTE)}, {"schedule": every(MINUTE), "overlap": "skip"}, {"key": "k"}],
        ids=["simple", "recurring", "lane", "key"],
    )
    async def test_only_who_has_all_of_them_takes_it(self, hands: Hands, times: Times, more: dict[str, Any]):
        (job,) = await hands.create(labelled("gpu", "eu", "gpu", **more))
        assert job.requires == ["gpu", "eu", "gpu"]
        await times.advance(MINUTE)
        assert (await hands.claim(offers=["webhook", "webhook+eu", "webhook+gpu"])).runs == []
        (run,) = (await hands.claim(offers=["webhook", "webhook+eu,gpu"])).runs
        await hands.finish(run, outcome=FAILED)
        assert {row["requires"] for row in await hands.live()} == {"webhook+eu,gpu"}, "retries and the next slot, too"
        await hands.check()

    async def test_a_job_without_labels_requires_what_it_did(self, hands: Hands):
        await hands.create(spec(), labelled())
        assert [row["requires"] for row in await hands.live()] == ["webhook", "webhook"]
        assert "requires" not in (await hands.sql("SELECT spec FROM jobs ORDER BY id"))[0]["spec"]

    async def test_an_edit_lives_at_once(self, hands: Hands, times: Times):
        (job,) = await hands.create(labelled("gpu", schedule=at(START + 1500)))
        (held,) = (await hands.claim(offers=["webhook+gpu"])).runs
        await hands.store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, requires=["eu"]))
        (row,) = await hands.live()
        assert (row["requires"], row["orders"]) == ("webhook+eu", "recall")
        await hands.store.give_back(hands.node, [(held.id, held.token)])
        assert (await hands.claim(offers=["webhook", "webhook+gpu"])).runs == []
        await hands.store.update_job(1, job.id, lambda old: msgspec.structs.replace(old, requires=[]))
        (again,) = (await hands.claim()).runs
        assert again.id == held.id
        await hands.check()

    async def test_what_waits_for_its_destination_comes_back_to_who_has_them(self, hands: Hands):
        await hands.create(labelled("gpu", schedule=at(START + 500)))
        (run,) = (await hands.claim(offers=["webhook+gpu"])).runs
        place = "webhook+gpu@http://example.com"
        away = TurnedAway(run_id=run.id, token=run.token, version=run.version, requires=place)
        await hands.store.wait_for_destinations(hands.node, [away])
        assert (await hands.claim(offers=["webhook", "webhook+gpu", "webhook@http://example.com"])).runs == []
        assert await hands.store.required("", 10) == [place]
        (again,) = (await hands.claim(offers=[place])).runs
        assert again.id == run.id

    def test_a_target_that_is_not_known_here_keeps_its_labels(self):
        text = '{"schedule": {"in": 1}, "target": {"type": "teleport", "to": "mars"}, "requires": ["gpu"]}'
        job = decode_spec(text, "teleport:mars+gpu", 7)
        assert (job.target.capability(), job.requirement()) == ("teleport:mars", "teleport:mars+gpu")


class TestTold:
    async def test_what_is_due_and_nobody_can_take(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1", labels=["eu"]))
        await hands.store.register(node_info("n2", labels=["gpu"], offers=["command:c"]))
        (job,) = await hands.create(labelled("gpu", "eu", "fast"))
        assert [run.waiting for run in await hands.runs(status="PENDING")] == [None], "it is not due yet"
        await times.advance(2000)
        (run,) = await hands.runs()
        assert (run.status, run.waiting, run.waiting_for) == ("PENDING", "label", "fast, gpu")
        assert run.waiting_since == run.due_at
        alone = await hands.store.get_run(1, run.id)
        assert (alone.waiting, alone.waiting_for, alone.waiting_since) == ("label", "fast, gpu", run.due_at)
        present = await hands.store.run_at_present(1, job.id)
        assert present is not None
        assert present.waiting == "label"
        await hands.store.register(node_info("n3", labels=["fast", "gpu", "eu", "more"]))
        assert [(run.waiting, run.waiting_for) for run in await hands.runs()] == [(None, None)]
        await hands.store.declare_lost("n3", 0)
        assert [run.waiting for run in await hands.runs()] == ["label"]

    async def test_it_is_counted(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1", labels=["eu"]))
        await hands.create(
            spec(), labelled("eu"), labelled("gpu", "eu"), labelled("eu", target=CommandTarget(command="c"))
        )
        await times.advance(2000)
        backlog = await hands.store.backlog()
        assert (backlog.due, backlog.kinds) == (4, {"webhook": 3, "command": 1})
        assert backlog.unoffered == {"command:c+eu": 1, "webhook+eu,gpu": 1}
        assert backlog.lacking == {"webhook+eu,gpu": ("gpu",)}

    async def test_it_is_logged_once_and_when_it_is_over(self, hands: Hands, times: Times):
        await hands.store.register(node_info("n1"))
        await hands.create(labelled("gpu"))
        await times.advance(2000)
        said: list[Any] = []
        stop = telemetry.subscribe(lambda event: said.append((event.name, event.fields)))
        await hands.store.watch_ledger()
        assert [name for name, _ in said] == ["run.unroutable"]
        await hands.store.watch_ledger()
        await hands.store.register(node_info("n2", labels=["gpu"]))
        await hands.store.watch_ledger()
        stop()
        assert said == [
            ("run.unroutable", {"requires": "webhook+gpu", "n": 1, "labels": "gpu"}),
            ("run.routable", {"requires": "webhook+gpu"}),
        ]

    async def test_nodes_show_theirs(self, hands: Hands):
        await hands.store.register(node_info("n1", labels=["gpu", "eu"]))
        await hands.store.register(node_info("n2"))
        assert [node.labels for node in await hands.store.list_nodes()] == [["gpu", "eu"], []]


class TestRequired:
    async def test_each_once_in_order_and_no_more_than_asked_for(self, hands: Hands):
        sets = [labelled(*labels, schedule=each) for labels in ("a", "b", "ab") for each in (None, every(MINUTE))]
        await hands.create(*sets, spec(), labelled("c", schedule=every(MINUTE), overlap="skip"))
        everything = ["webhook", "webhook+a", "webhook+a,b", "webhook+b", "webhook+c"]
        assert await hands.store.required("", 10) == everything
        assert await hands.store.required("", 2) == everything[:2]
        assert await hands.store.required("webhook+a", 2) == everything[2:4]
        assert await hands.store.required("webhook+c", 2) == []
