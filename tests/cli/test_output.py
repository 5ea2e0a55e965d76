"""What is printed fits a terminal and says times as people do."""

from __future__ import annotations

import pytest

from onthedot.cli.describe import outcome_text, schedule_text, target_text
from onthedot.cli.failures import explain
from onthedot.cli.output import ago, detail, facts, line_width, table, when
from onthedot.errors import (
    FieldProblem,
    Invalid,
    NotFound,
    NotOnTheDot,
    SettingsError,
    StoreInUse,
    Unauthorized,
    Unreachable,
)
from onthedot.model.duration import Duration
from onthedot.model.run import RunView
from onthedot.model.schedule import Schedule
from onthedot.model.targets import CommandTarget, FunctionTarget, WebhookTarget

AT = "2026-01-01T00:00:00.000Z"
NOW = 1_767_225_600_000


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0ms"),
        (999, "999ms"),
        (1000, "1s"),
        (61_000, "1m 1s"),
        (60_000, "1m"),
        (3_600_000, "1h"),
        (3_660_000, "1h 1m"),
        (3_601_000, "1h"),
        (90_061_000, "1d 1h"),
        (86_400_000 * 400, "400d"),
    ],
)
def test_a_span_has_its_two_largest_units(ms, said):
    assert ago(ms) == said


def test_an_instant_is_near_or_past():
    assert when(AT, NOW - 5000) == "in 5s"
    assert when(AT, NOW + 5000) == "5s ago"
    assert when(AT, NOW) == "in 0ms"
    assert when(None) == ""


def test_a_table_keeps_ids_whole_and_wraps_the_wide_columns(capsys):
    name = "a name that is much too long for any line of eighty characters, really"
    table(("id", "name", "state"), [(1234567890123, name, "active")], empty="", wide=("name",))
    head, *lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "1234567890123" in lines[0]
    assert lines[0].endswith("active")
    place = slice(head.index("NAME"), head.index("STATE"))
    assert " ".join(line[place].strip() for line in lines) == name


def test_several_columns_are_wrapped_at_once(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    url, key = "http://127.0.0.1:5003/a/rather/long/path", "reports.of-the-night.of-the-north"
    table(("id", "key", "url"), [(1, key, url), (2, "b", "c")], empty="", wide=("key", "url"))
    head, *lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 40 for line in lines)
    key_at, url_at = head.index("KEY"), head.index("URL")
    assert "".join(line[key_at:url_at].strip() for line in lines[:-1]) == key
    assert "".join(line[url_at:].strip() for line in lines[:-1]) == url
    assert lines[-1].split() == ["2", "b", "c"]


def test_a_table_that_fits_no_terminal_is_printed_as_facts(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    columns = [f"column {number}" for number in range(9)]
    rows = [[f"value {number}" for number in range(9)], ["http://127.0.0.1:5003", *[""] * 8]]
    table(columns, rows, empty="", wide=(columns[0],))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"column {n}  value {n}" for n in range(9)] + ["", "column 0  http://127.0.0.1:5003"]


def test_facts_and_their_details_are_wrapped(capsys, monkeypatch):
    error = "connection to the database of the reports was refused " * 3
    monkeypatch.delenv("COLUMNS", raising=False)
    facts([("outcome", error)])
    assert capsys.readouterr().out == f"outcome  {error}\n", "a pipe has no width"
    monkeypatch.setenv("COLUMNS", "60")
    facts([("id", 1), ("outcome", error), ("url", f"http://{'x' * 100}")])
    detail(f"attempt 1: {error}")
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert lines[2].startswith(" " * 9)
    assert " ".join(" ".join(lines).split()).count(error.strip()) == 2
    assert "".join(line.strip() for line in lines).count("x") >= 100


def test_a_table_that_fits_is_not_touched(capsys):
    table(("id", "name"), [(1, "a"), (22, "b")], empty="", wide=("name",))
    assert capsys.readouterr().out == "ID  NAME\n1   a\n22  b\n"


def test_a_table_of_nothing_says_so(capsys):
    table(("id",), [], empty="No jobs.")
    assert capsys.readouterr().out == "No jobs.\n"


def test_a_cell_is_one_line(capsys):
    table(("a", "b"), [("x\ny", None)], empty="")
    assert capsys.readouterr().out == "A    B\nx y\n"


def test_a_table_without_room_to_give_way_stays_readable(capsys):
    table(("a", "b"), [("x" * 60, "y" * 60)], empty="")
    assert "x" * 60 in capsys.readouterr().out


def test_facts_leave_out_what_is_unknown(capsys):
    facts([("id", 1), ("name", None), ("tags", ""), ("long one", "two\nlines")])
    assert capsys.readouterr().out == "id        1\nlong one  two\n          lines\n"


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (Schedule(cron="0 3 * * *"), "0 3 * * *"),
        (Schedule(cron="0 3 * * *", tz="Europe/Berlin"), "0 3 * * * Europe/Berlin"),
        (Schedule(every=Duration.parse("90s")), "every 1m30s"),
        (Schedule(at="2033-01-01T00:00:00Z"), "at 2033-01-01T00:00:00Z"),
        (Schedule(in_=Duration.parse("10s")), "in 10s"),
    ],
)
def test_a_schedule_in_a_few_words(schedule, said):
    assert schedule_text(schedule) == said


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (WebhookTarget(url="http://x.org/"), "http://x.org/"),
        (WebhookTarget(url="http://x.org/", method="PUT"), "PUT http://x.org/"),
        (FunctionTarget(function="a.b:c"), "a.b:c"),
        (CommandTarget(command="backup"), "$ backup"),
    ],
)
def test_a_target_in_a_few_words(target, said):
    assert target_text(target) == said


def run(**fields) -> RunView:
    plain = dict.fromkeys(RunView.__struct_fields__)
    return RunView(**{**plain, **fields})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"error": "no route"}, "no route"),
        ({"reason": "paused", "slots": 7}, "paused (7 slots)"),
        ({"reason": "overlap"}, "overlap"),
        (
            {"waiting": "destination", "waiting_for": "http://x", "waiting_since": "2026-01-01T00:00:00.000Z"},
            "waiting for destination http://x since 2026-01-01T00:00:00.000Z",
        ),
        ({"outcome": {"status_code": 204}}, "status code 204"),
        ({"outcome": {"kind": "ok", "detail": {"exit_code": 0}}}, "exit code 0"),
        ({"outcome": None}, ""),
        ({"outcome": {"kind": "ok"}}, ""),
    ],
)
def test_an_outcome_in_a_few_words(fields, said):
    assert outcome_text(run(**fields)) == said


def test_every_problem_is_told_with_what_is_accepted():
    wrong = Invalid(
        [
            FieldProblem(path="schedule.cron", message="no such minute", given="61", accepted="0-59"),
            FieldProblem(path="target.url", message="missing"),
        ]
    )
    assert explain(wrong).splitlines() == [
        "Error: validation failed.",
        "  schedule.cron: no such minute (given: 61)",
        "    accepted: 0-59",
        "  target.url: missing",
    ]


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (Unreachable("no answer from http://x"), "Start it with `onthedot serve`"),
        (Unauthorized("a key is needed"), "--api-key or ONTHEDOT_KEY"),
        (NotOnTheDot("it did not answer like one"), "--server or ONTHEDOT_URL"),
    ],
)
def test_an_error_says_what_to_do(error, advice):
    told = explain(error)
    assert told.startswith(f"Error: {error}")
    assert advice in told


def test_an_error_that_needs_no_advice_has_none():
    assert explain(NotFound("job 7 not found")) == "Error: job 7 not found"
    assert explain(StoreInUse("stop 4711 first")) == "Error: stop 4711 first", "the message has it: not all have --url"


def test_several_lines_are_set_apart():
    assert explain(SettingsError("PORT: wrong\nHOST: wrong")) == "Error: \n  PORT: wrong\n  HOST: wrong"


def test_a_reason_is_wrapped_and_never_lost(capsys, monkeypatch):
    reason = "HTTP 503 Service Unavailable: the database of the reports is being moved to another host until Monday"
    monkeypatch.setenv("COLUMNS", "60")
    table(
        ("run", "job", "outcome"),
        [("12-1763234567890", "nightly-report", reason)],
        empty="",
        wide=("job",),
        whole="outcome",
    )
    head, *lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert len(lines) > 1
    place = head.index("OUTCOME")
    assert " ".join(line[place:].strip() for line in lines) == reason
    assert all(line[:place].strip() == "" for line in lines[1:])


@pytest.mark.parametrize(("columns", "width"), [("120", 120), ("40", 40), ("", 80), ("x", 80)])
def test_the_width_follows_columns(monkeypatch, columns, width):
    monkeypatch.setenv("COLUMNS", columns)
    assert line_width() == width
