"""What the bench makes of its figures: medians, ratios, verdicts, the page."""

from __future__ import annotations

import pytest

from bench.contest import Tally, quantiles
from bench.contestants import CONTESTANTS, OURS
from bench.page import page
from bench.running import Played, Report
from bench.scenarios import Entry, Scenario, scenarios
from bench.text import markdown, verdicts

DRAIN = Scenario("drain", "Drain", "rate", [Entry("postgres", "drain")], {"n": 1}, wanted={"them": 2.0})
LATE = Scenario("late", "Late", "late_ms.p99", [Entry("postgres", "lateness")], {})


def rates(name: str, *figures: float) -> Played:
    return Played(name, "tuned", [{"rate": figure} for figure in figures])


def test_a_ratio_is_taken_round_by_round():
    """A slow minute hits both: ratios of medians would compare one's good minute with the other's bad one."""
    report = Report(DRAIN, [rates("us", 1000, 10, 900), rates("them", 500, 5, 300)])
    assert report.ratio(report.played[1]) == 2.0


def test_less_lateness_is_ahead():
    late = [Played(name, "", [{"late_ms": {"p99": figure}}]) for name, figure in (("us", 2.0), ("them", 50.0))]
    report = Report(LATE, late)
    assert report.ratio(late[1]) == 25.0


def test_verdicts_name_what_was_wanted():
    report = Report(DRAIN, [rates("us", 30), rates("them", 10), rates("others", 1)])
    assert verdicts([report]) == [("Drain, to them", 3.0, 2.0)]


def test_one_that_failed_has_no_figure_and_says_why():
    report = Report(DRAIN, [rates("us", 30), Played("them", "", failed="no Node.js here")])
    assert verdicts([report]) == []
    assert "no Node.js here" in markdown([report])
    assert "no Node.js here" in page([report], {"machine": "2 cores"})


def test_the_page_shows_everybody_and_loads_nothing():
    html = page([Report(DRAIN, [rates("us", 30), rates("<them>", 10)])], {"machine": "2 cores"})
    assert "&lt;them&gt;" in html
    assert "3.00×" in html
    assert "http" not in html
    assert "<script" not in html


def test_quantiles():
    assert quantiles([float(n) for n in range(100)]) == {"p50": 50.0, "p99": 99.0, "max": 99.0, "min": 0.0}
    assert quantiles([]) == {}


def test_a_tally_tells_when_the_last_came():
    heard = []
    tally = Tally(2, lambda: heard.append("all"))
    tally.hit()
    assert heard == []
    tally.hit()
    assert heard == ["all"]
    assert tally.rate() > 0


@pytest.mark.parametrize("mode", ["tiny", "quick", "full"])
def test_every_entry_has_its_contestant_and_ours_comes_first(mode):
    for scenario in scenarios(mode):
        assert scenario.entries[0].who in OURS
        names = {entry.label or (OURS.get(entry.who) or CONTESTANTS[entry.who]).name for entry in scenario.entries}
        assert len(names) == len(scenario.entries), "who plays twice has a label"
        assert all(who in OURS or who in CONTESTANTS for who in (entry.who for entry in scenario.entries))


def test_every_peer_says_how_it_was_tuned():
    assert all(contestant.settings for contestant in (*OURS.values(), *CONTESTANTS.values()))
