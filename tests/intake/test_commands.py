"""What messages may say, what is wrong with those that say something else, and which may go together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from onthedot.brokers.reader import Received
from onthedot.errors import Invalid, OnTheDotError, TooLarge, Unreadable
from onthedot.intake.commands import LARGEST, Command, read_all
from onthedot.intake.dead_letters import RefusedMessage, compose_letter
from onthedot.intake.segments import segments
from onthedot.service.problems import describe_error
from tests.intake.desk import JOB


def read(message: Any, **fields: Any) -> Command | Exception:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    (found,) = read_all("orders", [Received(body=body, tag=1, **({"place": "p/1"} | fields))])
    return found


def command(message: Any, **fields: Any) -> Command:
    found = read(message, **fields)
    assert isinstance(found, Command), found
    return found


def event(**fields: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": "1", "source": "/s", "type": "onthedot.job.pause", **fields}


@pytest.mark.parametrize(
    ("message", "path", "what"),
    [
        ([1], "$", "must be an object"),
        ({}, "op", "missing"),
        ({"op": "explode"}, "op", "unknown operation"),
        ({"op": ["create"]}, "op", "unknown operation"),
        ({"op": "pause"}, "key", "missing"),
        ({"op": "pause", "key": "a", "id": 1}, "key", "given together with id"),
        ({"op": "pause", "key": "-"}, "key", "does not have the required format"),
        ({"op": "pause", "id": 0}, "id", "is too small"),
        ({"op": "pause", "key": "a", "until": 3}, "until", "expected text"),
        ({"op": "resume", "key": "a", "note": "x"}, "note", "unknown field"),
        ({"op": "run", "key": "a", "params": []}, "params", "expected"),
        ({"op": "create"}, "job", "required field is missing"),
        ({"op": "create", "id": 3, "job": JOB}, "id", "a new job gets its id"),
        ({"op": "create", "key": "b", "job": {**JOB, "key": "a"}}, "key", "differs"),
        ({"op": "put", "job": JOB}, "key", "missing"),
        ({"op": "create", "job": {**JOB, "colour": 1}}, "job.colour", "unknown field"),
        (event(specversion="0.3"), "specversion", "unknown version"),
        (event(id=None), "id", "missing"),
        (event(data=[1]), "data", "must be an object"),
        (event(data_base64="e30="), "data", "must be an object"),
        (event(data={"colour": 1}, subject="a"), "data.colour", "unknown field"),
        (event(type="com.example.other"), "data.op", "missing"),
    ],
)
def test_what_is_wrong_is_named(message: Any, path: str, what: str):
    found = read(message)
    assert isinstance(found, Invalid), found
    assert (found.problems[0].path, what in found.problems[0].message) == (path, True), found.problems
    assert found.problems[0].accepted


@pytest.mark.parametrize(
    ("message", "path"),
    [
        (b'{"op": "run", "key": "a", "op": "delete"}', "op"),
        (b'{"op": "delete", "key": "a", "key": "b"}', "key"),
        (b'{"op": "delete", "key": "a", "\\u006bey": "a"}', "key"),
        (b'{"op": "run", "key": "a", "params": {"x": [1, {"y": 1, "y": 1}]}}', "params.x[1].y"),
        (json.dumps(event()).encode()[:-1] + b', "data": {"op": "run", "op": "delete"}}', "data.op"),
    ],
)
def test_a_field_that_is_there_twice_is_refused(message: bytes, path: str):
    """Which of both was meant? A job was deleted whose run was asked for."""
    found = read(message)
    assert isinstance(found, Invalid), found
    (problem,) = found.problems
    assert (problem.path, problem.message, problem.accepted) == (path, "is there twice", "each field once")


def test_a_name_may_be_in_several_objects():
    params = {"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 2.5e3}, []], "key": "\u00fc", "op": 9**15}
    assert command({"op": "run", "key": "a", "params": params}).op == "run"


def test_what_is_no_json_or_too_large_is_said_so():
    assert isinstance(read(b"{"), Unreadable)
    assert isinstance(read(b""), Unreadable)
    assert isinstance(read(b"[" * 100_000), OnTheDotError)
    assert isinstance(read(b" " * (LARGEST + 1)), TooLarge)


def test_a_message_is_known_by_what_the_sender_calls_it_or_else_by_its_place():
    said = {"op": "delete", "key": "a"}
    assert command({**said, "message_id": "x"}, id="y").repeat.key == "intake/orders/x"
    assert command(said, id="y").repeat.key == "intake/orders/y"
    assert command(said).repeat.key == "intake/orders/p/1"
    assert command(event(subject="a"), id="y").repeat.key == "intake/orders//s#1"
    assert len(command(said, id="é" * 400).repeat.key) < 200
    assert command(said).repeat == command(b'{"key": "a",  "op":"delete"}').repeat
    assert command(said).repeat.fingerprint != command({**said, "key": "b"}).repeat.fingerprint
    found = read(said, place=None)
    assert isinstance(found, Invalid)
    assert found.problems[0].path == "message_id"


def test_a_cloud_event_names_operation_and_key_by_its_attributes():
    paused = command(event(subject="a", data={"note": "n"}))
    assert (paused.op, paused.does.key) == ("pause", "a")
    other = command(event(type="x", subject="a", data={"op": "delete", "key": "b"}))
    assert (other.op, other.does.key) == ("delete", "b")


def test_what_names_the_same_job_never_goes_together():
    def parts(*messages: dict[str, Any]) -> list[int]:
        return [len(part) for part in segments([command(message) for message in messages])]

    create = [{"op": "create", "key": key, "job": JOB, "message_id": key} for key in "abc"]
    pause = [{"op": "pause", "key": key, "message_id": f"p{key}"} for key in "abc"]
    assert parts(*create) == [3]
    keyless = [{"op": "create", "job": JOB, "message_id": f"k{number}"} for number in range(2)]
    assert parts(*keyless) == [2]
    assert parts(keyless[0], keyless[0]) == [1, 1]
    assert parts(*create, *pause) == [3, 3]
    assert parts(create[0], create[0], create[1]) == [1, 2]
    assert parts(pause[0], pause[1], {"op": "resume", "key": "a"}, pause[2]) == [2, 2]
    assert parts(pause[0], {"op": "pause", "id": 7}, pause[1]) == [1, 1, 1]
    assert parts(pause[0], {"op": "patch", "key": "b", "patch": {"key": "a"}}) == [1, 1]
    assert parts(pause[0], {"op": "patch", "key": "b", "patch": {"on_success": ["a"]}}) == [1, 1]
    assert parts() == []


def test_a_dead_letter_has_the_reason_and_the_original():
    received = Received(body="zwölf".encode(), tag=1, id="m", key="k", headers={"a": "b"})
    problem = describe_error(Invalid.one("op", "unknown operation"))
    letter = RefusedMessage.of(received, problem, "m", 0)
    whole, cut = compose_letter("orders", "dead", letter, 100), compose_letter("orders", "dead", letter, 3)
    content = json.loads(whole.body)
    assert content["message"] == {
        "id": "m",
        "place": None,
        "key": "k",
        "headers": {"a": "b"},
        "size": 6,
        "body": "zwölf",
    }
    assert (content["problem"]["status"], content["refused_at"]) == (422, "1970-01-01T00:00:00.000Z")
    assert whole.headers["x-onthedot-status"] == "422"
    assert whole.id == cut.id  # refused again, it is the same letter
    assert json.loads(cut.body)["message"]["body"] == "zw"
    assert json.loads(cut.body)["message"]["truncated"] is True
