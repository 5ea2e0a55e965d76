"""Messages on real brokers, read by intakes of a real service: carried out once, in order, whatever happens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onthedot.brokers.reader import ReadFailed
from onthedot.brokers.readers import nats as nats_reader
from onthedot.brokers.readers import rabbitmq as rabbitmq_reader
from onthedot.brokers.readers import redis as redis_reader
from onthedot.errors import StoreUnavailable
from onthedot.intake import apply, dead_letters, examine_intakes
from onthedot.intake.commands import LARGEST
from onthedot.model.key import ApiKeySpec
from onthedot.model.run import RunView
from onthedot.service import Service
from onthedot.store import RunFilter
from onthedot.telemetry import Event
from tests.intake.desk import JOB, Desk, handled, jobs_of
from tests.services.consumers import CONSUMERS
from tests.services.waiting import until

# The first test of RabbitMQ may have to install it.
pytestmark = pytest.mark.timeout(300)
READERS: dict[str, Any] = {
    "nats": nats_reader.NatsReader,
    "redis": redis_reader.RedisReader,
    "rabbitmq": rabbitmq_reader.RabbitReader,
}


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dead node left is given to another one without waiting for long."""
    monkeypatch.setattr(nats_reader, "ACK_WAIT", 0.5)
    monkeypatch.setattr(redis_reader, "LEFT", 0.3)
    monkeypatch.setattr(redis_reader, "LOOK_EVERY", 0.1)


async def test_messages_do_what_requests_do(desk: Desk, service: Service, events: list[Event]):
    event = {"specversion": "1.0", "id": "e1", "source": "/shop", "type": "onthedot.job.create", "data": {"job": JOB}}
    await desk.send(
        {"op": "create", "key": "a", "job": {**JOB, "name": "first"}},
        b"\xff\xfe no JSON",
        {"op": "patch", "key": "a", "patch": {"tags": ["x"]}},
        {"op": "pause", "key": "a", "note": "stocktaking"},
        {"op": "pause", "key": "nobody"},
        {"op": "put", "key": "b", "job": JOB},
        {"op": "run", "key": "b", "params": {"n": 7}},
        {"op": "create", "job": {**JOB, "key": "c", "schedule": {"cron": "not a cron"}}},
        {"op": "create", "key": "d", "job": JOB},
        {"op": "delete", "key": "d"},
        {"op": "create", "key": "e", "job": {**JOB, "paused": True}},
        {"op": "resume", "key": "e"},
        {**event, "subject": "f"},
    )
    async with desk.reading(service) as intakes:
        assert await handled(events, 13) == {"ok": 10, "repeated": 0, "refused": 3}
        letters = await desk.letters(3)
        assert intakes.troubles() == {"orders": "ok"}
    jobs = await jobs_of(service)
    assert sorted(jobs, key=str) == ["a", "b", "e", "f"]
    a = jobs["a"]
    assert a.pause is not None
    assert (a.name, a.tags, a.state, a.pause.note) == ("first", ["x"], "paused", "stocktaking")
    assert (jobs["e"].state, a.owner, jobs["f"].owner) == ("active", "intake:orders", "intake:orders")
    (run,) = await _manual_runs(service, jobs["b"].id)
    assert run.params == {"n": 7}
    by_status = {letter["problem"]["status"]: letter for letter in letters}
    assert sorted(by_status) == [400, 404, 422]
    assert by_status[400]["message"]["body_base64"] == "//4gbm8gSlNPTg=="
    assert json.loads(by_status[404]["message"]["body"]) == {"op": "pause", "key": "nobody"}
    assert by_status[404]["message"]["id"] == "m4"
    assert by_status[422]["problem"]["errors"][0]["path"] == "job.schedule.cron"
    assert by_status[422]["intake"] == "orders"


async def test_a_second_delivery_changes_nothing(
    desk: Desk, service: Service, events: list[Event], soon: None, monkeypatch: pytest.MonkeyPatch
):
    """All acknowledgements are lost, and then the connection: between the store and the last one of them."""
    reader = READERS[desk.name]
    settle = reader.settle
    lost: list[str] = []

    async def lose(self: Any, received: Any) -> None:
        if lost:
            await settle(self, received)
            return
        job = (await jobs_of(service)).get("a")
        if job is not None and job.name == "second":
            lost.append(job.name)
            await service.patch_job(1, job.id, {"name": "later"})
            raise ReadFailed("the connection was lost")

    monkeypatch.setattr(reader, "settle", lose)
    await desk.send(
        {"op": "create", "job": JOB},
        {"op": "put", "key": "a", "job": {**JOB, "name": "first"}},
        {"op": "run", "key": "a"},
        {"op": "create", "key": "b", "job": JOB},
        {"op": "delete", "key": "b"},
        {"op": "patch", "key": "a", "patch": {"name": "second"}},
    )
    async with desk.reading(service):
        assert (await handled(events, 6, "repeated"))["repeated"] == 6
    jobs = await jobs_of(service)
    assert len(jobs) == 2
    assert jobs["a"].name == "later"
    assert len(await _manual_runs(service, jobs["a"].id)) == 1


async def _manual_runs(service: Service, job_id: int) -> list[RunView]:
    page = await service.list_runs(1, RunFilter(job_id=job_id, status="PENDING"))
    return [run for run in page.items if run.kind == "manual"]


async def test_messages_of_one_job_keep_their_order_and_nodes_share_them(
    desk: Desk, service: Service, events: list[Event]
):
    await desk.send(
        {"op": "create", "key": "a", "job": JOB},
        *({"op": "patch", "key": "a", "patch": {"name": f"n{number}"}} for number in range(40)),
    )
    async with desk.reading(service):
        assert (await handled(events, 41))["ok"] == 41
        assert (await service.get_job_by_key(1, "a")).name == "n39"
        async with desk.reading(service):
            await desk.send(*({"op": "create", "job": {**JOB, "name": f"j{number}"}} for number in range(150)))
            assert (await handled(events, 191))["refused"] == 0
    assert sorted(job.name or "" for job in (await jobs_of(service)).values()) == sorted(
        ["n39", *(f"j{number}" for number in range(150))]
    )


async def test_a_broker_that_is_restarted_is_found_again_and_nothing_is_lost(
    desk: Desk, service: Service, events: list[Event]
):
    async with desk.reading(service) as intakes:
        await desk.send({"op": "create", "key": "a", "job": JOB})
        await handled(events, 1)
        if desk.name != "rabbitmq":  # its restart takes seconds; a broken connection is the same to us
            desk.server.stop(kill=True)
            await until(lambda: intakes.troubles()["orders"] != "ok", "it says that the broker is away")
            desk.server.start()
        await desk.send({"op": "create", "key": "b", "job": JOB})
        await until(lambda: _has(service, "b"), "it reads again")
        await until(lambda: intakes.troubles() == {"orders": "ok"}, "it says so")
    assert sorted(await jobs_of(service), key=str) == ["a", "b"]


async def _has(service: Service, key: str) -> bool:
    return key in await jobs_of(service)


async def test_while_the_store_is_away_nothing_is_acknowledged_and_nothing_lost(
    on_nats: Desk, service: Service, events: list[Event], soon: None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(apply, "LONGEST_PAUSE", 0.1)
    transact = service.store.driver.transact

    async def away(*args: Any, **kwargs: Any) -> Any:
        raise StoreUnavailable("the database can't be reached")

    await on_nats.send({"op": "create", "key": "a", "job": JOB})
    monkeypatch.setattr(service.store.driver, "transact", away)
    async with on_nats.reading(service) as intakes:
        await until(lambda: "can't be reached" in intakes.troubles()["orders"], "it waits for the store")
    monkeypatch.setattr(service.store.driver, "transact", transact)
    assert await jobs_of(service) == {}
    async with on_nats.reading(service):  # stopped meanwhile: what was taken and not stored comes again
        assert (await handled(events, 1))["ok"] == 1
    assert [event.name for event in events if event.name in ("intake.paused", "intake.reading")] == [
        "intake.reading",
        "intake.paused",
        "intake.reading",
    ]


async def test_a_missing_dead_letter_topic_keeps_only_the_bad_ones(
    on_nats: Desk, service: Service, events: list[Event], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(dead_letters, "LONGEST_PAUSE", 0.2)
    missing = f"{on_nats.dead}.missing"
    (found,) = await examine_intakes(on_nats.settings(dead_letter=missing))
    assert "no JetStream stream has the subject" in found.found
    assert found.advice is not None
    async with on_nats.reading(service, dead_letter=missing) as intakes:
        await on_nats.send(b"bad", {"op": "create", "key": "a", "job": JOB})
        await until(lambda: _has(service, "a"), "those behind it go on")
        await until(lambda: "no JetStream stream" in intakes.troubles()["orders"], "it says what is missing")
        on_nats.dead = missing
        await CONSUMERS["nats"].prepare(on_nats.server, missing)
        (letter,) = await on_nats.letters(1)
        assert letter["message"]["body"] == "bad"
        await until(lambda: intakes.troubles() == {"orders": "ok"}, "nothing waits any more")
    (found,) = await examine_intakes(on_nats.settings(dead_letter=missing))
    assert found.advice is None
    assert "0 messages waiting" in found.found


async def test_an_intake_acts_for_its_tenant_and_within_its_rights(
    on_redis: Desk, service: Service, events: list[Event]
):
    await service.create_key(ApiKeySpec(name="k", scope="write", tenant="shop"))
    tenant = await service.tenant_named("shop")
    large = b'{"op": "create", "key": "' + b"x" * LARGEST + b'"}'
    await on_redis.send({"op": "create", "key": "a", "job": JOB}, {"op": "delete", "key": "a"}, large)
    async with on_redis.reading(service, tenant="shop", allow=("create", "run")):
        assert await handled(events, 3) == {"ok": 1, "repeated": 0, "refused": 2}
        forbidden, too_large = await on_redis.letters(2)
    assert list(await jobs_of(service, tenant)) == ["a"]
    assert await jobs_of(service) == {}
    assert (forbidden["problem"]["status"], forbidden["problem"]["detail"]) == (
        403,
        "this intake does not allow 'delete'; it allows create, run",
    )
    assert too_large["problem"]["status"] == 413
    message = too_large["message"]
    assert (message["truncated"], message["size"], len(message["body"])) == (True, len(large), 256 * 1024)


async def test_the_same_key_again_changes_nothing_unless_it_is_another_job(
    on_redis: Desk, service: Service, events: list[Event]
):
    await on_redis.send(
        {"op": "create", "key": "a", "job": JOB},
        {"op": "create", "key": "a", "job": JOB},
        {"op": "create", "key": "a", "job": {**JOB, "name": "other"}},
        {"op": "create", "key": "b", "job": JOB, "message_id": "same"},
        {"op": "create", "key": "c", "job": JOB, "message_id": "same"},
    )
    async with on_redis.reading(service):
        assert (await handled(events, 5))["refused"] == 2
        conflict, mismatch = await on_redis.letters(2)
    assert sorted(await jobs_of(service), key=str) == ["a", "b"]
    assert conflict["problem"]["status"] == 409
    assert mismatch["problem"]["errors"][0]["path"] == "message_id"
