"""What may be written as cron, and what is said about the rest."""

from __future__ import annotations

import string
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onthedot.errors import FieldProblem, Invalid
from onthedot.timing.cron import CronTimetable
from onthedot.timing.cron_text import parse_cron, spread, uses_hash
from tests.unit.timing.changes import ms


def parts(text: str, seed: str = "") -> str:
    return " ".join(parse_cron(text, seed).parts)


def refusal(text: str) -> tuple[FieldProblem, ...]:
    with pytest.raises(Invalid) as caught:
        CronTimetable(text, "UTC")
    assert {problem.path for problem in caught.value.problems} == {"schedule.cron"}
    assert all(problem.accepted for problem in caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("0 3 * * *", "0 0 3 * * *"),
        ("30 0 3 * * *", "30 0 3 * * *"),
        ("  0\t3 * *\n* ", "0 0 3 * * *"),
        ("*/5 9-17 * jan,Mar-may mon-FRI", "0 */5 9-17 * 1,3-5 1-5"),
        ("0 0 * * sun", "0 0 0 * * 0"),
        ("0 0 * * fri-sun", "0 0 0 * * 5-7"),
        ("0 0 * * 5L", "0 0 0 * * 5L"),
        ("0 0 * * FRIL", "0 0 0 * * 5L"),
        ("0 0 * * MON#2,TUE#5", "0 0 0 * * 1#2,2#5"),
        ("0 0 L * *", "0 0 0 L * *"),
        ("0 0 LW * *", "0 0 0 LW * *"),
        ("0 0 1,L * *", "0 0 0 1,L * *"),
        ("0 0 ? * MON", "0 0 0 * * 1"),
        ("0 0 1 * ?", "0 0 0 1 * *"),
        ("0 0 5-5/2 * *", "0 0 0 5-5 * *"),
        ("0 0 1 JUL *", "0 0 0 1 7 *"),
        ("@hourly", "0 0 * * * *"),
        ("@daily", "0 0 0 * * *"),
        ("@midnight", "0 0 0 * * *"),
        (" @Weekly ", "0 0 0 * * 0"),
        ("@monthly", "0 0 0 1 * *"),
        ("@yearly", "0 0 0 1 1 *"),
        ("@annually", "0 0 0 1 1 *"),
    ],
)
def test_accepted(text: str, plain: str) -> None:
    assert parts(text) == plain


@pytest.mark.parametrize(
    ("text", "field", "given"),
    [
        ("60 * * * *", "minute", "60"),
        ("* 24 * * *", "hour", "24"),
        ("* * 0 * *", "day-of-month", "0"),
        ("* * 32 * *", "day-of-month", "32"),
        ("* * * 13 *", "month", "13"),
        ("* * * 0 *", "month", "0"),
        ("* * * * 8", "day-of-week", "8"),
        ("60 * * * * *", "second", "60"),
        ("5-1 * * * *", "minute", "5-1"),
        ("*/0 * * * *", "minute", "*/0"),
        ("1, * * * *", "minute", "1,"),
        (",1 * * * *", "minute", ",1"),
        ("1,,2 * * * *", "minute", "1,,2"),
        ("-1 * * * *", "minute", "-1"),
        ("1- * * * *", "minute", "1-"),
        ("1-2-3 * * * *", "minute", "1-2-3"),
        ("/5 * * * *", "minute", "/5"),
        ("5/ * * * *", "minute", "5/"),
        ("*/5/5 * * * *", "minute", "*/5/5"),
        ("1.5 * * * *", "minute", "1.5"),
        ("** * * * *", "minute", "**"),
        ("? * * * *", "minute", "?"),
        ("L * * * *", "minute", "L"),
        ("* * L/2 * *", "day-of-month", "L/2"),
        ("* * L-3 * *", "day-of-month", "L-3"),
        ("* * 15W * *", "day-of-month", "15W"),
        ("* * * * L", "day-of-week", "L"),
        ("* * * * 8L", "day-of-week", "8L"),
        ("* * * * MON#0", "day-of-week", "MON#0"),
        ("* * * * MON#6", "day-of-week", "MON#6"),
        ("* * * * MON-FRI#2", "day-of-week", "MON-FRI#2"),
        ("* * * * FRI-MON", "day-of-week", "FRI-MON"),
        ("* * * * SUNMON", "day-of-week", "SUNMON"),
        ("* * * * */MON", "day-of-week", "*/MON"),
        ("* * * * FOO", "day-of-week", "FOO"),
        ("* * * JANFEB *", "month", "JANFEB"),
        ("* * * MON *", "month", "MON"),
        ("JAN * * * *", "minute", "JAN"),
        ("H(5-1) * * * *", "minute", "H(5-1)"),
        ("H(0-60) * * * *", "minute", "H(0-60)"),
        ("H/0 * * * *", "minute", "H/0"),
        ("H-5 * * * *", "minute", "H-5"),
        ("HH * * * *", "minute", "HH"),
    ],
)
def test_a_wrong_field_is_named(text: str, field: str, given: str) -> None:
    (problem,) = refusal(text)
    assert problem.message == f"the {field} field is not valid"
    assert problem.given == given


def test_all_wrong_fields_are_named() -> None:
    problems = refusal("60 24 32 13 8")
    assert [problem.given for problem in problems] == ["60", "24", "32", "13", "8"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a cron expression of 1 to 1000 ASCII characters"),
        ("   ", "not a cron expression of 1 to 1000 ASCII characters"),
        ("0 3 * * *\x00", "not a cron expression of 1 to 1000 ASCII characters"),
        ("٠ 3 * * *", "not a cron expression of 1 to 1000 ASCII characters"),
        ("0 3 * * " + ",".join(["1"] * 600), "not a cron expression of 1 to 1000 ASCII characters"),
        ("* * *", "has 3 fields, expected 5 or 6"),
        ("*", "has 1 field, expected 5 or 6"),
        ("0 0 3 * * * 2026", "has 7 fields, expected 5 or 6"),
        ("@reboot", "@reboot is not supported: jobs belong to the cluster, not to one machine"),
        ("@fortnightly", "unknown macro"),
        ("@", "unknown macro"),
        ("0 0 31 2 *", "never fires: none of the given months has this day"),
        ("0 0 30,31 FEB *", "never fires: none of the given months has this day"),
        ("0 0 31 4,6,9,11 *", "never fires: none of the given months has this day"),
        ("0 0 */30 2 MON#5", "never fires: this date does not exist"),
        ("0 0 */20 * SUN#2", "never fires: this date does not exist"),
    ],
)
def test_what_is_no_cron(text: str, message: str) -> None:
    (problem,) = refusal(text)
    assert problem.message == message
    assert problem.given == text[:200]


def test_a_day_of_the_week_saves_a_day_that_does_not_exist() -> None:
    timetable = CronTimetable("0 0 31 2 MON", "UTC")  # either matches
    assert timetable.next_after(ms("2026-01-01T00:00:00Z")) == ms("2026-02-02T00:00:00Z")


@pytest.mark.parametrize(
    "text", ["H H * * *", "H H H * * *", "H/15 * * * *", "H(0-5) H(1-3) H H H", "H(10-40)/7 * * * *"]
)
@given(seed=st.text(max_size=20))
def test_h_is_stable_and_within_its_field(text: str, seed: str) -> None:
    assert parts(text, seed) == parts(text, seed)
    timetable = CronTimetable(text, "UTC", seed)
    assert timetable.next_after(0) is not None


def test_h_spreads() -> None:
    minutes = {parts("H * * * *", f"job-{n}") for n in range(1000)}
    assert len(minutes) == 60
    days = {int(parts("0 0 H * *", f"job-{n}").split()[3]) for n in range(1000)}
    assert days == set(range(1, 29))  # each of them exists in every month
    weekdays = {int(parts("0 0 * * H", f"job-{n}").split()[5]) for n in range(1000)}
    assert weekdays == set(range(7))


def test_h_with_a_step_begins_within_the_first_step() -> None:
    for n in range(200):
        span, step = parts("H/15 * * * *", f"job-{n}").split()[1].split("/")
        assert step == "15"
        assert int(span.split("-")[0]) < 15
        assert len(CronTimetable("H/15 * * * *", "UTC", f"job-{n}").walls._minutes) == 4


def test_h_in_a_range_stays_in_it() -> None:
    hours = {int(parts("0 H(1-5) * * *", f"job-{n}").split()[2]) for n in range(200)}
    assert hours == {1, 2, 3, 4, 5}


def test_h_differs_from_field_to_field() -> None:
    same = sum(spread(f"job-{n}", 1, 60) == spread(f"job-{n}", 0, 60) for n in range(600))
    assert same < 60


def test_h_is_the_same_in_another_process() -> None:
    code = "from onthedot.timing.cron_text import spread; print(spread('nightly', 1, 60))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(other.stdout) == spread("nightly", 1, 60)


def test_who_uses_h() -> None:
    assert uses_hash("H * * * *")
    assert uses_hash("0,h(1-2) * * * *")
    assert not uses_hash("0 0 * MAR THU")
    assert not uses_hash("@hourly")


ALPHABET = string.digits + "*/-,#LWH()?@ " + string.ascii_letters


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(
        st.text(),
        st.text(ALPHABET),
        st.lists(st.text(ALPHABET.replace(" ", ""), min_size=1, max_size=6), min_size=5, max_size=6).map(" ".join),
    )
)
def test_any_text_is_compiled_or_refused(text: str) -> None:
    problems: tuple[FieldProblem, ...] = ()
    timetable = None
    try:
        timetable = CronTimetable(text, "Europe/Berlin", "seed")
    except Invalid as invalid:
        problems = invalid.problems
    assert (timetable is None) == bool(problems)
    assert all(problem.path == "schedule.cron" and len(str(problem.given)) <= 200 for problem in problems)
    if timetable is not None:
        slot = timetable.next_after(ms("2026-03-01T00:00:00Z"))
        assert slot is None or timetable.is_slot(slot)
