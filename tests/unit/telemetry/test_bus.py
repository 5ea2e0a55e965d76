"""The wire: everybody who listens hears it, nobody who listens can break it."""

from __future__ import annotations

from typing import Any

from onthedot import telemetry as module
from onthedot.telemetry import Event, Telemetry


def test_each_subscriber_gets_the_event_with_its_fields_in_order():
    wire, heard = Telemetry(), []
    wire.subscribe(lambda event: heard.append(("first", event)))
    wire.subscribe(lambda event: heard.append(("second", event)))
    wire.emit("run.finished", status="DONE", job_id=7)
    event = Event("run.finished", {"status": "DONE", "job_id": 7})
    assert heard == [("first", event), ("second", event)]


def test_who_unsubscribed_hears_nothing_more_and_the_others_still_do():
    wire = Telemetry()
    gone: list[Event] = []
    staying: list[Event] = []
    stop = wire.subscribe(gone.append)
    wire.subscribe(staying.append)
    wire.emit("node.lost", node="a")
    stop()
    stop()
    wire.emit("node.lost", node="b")
    assert [event.fields["node"] for event in gone] == ["a"]
    assert [event.fields["node"] for event in staying] == ["a", "b"]


def test_the_same_function_subscribed_twice_is_ended_by_either_end():
    wire, heard = Telemetry(), []

    def listener(event: Event) -> None:
        heard.append(event.name)

    stop = wire.subscribe(listener)
    wire.emit("store.back")
    stop()
    wire.emit("store.back")
    assert heard == ["store.back"]


def test_a_listener_that_fails_neither_stops_the_emitter_nor_the_other_listeners(caplog):
    wire = Telemetry()
    heard: list[Event] = []

    def broken(event: Event) -> None:
        raise RuntimeError("no")

    wire.subscribe(broken)
    wire.subscribe(heard.append)
    wire.emit("dead.letter", job_id=1)
    assert [event.name for event in heard] == ["dead.letter"]
    assert "telemetry subscriber failed on dead.letter" in caplog.text


def test_an_event_may_have_a_field_called_event():
    wire: Telemetry = Telemetry()
    heard: list[Any] = []
    wire.subscribe(heard.append)
    wire.emit("odd", event="inner", self="me")
    assert heard[0].fields == {"event": "inner", "self": "me"}


def test_nobody_listening_means_nothing_is_built():
    wire = Telemetry()
    wire.emit("run.started", lateness_ms=1)
    assert not wire._subscribers


def test_the_module_speaks_through_the_process_wide_wire():
    heard: list[Event] = []
    stop = module.subscribe(heard.append)
    try:
        module.emit("job.created", tenant=1, job_id=2)
    finally:
        stop()
    assert heard == [Event("job.created", {"tenant": 1, "job_id": 2})]
