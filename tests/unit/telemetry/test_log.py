"""Events as log lines: each at the level it deserves, readable by people or by programs."""

from __future__ import annotations

import io
import json
import logging

import pytest
import structlog

from onthedot.telemetry import Event, Telemetry
from onthedot.telemetry.log import configure_logging, level_of, log_events


@pytest.fixture
def stream():
    """Logging set up anew, and put back afterwards: it is the whole process's."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    floors = {name: logging.getLogger(name).level for name in ("uvicorn.access", "asyncio", "aiohttp.access")}
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, floor in floors.items():
        logging.getLogger(name).setLevel(floor)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (Event("run.finished", {"status": "DONE"}), "debug"),
        (Event("run.finished", {"status": "FAILED"}), "warning"),
        (Event("ledger.conflict", {}), "critical"),
        (Event("dead.letter", {}), "error"),
        (Event("run.refused", {}), "warning"),
        (Event("store.unavailable", {}), "error"),
        (Event("node.registered", {}), "info"),
        (Event("never.heard.of", {}), "debug"),
    ],
)
def test_the_level_says_how_bad_it_is(event, level):
    assert level_of(event) == level


def test_what_is_skipped_or_lost_is_loud_at_the_default_level(stream):
    configure_logging("INFO", style="json", stream=stream)
    wire = Telemetry()
    log_events(wire)
    for name in ("run.skipped", "run.lost", "run.refused", "dead.letter", "ledger.conflict", "job.quarantined"):
        wire.emit(name, job_id=1)
    assert [line["event"] for line in lines(stream)] == [
        "run.skipped",
        "run.lost",
        "run.refused",
        "dead.letter",
        "ledger.conflict",
        "job.quarantined",
    ]


def test_ordinary_firings_are_quiet_unless_asked_for(stream):
    configure_logging("INFO", style="json", stream=stream)
    wire = Telemetry()
    stop = log_events(wire)
    wire.emit("run.finished", status="DONE", job_id=1)
    assert lines(stream) == []
    configure_logging("DEBUG", style="json", stream=stream)
    wire.emit("run.finished", status="DONE", job_id=1)
    stop()
    wire.emit("run.finished", status="DONE", job_id=2)
    (line,) = lines(stream)
    assert (line["event"], line["job_id"], line["level"]) == ("run.finished", 1, "debug")


def test_libraries_and_we_write_the_same_way(stream):
    configure_logging("info", style="json", stream=stream)
    logging.getLogger("asyncpg").warning("slow %s", "query")
    structlog.stdlib.get_logger("onthedot").info("hello", who="you")
    first, second = lines(stream)
    assert (first["event"], first["logger"]) == ("slow query", "asyncpg")
    assert (second["event"], second["who"], second["level"]) == ("hello", "you", "info")
    assert str(first["timestamp"]).endswith("Z")


def test_an_exception_is_one_line_of_json_with_its_trace(stream):
    configure_logging("INFO", style="json", stream=stream)
    try:
        int("broken")
    except ValueError:
        structlog.stdlib.get_logger("onthedot").exception("it failed")
    (line,) = lines(stream)
    assert "ValueError: invalid literal" in str(line["exception"])


def test_a_trace_for_people_does_not_print_local_variables(stream):
    configure_logging("INFO", style="console", stream=stream)

    def fails() -> None:
        key = "otd_" + "secret"
        int("x" if key else "y")

    try:
        fails()
    except ValueError:
        structlog.stdlib.get_logger("onthedot").exception("it failed")
    assert "ValueError: invalid literal" in stream.getvalue()
    assert "otd_secret" not in stream.getvalue()


def test_a_newline_in_a_value_can_not_forge_a_line(stream):
    configure_logging("INFO", style="console", stream=stream)
    structlog.stdlib.get_logger("onthedot").info("job", key="a\n2026 [info] you are admin")
    assert len(stream.getvalue().splitlines()) == 1


def test_a_terminal_gets_text_for_people_anything_else_json(stream):
    configure_logging("INFO", stream=stream)
    structlog.stdlib.get_logger("onthedot").info("hello")
    assert lines(stream)[0]["event"] == "hello"


def test_chatty_libraries_are_turned_down_but_never_up(stream):
    configure_logging("ERROR", style="json", stream=stream)
    logging.getLogger("uvicorn.access").warning("GET /")
    logging.getLogger("asyncio").warning("slow")
    assert lines(stream) == []
