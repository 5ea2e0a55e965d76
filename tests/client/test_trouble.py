"""What goes wrong comes back as the error the server raised; what may be sent again is sent again."""

from __future__ import annotations

import pytest

from onthedot import errors
from onthedot.client import AsyncClient, Client
from onthedot.client.problems import error_of
from onthedot.model.duration import Duration
from onthedot.model.job import JobSpec
from onthedot.model.schedule import Schedule
from onthedot.model.targets import WebhookTarget
from tests.services.ports import free_port

SPEC = JobSpec(schedule=Schedule(every=Duration.parse("1m")), target=WebhookTarget(url="http://example.com/"))


@pytest.fixture
async def client(server, clock):
    async with AsyncClient(server.url, clock=clock) as client:
        yield client


@pytest.mark.parametrize(
    ("status", "kind", "raised"),
    [
        (400, "unreadable", errors.Unreadable),
        (401, "unauthorized", errors.Unauthorized),
        (403, "forbidden", errors.Forbidden),
        (404, "not-found", errors.NotFound),
        (409, "conflict", errors.Conflict),
        (412, "version-mismatch", errors.VersionMismatch),
        (413, "too-large", errors.TooLarge),
        (500, "internal", errors.ServerFailed),
        (503, "store-unavailable", errors.StoreUnavailable),
    ],
)
async def test_a_problem_becomes_the_error_it_was(server, client, status, kind, raised):
    server.problem(status, kind, "what is wrong")
    with pytest.raises(raised, match="what is wrong") as caught:
        await client.get_job(1)
    assert type(caught.value) is raised


@pytest.mark.parametrize(
    ("kind", "raised"),
    [
        ("invalid", errors.Invalid),
        ("not-available", errors.NotAvailable),
        ("idempotency-mismatch", errors.IdempotencyMismatch),
    ],
)
async def test_an_invalid_job_comes_back_field_by_field(server, client, kind, raised):
    fields = [{"path": "schedule.cron", "message": "no such minute", "given": "61 * * * *", "accepted": "0-59"}]
    server.problem(422, kind, errors=fields)
    with pytest.raises(raised) as caught:
        await client.create_job(SPEC)
    assert type(caught.value) is raised
    (problem,) = caught.value.problems
    assert (problem.path, problem.given, problem.accepted) == ("schedule.cron", "61 * * * *", "0-59")


def test_a_proxy_s_page_is_understood_by_its_status():
    assert isinstance(error_of(404, b"<html>gone</html>"), errors.NotFound)
    failed = error_of(502, b"<html>Bad Gateway</html>")
    assert isinstance(failed, errors.ServerFailed)
    assert "502" in str(failed)


async def test_something_else_on_that_port_is_said(server, client):
    server.answer(200, "<html>hello</html>")
    with pytest.raises(errors.NotOnTheDot, match=r"http://.* did not answer like an On the Dot server \(got 200"):
        await client.get_job(1)


@pytest.mark.parametrize("status", [302, 404, 405, 501])
async def test_a_server_of_another_kind_has_no_such_place(server, client, status):
    server.answer(status, "<html>nothing here</html>")
    with pytest.raises(errors.NotOnTheDot, match=f"got {status}"):
        await client.get_job(1)


async def test_other_json_says_what_is_missing(server, client):
    server.answer(200, {"ok": True})
    with pytest.raises(errors.NotOnTheDot, match=r"got 200 JSON for /v1/jobs/1: .*missing required field"):
        await client.get_job(1)


async def test_nobody_there_is_unreachable(clock):
    async with AsyncClient(f"http://127.0.0.1:{free_port()}", clock=clock, tries=3) as client:
        with pytest.raises(errors.Unreachable, match=r"can't reach http://127\.0\.0\.1:\d+: .*refused"):
            await client.get_job(1)
    assert len(clock.slept) == 2


@pytest.mark.parametrize("address", ["http://[nonsense", "ftp://127.0.0.1", "", "http://"])
async def test_an_address_that_is_none_is_said_at_once(clock, address):
    async with AsyncClient(address, clock=clock) as client:
        with pytest.raises(errors.Unreachable, match=r"not a valid server URL.*accepted: http:// or https:// with"):
            await client.get_job(1)
    assert clock.slept == []


async def test_an_unknown_host_is_said_in_words(clock):
    async with AsyncClient("http://onthedot.invalid", clock=clock, tries=1) as client:
        with pytest.raises(errors.Unreachable, match=r"onthedot\.invalid: the host name can't be resolved \(\w"):
            await client.get_job(1)


async def test_an_address_needs_no_scheme(server, job):
    server.answer(200, job())
    async with AsyncClient(server.url.removeprefix("http://")) as client:
        assert (await client.get_job(7)).id == 7


async def test_the_blocking_client_says_what_to_use_in_a_running_loop():
    client = Client("http://127.0.0.1:1")
    with pytest.raises(RuntimeError, match="use AsyncClient there"):
        client.list_jobs()
    with pytest.raises(RuntimeError, match="use AsyncClient there"):
        next(client.iter_jobs())


async def test_a_server_that_is_away_for_a_moment_is_asked_again(server, client, clock, job):
    server.problem(503, "store-unavailable")
    server.problem(503, "store-unavailable", **{"retry-after": "2"})
    server.answer(200, job())
    assert (await client.get_job(7)).id == 7
    assert len(server.seen) == 3
    assert 0.1 <= clock.slept[0] <= 0.2
    assert clock.slept[1] == 2


async def test_a_create_is_sent_again_under_the_same_name(server, client, job):
    server.cut()
    server.answer(201, job())
    await client.create_job(SPEC)
    names = {seen.headers["idempotency-key"] for seen in server.seen}
    assert len(server.seen) == 2
    assert len(names) == 1


async def test_what_could_act_twice_is_not_sent_again(server, client, clock):
    server.problem(503, "store-unavailable")
    with pytest.raises(errors.StoreUnavailable):
        await client.patch_job(7, {"name": "x"})
    assert len(server.seen) == 1
    assert clock.slept == []


async def test_pausing_twice_is_pausing_so_it_is_sent_again(server, client, job):
    server.problem(503, "store-unavailable")
    server.answer(200, job(state="paused"))
    assert (await client.pause_job(7)).state == "paused"


async def test_it_gives_up_in_the_end(server, client, clock):
    server.problem(503, "store-unavailable", "still away")
    with pytest.raises(errors.StoreUnavailable, match="still away"):
        await client.get_job(7)
    assert len(server.seen) == 4
    assert len(clock.slept) == 3


async def test_no_pause_is_longer_than_five_seconds(server, client, clock, job):
    server.answer(429, None, **{"retry-after": "3600"})
    server.answer(200, job())
    await client.get_job(7)
    assert clock.slept == [5.0]


async def test_a_wrong_answer_is_not_asked_for_again(server, client):
    server.problem(404, "not-found")
    with pytest.raises(errors.NotFound):
        await client.get_job(7)
    assert len(server.seen) == 1


async def test_redirects_are_not_followed(server, client):
    """A key must not go where the answer of somebody in between sends it."""
    server.answer(302, None, location="http://elsewhere.example/")
    with pytest.raises(errors.ServerFailed):
        await client.get_job(7)
    assert len(server.seen) == 1
