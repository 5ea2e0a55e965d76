"""The checker is checked: bugs of quite different kinds are planted, and seen. (`make planted` plants all of them.)"""

from __future__ import annotations

import importlib
import random
import sys
from typing import Any

import msgspec
import pytest

from onthedot.engine.membership.lease import Lease
from onthedot.plan import outcome
from onthedot.plan.shares import on_time_share
from onthedot.store.queries import Queries
from proof.planted import command
from proof.planted.bugs import BUGS
from proof.planted.focus import Focus, focused
from proof.planted.plant import Bug, Code, NotPlantable, Sql, Swap, planted
from proof.planted.search import Caught, search

QUICK = ("record before send", "successor not inserted", "retry: never ends")


def bug_named(name: str) -> Bug:
    return next(bug for bug in BUGS if bug.name == name)


def a_bug(*edits: Swap | Code | Sql) -> Bug:
    return Bug(name="a bug", what="something is wrong", edits=edits)


def test_there_are_enough_of_them():
    assert len(BUGS) >= 60
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert all(bug.edits for bug in BUGS)


def test_every_bug_still_fits_where_it_is_planted():
    """A bug that bites on nothing would prove nothing."""
    misfits = []
    for bug in BUGS:
        try:
            with planted(bug):
                for dialect in ("sqlite", "postgres") if any(isinstance(edit, Sql) for edit in bug.edits) else ():
                    Queries(dialect, "now_ms()")
        except Exception as error:
            misfits.append(f"{type(error).__name__}: {error}")
    assert not misfits, "\n".join(misfits)


def test_what_the_simulation_can_not_see_has_its_tests_and_a_reason():
    for bug in BUGS:
        assert bool(bug.tests) == bool(bug.unseen), bug.name
        seen_by_sqlite = all(not isinstance(edit, Sql) or edit.dialect == "sqlite" for edit in bug.edits)
        assert bug.tests or seen_by_sqlite, f"{bug.name}: the simulation runs on SQLite"


@pytest.mark.parametrize("name", QUICK)
def test_planted_bug_turns_the_simulation_red(name):
    caught = search(bug_named(name), seeds=6, minutes=2)
    assert caught.found, f"only {caught.kinds} were seen"


@pytest.mark.timeout(180)
def test_planted_bug_turns_the_tests_red_that_it_names():
    caught = search(bug_named("backlog: takes all"))
    assert caught.by == "tests"
    assert "FAILED" in caught.example


def test_code_is_replaced_for_whoever_imported_it_and_put_back():
    before = outcome.on_outcome.__code__
    with planted(a_bug(Code("onthedot.plan.shares:on_time_share", "(limit + 1) // 2", "limit"))):
        assert on_time_share(10) == 10
    assert on_time_share(10) == 5
    assert outcome.on_outcome.__code__ is before


def test_an_attribute_is_replaced_and_put_back():
    before = Lease.may_start
    with planted(bug_named("no lease")):
        assert Lease.may_start is not before
    assert Lease.may_start is before


def test_a_statement_is_another_while_the_bug_is_in():
    with planted(a_bug(Sql("delete_runs", "DELETE FROM runs", "DELETE FROM nodes"))):
        assert Queries("sqlite", "now_ms()")["delete_runs"].startswith("DELETE FROM nodes")
        assert Queries("postgres", "now_ms()")["delete_runs"].startswith("DELETE FROM runs")
    assert Queries("sqlite", "now_ms()")["delete_runs"].startswith("DELETE FROM runs")


@pytest.mark.parametrize(
    "edit",
    [
        Swap("onthedot.plan.outcome:NOTHING_LIKE_IT", 1),
        Swap("onthedot.engine.membership.lease:NoLease.may_start", 1),
        Code("onthedot.plan.outcome:POISON", "3", "4"),
        Code("onthedot.plan.outcome:on_lost", "it says nothing like this", ""),
        Code("onthedot.plan.outcome:on_lost", "run.tries", "0"),
        Sql("no_such_statement", "a", "b"),
        Sql("delete_runs", "it says nothing like this", ""),
        Sql("finish_retry", "j.state = 'paused'", "0", times=2),
    ],
)
def test_a_bug_that_bites_on_nothing_is_an_error(edit):
    with pytest.raises(NotPlantable), planted(a_bug(edit)):
        Queries("sqlite", "now_ms()")
    assert search(a_bug(edit), seeds=1, minutes=1.2).error


def test_what_a_seed_shows_without_the_bug_gives_nothing_away(monkeypatch):
    from proof.checker.verdict import Violation
    from proof.planted import search as searching

    class Played(msgspec.Struct):
        violations: list[Violation]

    monkeypatch.setattr(searching, "_play", lambda *_: Played([Violation(kind="late", text="always")]))
    monkeypatch.setattr(searching, "_seen_without", {})
    assert not search(a_bug(Swap("onthedot.plan.outcome:POISON", 3)), seeds=2).found


@pytest.mark.parametrize(("missed", "code"), [(0, 0), (1, 0), (2, 1)])
def test_more_than_one_missed_of_twenty_is_a_failure(monkeypatch, capsys, missed, code):
    bugs = {f"bug {n}": a_bug() for n in range(20)}
    bugs = {name: msgspec.structs.replace(bug, name=name) for name, bug in bugs.items()}
    found = {name: "seed 1" if n >= missed else None for n, name in enumerate(bugs)}
    monkeypatch.setattr(command, "BUGS", tuple(bugs.values()))
    monkeypatch.setattr(command, "_BY_NAME", bugs)
    monkeypatch.setattr(command, "search", lambda bug, seeds: Caught(bug=bug.name, by=found[bug.name], kinds=["late"]))
    monkeypatch.setattr(sys, "argv", ["planted", "--processes", "1"])
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    assert command.main() == code
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"{20 - missed} of 20 planted bugs were found")
    assert ("bug 0" in last) == bool(missed)


def test_users_do_most_of_all_what_a_bug_concerns():
    workload: Any = importlib.import_module("proof.sim.workload")

    focus = Focus(
        policy={"expires_in": 1500}, retry={"max_age": 900}, schedule={"every": 1000, "count": 4}, mood="slow"
    )
    before = workload.a_recurring
    with focused(focus):
        specs = [workload.a_recurring(random.Random(seed)) for seed in range(40)]
    chosen = [spec for spec in specs if spec.policy.expires_in == 1500 and spec.schedule.count == 4]
    assert 20 < len(chosen) < 40
    assert {spec.params["mood"] for spec in chosen} == {"slow"}
    assert {(spec.schedule.every, spec.schedule.cron) for spec in chosen} == {(1000, None)}
    assert all(spec.policy.retry.max_age == 900 for spec in chosen)
    assert workload.a_recurring is before
