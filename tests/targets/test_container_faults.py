"""What a real container engine can't be made to show: lost answers, cut streams, other engines' words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from onthedot.model.run import Outcome
from onthedot.model.targets import ContainerTarget
from onthedot.settings import ContainerSetting
from onthedot.targets import Call
from onthedot.targets.container.kind import Containers
from onthedot.targets.container.log_stream import ContainerLog, stamped
from onthedot.targets.container.verdict import outcome_of as outcome_verdict
from onthedot.targets.container_engine.access import EngineAddress
from onthedot.targets.container_engine.engine import ContainerEngine, ContainerState, EngineRefused
from onthedot.targets.container_engine.http_client import EngineAway
from onthedot.targets.contract import NOT_BEGUN, Ended, Handle
from onthedot.targets.process.last_line import LastLine
from tests.services.waiting import until
from tests.targets.engine_peer import CUT, EnginePeer, answer, entry, running_peer


@pytest.fixture
async def peer(tmp_path: Path) -> AsyncIterator[EnginePeer]:
    async with running_peer(tmp_path) as peer:
        yield peer


@pytest.fixture
async def kind(peer: EnginePeer) -> AsyncIterator[Containers]:
    kind = Containers(ContainerSetting(socket=peer.url, images=("*",)), capacity=2)
    kind.belong_to("ours")
    async with kind:
        yield kind


async def end(kind: Containers, **fields: Any) -> Ended:
    return await asyncio.wait_for(begin(kind, **fields)[1], 20)


def begin(kind: Containers, **fields: Any) -> tuple[Handle, asyncio.Future[Ended]]:
    of_call = {name: fields.pop(name) for name in ("adopted", "may_create", "place") if name in fields}
    target = ContainerTarget(image="app", **fields)
    call = Call(run_id="7-1", job_id=7, slot=1, attempt=1, target=target, **of_call)
    ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
    return kind.start(call, time.monotonic(), ended.set_result), ended


async def outcome_of(kind: Containers, **fields: Any) -> Outcome:
    outcome = (await end(kind, **fields)).outcome
    assert outcome is not None
    return outcome


async def test_adopted_after_its_image_was_disallowed_it_goes_on_but_is_not_created(peer):
    kind = Containers(ContainerSetting(socket=peer.url, images=("other",)), capacity=2)
    kind.belong_to("ours")
    async with kind:
        outcome = await outcome_of(kind, adopted=True)
        assert (outcome.kind, peer.container) == ("refused", None)
        assert "not allowed by the operator" in (outcome.error or "")
    async with Containers(ContainerSetting(socket=peer.url, images=("*",)), capacity=2) as allowing:
        allowing.belong_to("ours")
        assert (await outcome_of(allowing)).kind == "ok"
    async with kind:
        assert (await outcome_of(kind, adopted=True)).kind == "ok", "what is there is followed to its end"


async def test_a_lost_answer_to_create_makes_no_second_container(peer, kind):
    peer.says["POST /containers/create"] = [lambda: CUT]
    assert await end(kind) == Ended(None, None), "nothing was started"
    assert (peer.container is not None, peer.count("/start")) == (True, 0)
    await until(kind.capabilities, "the engine answers again")
    assert (await outcome_of(kind)).kind == "ok"
    assert (peer.container["starts"], peer.count("/start")) == (1, 1)
    assert peer.container["Id"] == "id2", "of what it does not know it starts nothing"


async def test_a_name_that_was_taken_in_between_is_ours(peer, kind):
    """Between our look and our create somebody else who has this try was faster."""
    peer.says["GET /containers/7-1-1/json"] = [lambda: answer(404, {"message": "No such container"})]
    peer.container = {"Config": {"Labels": labels()}, "State": {"Status": "created"}}
    assert (await outcome_of(kind)).kind == "ok"
    assert peer.container["starts"] == 1


async def test_a_name_that_is_taken_before_its_container_is_shown(peer, kind):
    missing = lambda: answer(404, {"message": "No such container"})  # noqa: E731
    peer.says["GET /containers/7-1-1/json"] = [missing, missing, missing]
    peer.container = {"Config": {"Labels": labels()}, "State": {"Status": "created"}}
    assert (await outcome_of(kind)).kind == "ok"
    assert peer.container["starts"] == 1


def labels(**others: str) -> dict[str, str]:
    return {"onthedot.installation": "ours", "onthedot.run": "7-1", "onthedot.try": "1"} | others


async def test_a_name_that_was_taken_and_has_ended_since_is_not_started_again(peer, kind):
    """Between our look and our create somebody else who has this try did all of it."""
    peer.says["GET /containers/7-1-1/json"] = [lambda: answer(404, {"message": "No such container"})]
    peer.container = {"Config": {"Labels": labels()}, "State": {"Status": "exited", "ExitCode": 0}, "starts": 1}
    assert (await outcome_of(kind)).kind == "ok"
    assert (peer.container["starts"], peer.count("/start")) == (1, 0)


async def test_podman_says_that_with_another_status(peer, kind):
    peer.says["POST /containers/create"] = [lambda: answer(500, {"message": 'the name "7-1-1" is already in use'})]
    assert (await outcome_of(kind)).kind == "ok"
    assert peer.container["starts"] == 1


async def test_a_name_that_somebody_else_took_is_a_failure(peer, kind):
    peer.container = {"Config": {"Labels": {}}, "State": {"Status": "running"}}
    outcome = await outcome_of(kind)
    assert (outcome.kind, outcome.retryable) == ("error", False)
    assert "not of this installation" in str(outcome.error)
    assert peer.count("/start") + peer.count("/stop") + peer.count("DELETE") == 0


async def test_a_lost_answer_to_start_is_followed_and_not_started_again(peer, kind):
    peer.says["POST /containers/id1/start"] = [lambda: CUT]
    assert (await outcome_of(kind)).kind == "ok"
    assert (peer.container["starts"], peer.count("/start")) == (1, 1)


async def test_a_start_that_the_engine_forgot_is_not_made_again(peer, kind):
    """Docker that is restarted while it starts a container calls it new, though its process may have run."""

    def forgets() -> bytes:
        peer.container |= {"State": {"Status": "created"}}
        return CUT

    peer.says["POST /containers/id1/start"] = [forgets]
    outcome = await outcome_of(kind)
    assert (outcome.kind, outcome.retryable) == ("error", True), "the next try is another container"
    assert "nobody knows whether it ran" in str(outcome.error)
    assert peer.count("/start") == 1


async def test_a_start_that_arrives_after_the_run_was_adopted_starts_nothing(peer, kind):
    """Its node asked for it and was killed. The engine, which is busy, shows the container as new until then."""

    def forgets() -> bytes:
        peer.container |= {"State": {"Status": "created"}}
        return CUT

    peer.says["POST /containers/id1/start"] = [forgets]
    first, ended = begin(kind)
    await until(lambda: peer.count("/start"), "its start was asked for")
    first.stop("gone")
    await asyncio.wait_for(ended, 20)
    assert (await outcome_of(kind, adopted=True)).kind == "ok"
    assert (peer.container["Id"], peer.container["starts"]) == ("id2", 1)
    with pytest.raises(EngineRefused, match="No such container"):
        await ContainerEngine(EngineAddress(peer.url)).start("id1")
    assert peer.container["starts"] == 1


async def test_a_container_that_is_replaced_before_its_start_is_looked_for_again(peer, kind):
    """Somebody else has this try, too, and has started a container of its own meanwhile."""

    def replaced() -> bytes:
        peer.container |= {"Id": "id9", "starts": 1}
        return answer(404, {"message": "No such container: id1"})

    peer.says["POST /containers/id1/start"] = [replaced]
    assert (await outcome_of(kind)).kind == "ok"
    assert (peer.count("/create"), peer.count("/start"), peer.container["starts"]) == (1, 1, 1)


async def test_one_that_begins_to_run_while_it_is_to_be_replaced_is_followed(peer, kind):
    peer.container = {"Id": "id7", "Config": {"Labels": labels()}, "State": {"Status": "created"}}

    def runs_now() -> bytes:
        peer.container |= {"State": {"Status": "exited", "ExitCode": 0}, "starts": 1}
        return answer(409, {"message": "You cannot remove a running container"})

    peer.says["DELETE /containers/id7"] = [runs_now]
    real = peer.container
    peer._do = lambda request, body, do=peer._do: answer(409) if request.startswith("DELETE") else do(request, body)
    assert (await outcome_of(kind, adopted=True)).kind == "ok"
    assert (peer.container is real, peer.count("/create"), peer.count("/start")) == (True, 0, 0)


async def test_containers_that_somebody_keeps_making_are_a_failure_in_the_end(peer, kind):
    peer.container = {"Id": "id7", "Config": {"Labels": labels()}, "State": {"Status": "created"}}
    peer._do = lambda request, body, do=peer._do: answer(409) if request.startswith("DELETE") else do(request, body)
    outcome = await outcome_of(kind, adopted=True)
    assert (outcome.kind, outcome.retryable, peer.count("/start")) == ("error", True, 0)
    assert "keeps creating" in str(outcome.error)


async def test_one_that_is_new_and_may_run_once_only_is_not_started_by_who_adopts_it(peer, kind):
    peer.container = {"Config": {"Labels": labels()}, "State": {"Status": "created"}}
    outcome = await outcome_of(kind, adopted=True, may_create=False)
    assert (outcome.kind, peer.count("/start")) == ("unknown", 0)
    assert (await outcome_of(kind, adopted=True)).kind == "ok"


async def test_what_is_gone_while_another_engine_answers_is_not_gone(peer, kind):
    """The socket was given to another engine for a moment: only who had the container can say that it is gone."""
    peer.says["POST /containers/id1/start"] = [lambda: answer(204)]
    looks = iter(range(100))

    def elsewhere() -> bytes:
        peer.info["ID"] = "OTHER" if next(looks) < 1 else "AB:CD"
        return answer(404, {"message": "No such container"})

    first = lambda: answer(404, {"message": "none"})  # noqa: E731
    peer.says["GET /containers/7-1-1/json"] = [first, *[elsewhere] * 3]
    outcome = await outcome_of(kind)
    assert "removed by somebody else" in str(outcome.error)
    assert peer.says["GET /containers/7-1-1/json"] == [], "it was asked until it was the right one that said so"


@pytest.mark.parametrize("may_create", [False, True])
async def test_adopted_it_is_not_gone_because_another_engine_was_asked_for_it(peer, kind, may_create):
    """The other one has answered, and the right one is back before anybody asks who it is."""
    peer.container = {"Config": {"Labels": labels()}, "State": {"Status": "exited", "ExitCode": 0}}
    peer.says["GET /containers/7-1-1/json"] = [lambda: answer(404, {"message": "No such container"})]
    assert (await outcome_of(kind, adopted=True, may_create=may_create)).kind == "ok"
    assert peer.count("/create") + peer.count("/start") == 0


async def test_adopted_it_is_gone_only_if_the_engine_says_so_where_it_began(peer, kind):
    """Claimed while the right engine answered, and started when another one did: nobody else's word counts."""
    assert await end(kind, adopted=True, place="container@elsewhere") == NOT_BEGUN
    assert (await outcome_of(kind, adopted=True, may_create=False, place=kind.adopted_by(None))).kind == "unknown"


def runs(peer: EnginePeer) -> None:
    peer.container = {"Config": {"Labels": labels()}, "State": {"Status": "running", "StartedAt": ""}}


async def test_what_another_engine_does_not_have_was_not_stopped_there(peer, kind):
    runs(peer)
    handle, ended = begin(kind, adopted=True)
    await until(lambda: peer.count("/wait"), "it is followed")

    def elsewhere() -> bytes:
        peer.info["ID"] = "OTHER"
        return answer(404, {"message": "No such container"})

    def back() -> bytes:
        assert not ended.done()
        peer.info["ID"] = "AB:CD"
        return answer(204)

    peer.says["POST /containers/7-1-1/stop"] = [elsewhere, back]
    handle.stop("cancelled")
    await asyncio.wait_for(ended, 20)
    assert (peer.count("/stop"), peer.count("/kill")) == (2, 0)


async def test_an_engine_that_does_not_stop_it_is_asked_until_the_time_is_up_and_not_told_to_kill(
    peer, kind, monkeypatch
):
    """That comes with a second request: it must not be taken for one that the time is up."""
    monkeypatch.setattr("onthedot.targets.container.following.STOP_WITHIN", 0.5)
    runs(peer)
    handle, ended = begin(kind, adopted=True)
    await until(lambda: peer.count("/wait"), "it is followed")
    peer.says["POST /containers/7-1-1/stop"] = [lambda: CUT] * 100
    handle.stop("timeout")
    assert (await asyncio.wait_for(ended, 20)).outcome is None
    assert (peer.count("/stop") >= 2, peer.count("/kill")) == (True, 0)
    handle, ended = begin(kind, adopted=True)
    before = peer.count("/wait")
    await until(lambda: peer.count("/wait") > before, "it is followed")
    handle.stop("timeout")
    await asyncio.sleep(0)
    handle.stop("timeout")
    await asyncio.wait_for(ended, 20)
    assert peer.count("/kill") == 1, "asked again, it is killed at once"


async def test_an_image_is_pulled_and_what_the_engine_says_in_the_end_counts(peer, kind):
    missing = {"message": "No such image: docker.io/library/app:latest"}
    progress = b'{"status":"Pulling"}\r\n{"errorDetail":{},"error":"manifest unknown"}\r\n'
    peer.says["POST /containers/create"] = [lambda: _without(peer, answer(404, missing))]
    peer.says["POST /images/create?fromImage=docker.io%2Flibrary%2Fapp%3Alatest"] = [lambda: answer(200, progress)]
    outcome = await outcome_of(kind)
    assert outcome.error == "not started: image docker.io/library/app:latest can't be pulled: manifest unknown"
    peer.says["POST /containers/create"] = [lambda: _without(peer, answer(404, missing))]
    peer.says["POST /images/create"] = [lambda: answer(200, b'{"status":"Downloaded"}\r\n')]
    assert (await outcome_of(kind)).kind == "ok"
    before = peer.count("POST /images/create")
    peer.container = None
    peer.says["POST /images/create"] = [lambda: answer(200, b'{"status":"Image is up to date"}\r\n')]
    assert (await outcome_of(kind, pull="always")).kind == "ok"
    assert peer.count("POST /images/create") == before + 1


def _without(peer: EnginePeer, said: bytes) -> bytes:
    peer.container = None
    return said


async def test_podman_has_a_place_that_stays_the_same(peer):
    peer.version["Components"] = [{"Name": "Podman Engine"}]
    first = await ContainerEngine(EngineAddress(peer.url)).about()
    peer.info["ID"] = "another one with each look"
    second = await ContainerEngine(EngineAddress(peer.url)).about()
    assert (first.title, first.place) == ("Podman 9.9", second.place)
    peer.info["Name"] = "elsewhere"
    assert (await ContainerEngine(EngineAddress(peer.url)).about()).place != first.place


async def test_an_engine_that_can_not_limit_memory_runs_nothing(peer, kind):
    peer.info["MemoryLimit"] = False
    limitless = Containers(ContainerSetting(socket=peer.url, images=("*",)))
    async with limitless:
        assert limitless.capabilities() == []
    (said,) = await limitless.diagnose()
    assert "can't limit memory" in said.found
    assert said.advice is not None


@pytest.mark.parametrize(
    "said",
    [
        CUT,
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 300 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n[1,2]",
    ],
)
async def test_what_is_no_answer_of_an_engine_is_none(peer, said):
    peer.container = {}
    peer.says["GET /containers/x/json"] = [lambda: said]
    with pytest.raises(EngineAway):
        await ContainerEngine(EngineAddress(peer.url)).inspect("x")


async def test_a_refusal_says_what_the_engine_says(peer):
    peer.container = {}
    peer.says["POST /containers/x/start"] = [lambda: answer(400, {"message": "bad"}), lambda: answer(500, b"plain")]
    for said in ("bad", "plain"):
        with pytest.raises(EngineRefused, match=said):
            await ContainerEngine(EngineAddress(peer.url)).start("x")


async def test_a_log_that_is_cut_goes_on_where_it_was(peer):
    at = "2026-11-17T21:00:0{}.00000000{}Z {}\n"
    first = entry(1, at.format(1, 1, "a")) + entry(2, at.format(2, 0, "b")) + entry(1, at.format(2, 0, "c"))
    again = entry(2, at.format(2, 0, "b")) + entry(1, at.format(2, 0, "c")) + entry(1, at.format(2, 0, "d"))
    cut = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(first), first)
    peer.container = {}
    peer.says["GET /containers/x/logs"] = [lambda: cut]
    peer.logs = again + entry(1, at.format(3, 0, "e"))
    shown: list[str] = []
    log = ContainerLog(ContainerEngine(EngineAddress(peer.url)), "x", shown.append)
    reading = asyncio.create_task(log.run())
    await until(lambda: "e\n" in shown, "the rest is there")
    log.over.set()
    await asyncio.wait_for(reading, 10)
    assert "".join(shown) == "a\nb\nc\nd\ne\n"
    assert any("since=1794949202.000000000" in request for request in peer.asked)


@pytest.mark.parametrize(
    ("given", "at", "text"),
    [
        (b"2026-11-17T21:00:00.123456789Z a b\n", (1794949200, 123456789), b"a b\n"),
        (b"2026-11-17T22:00:00.5+01:00 x", (1794949200, 500000000), b"x"),
        (b"2026-11-17T20:00:00-01:00 x", (1794949200, 0), b"x"),
        (b"no time\n", None, b"no time\n"),
        (b"alone\n", None, b"alone\n"),
    ],
)
def test_the_time_before_a_line(given, at, text):
    assert stamped(given) == (at, text)


def test_a_result_that_the_engine_may_have_missed_is_noted():
    printed = LastLine(lambda text: None)
    missed = outcome_verdict(ContainerState(status="exited"), 1 << 30, printed, cut=True)
    assert "may have missed what it printed" in missed.detail["result_note"]
    printed.write("[1]\n")
    assert outcome_verdict(ContainerState(status="exited"), 1, printed, cut=True).detail["result"] == [1]
    killed = outcome_verdict(ContainerState(status="exited", exit_code=137), 1 << 20, None, cut=True)
    assert killed.error == (
        "exit code 137 (SIGKILL; perhaps out of memory, limit 1 MB); "
        "the container engine was restarted or not reachable while it ran"
    )
