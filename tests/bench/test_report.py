"""What the bench makes of its figures: medians, ratios, verdicts, the page."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.contest import Tally, quantiles
from bench.contestants import CONTESTANTS, OURS
from bench.document import PERFORMANCE, SCALE, place_results, placed, scale_page
from bench.page import page
from bench.running import Played, Report
from bench.scenarios import MODES, Entry, Scenario, scenarios, selected
from bench.text import document, markdown, settings, summary
from bench.wanted import Wanted, judge

TWICE = Wanted("twice as fast as them", "rate", "at least", 2.0, "them", unit=" ×")
DRAIN = Scenario("drain", "Drain", "rate", [Entry("postgres", "drain")], {"n": 1}, wanted=[TWICE])
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


def test_what_is_wanted_is_judged_by_ratio():
    report = Report(DRAIN, [rates("us", 30), rates("them", 10), rates("others", 1)])
    (verdict,) = judge([report])
    assert (verdict.value, verdict.reached) == (3.0, True)
    assert verdict.line() == "reached twice as fast as them: 3 × (wanted: at least 2 ×)"


def test_what_is_wanted_is_judged_by_itself():
    wanted = [
        Wanted("p99", "late_ms.p99", "at most", 3.0, unit=" ms"),
        Wanted("none early", "late_ms.min", "at least", 0.0),
    ]
    late = Scenario("late", "Late", "late_ms.p99", [Entry("postgres", "lateness")], {}, wanted=wanted)
    seat = Played("us", "", [{"late_ms": {"p99": p99, "min": -0.2}} for p99 in (2.0, 9.0, 3.5)])
    p99, early = judge([Report(late, [seat])])
    assert (p99.value, p99.reached) == (3.5, False), "the median of the rounds"
    assert not early.reached
    assert summary([p99, early]).endswith("0 of 2 figures reached")


def test_another_seat_than_ours_can_be_judged():
    wanted = [Wanted("flat", "rate", "at least", 0.9, "empty", "a million")]
    scenario = Scenario("drain", "Drain", "rate", [Entry("postgres", "drain")], {}, wanted=wanted)
    report = Report(scenario, [rates("ten millions", 70), rates("empty", 100), rates("a million", 95)])
    assert judge([report])[0].value == 0.95


def test_of_several_settings_the_best_counts():
    wanted = [Wanted("webhooks", "rate", "at least", 2.5, ("small", "large"))]
    scenario = Scenario("webhooks", "Webhooks", "rate", [Entry("postgres", "drain")], {}, wanted=wanted)
    report = Report(scenario, [rates("us", 30, 30), rates("small", 10, 20), rates("large", 15, 5)])
    assert judge([report])[0].value == pytest.approx((30 / 15 + 30 / 20) / 2)


def test_what_was_not_measured_is_missed():
    """Unless peers were left out on purpose."""
    report = Report(DRAIN, [rates("us", 30)])
    assert not judge([report])[0].reached
    assert "MISSED  twice as fast as them: not measured" in summary(judge([report]))
    assert judge([report], peers=False) == []


def test_one_that_failed_has_no_figure_and_says_why():
    report = Report(DRAIN, [rates("us", 30), Played("them", "", failed="no Node.js here")])
    assert judge([report])[0].value is None
    assert "no Node.js here" in markdown([report])
    assert "no Node.js here" in page([report], {"machine": "2 cores"})


def test_a_busy_receiver_is_told():
    busy = [Played("us", "", [{"rate": 1.0, "receiver_busy": 0.95}]), rates("them", 1)]
    (warning,) = Report(DRAIN, busy).warnings()
    assert "95% busy while us played" in warning
    assert warning in page([Report(DRAIN, busy)], {})


def test_results_are_placed_between_their_marks(tmp_path: Path):
    report = Report(DRAIN, [rates("us", 30), rates("them", 20)])
    (tmp_path / "soak.md").write_text(document([report], {"machine": "2 cores"}, judge([report])))
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- soak: begin -->\nold\n<!-- soak: end -->\nafter\n")
    assert place_results(tmp_path, page) == ["soak"]
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| **missed** | twice as fast as them | 1.5 × | at least 2 × |" in text
    assert "old" not in text
    with pytest.raises(ValueError, match="no place marked"):
        placed("nothing", "soak", "x")


def test_the_page_has_a_place_for_every_result():
    for name in ("bench", "bench-10m", "soak", "soak-full"):
        assert "text" in placed(PERFORMANCE.read_text(), name, "text")
    assert "text" in placed(SCALE.read_text(), "scale", "text")


def test_the_page_on_scale_says_what_the_model_says():
    """`python -m bench.document` after bench/measured.json changed."""
    assert scale_page(SCALE.read_text()) == SCALE.read_text()


def test_settings_are_told_once():
    seats = [Played("us", "fast", []), Played("us, over HTTP", "fast", []), Played("them", "slow", [])]
    assert settings([Report(DRAIN, seats)]) == "- us: fast\n- them: slow"


def test_tables_and_courses_are_shown():
    figures = {"rate": 1.0, "table": {"head": ["filter", "p50 ms"], "rows": [["tag", 1.25]]}}
    course = {"second": [0.0, 5.0], "rss_mb": [70.0, 71.0]}
    report = Report(DRAIN, [Played("us", "", [{**figures, "series": course}])])
    assert "| tag | 1.25 |" in markdown([report])
    html = page([report], {})
    assert "<td>1.25</td>" in html
    assert "Memory of the node, MB" in html
    assert "<polyline" in html


def test_the_page_shows_everybody_and_loads_nothing():
    report = Report(DRAIN, [rates("us", 30), rates("<them>", 10)])
    html = page([report], {"machine": "2 cores"}, judge([report]))
    assert "0 of 1 reached" in html
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


def test_the_clock_starts_when_the_first_execution_begins(monkeypatch: pytest.MonkeyPatch):
    """A thousand calls at once that end together would else have taken no time."""
    now = iter([10.0, 14.0])
    monkeypatch.setattr("bench.contest.time", SimpleNamespace(perf_counter=lambda: next(now)))
    tally = Tally(2)
    tally.begin()
    tally.begin()
    tally.hit()
    tally.hit()
    assert tally.rate() == 0.5


@pytest.mark.parametrize("mode", MODES)
def test_every_entry_has_its_contestant_and_ours_comes_first(mode):
    for scenario in scenarios(mode):
        assert scenario.entries[0].who in OURS
        names = {entry.label or (OURS.get(entry.who) or CONTESTANTS[entry.who]).name for entry in scenario.entries}
        assert len(names) == len(scenario.entries), "who plays twice has a label"
        for wanted in scenario.wanted:
            others = {wanted.to} if isinstance(wanted.to, str) else set(wanted.to or ())
            assert {*others, wanted.of} <= {*names, None}, "what is wanted is about somebody who takes part"


def test_scenarios_are_selected_by_key_or_by_its_first_word():
    known = scenarios("quick")
    assert [scenario.key for scenario in selected(known, ["drain"])] == ["drain"], "a key stands for itself"
    assert [s.key for s in selected(known, ["scale"])] == ["scale-minute", "scale-tenants", "scale-scripts"]
    assert not any(scenario.key.startswith("scale") for scenario in selected(known, [])), "only where it is asked for"
    with pytest.raises(KeyError, match="dra"):
        selected(known, ["dra", "drain"])


def test_every_figure_of_the_goal_is_judged():
    """One run of the full bench and the two long ones decide all of them."""
    judged = {wanted.what for mode in ("full", "huge", "soak") for s in scenarios(mode) for wanted in s.wanted}
    for words in (
        "drain, no-op, to PgQueuer",
        "drain, no-op, to graphile-worker",
        "drain through worker processes",
        "drain on SQLite, to huey",
        "drain with 1,000,000 more",
        "drain with 10,000,000 more",
        "webhooks, to PgQueuer",
        "webhooks, to a bare loop",
        "HTTP creates",
        "bulk create",
        "CPU of a firing",
        "claim p99 with 10,000,000",
        "node's memory with 10,000,000",
        "10,000 in one second: the last started",
        "10,000 in one second: none early",
        "API mix at 100",
        "soak: memory",
    ):
        assert any(what.startswith(words) for what in judged), words
    for rate in (100, 500, 1000):
        for share in ("p50", "p99"):
            assert {f"lateness {share} at {rate}/s", f"lateness {share} at {rate}/s, to APScheduler"} <= judged


def test_every_peer_says_how_it_was_tuned():
    assert all(contestant.settings for contestant in (*OURS.values(), *CONTESTANTS.values()))


def test_the_long_runs_have_doors():
    """`make soak` and `make bench-10m` were lost once when two people edited the Makefile."""
    text = (PERFORMANCE.parent.parent / "Makefile").read_text()
    assert "bench --mode soak" in text
    assert "bench --mode huge" in text
