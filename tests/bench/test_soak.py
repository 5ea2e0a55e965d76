"""What decides in a soak: slopes and flatness, and calls compared with what was due. No server is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.scenarios import full_soak
from bench.soak.calls import Call, Duty, Window, compare, read_record
from bench.soak.failovers import Fault, Recovery, recovery
from bench.soak.recorder import PHASE, line
from bench.soak.sampler import Series, trends
from bench.soak.trend import Measure, per_minute, slope, trend

ROOT = Path(__file__).resolve().parent.parent.parent
MEMORY = Measure("memory", "MB", 5.0)
SECONDS = [float(second) for second in range(0, 601, 5)]


def test_the_slope_is_that_of_the_line():
    assert slope([0, 1, 2, 3], [5, 7, 9, 11]) == 2
    assert slope([0, 1, 2, 3], [1, 1, 1, 1]) == 0
    assert slope([0, 1, 2], [0, 3, 0]) == 0


@pytest.mark.parametrize("seconds", [[], [1.0], [2.0, 2.0]])
def test_no_line_through_one_instant(seconds: list[float]):
    with pytest.raises(ValueError, match=r"two samples|same instant"):
        slope(seconds, seconds)


def test_a_start_that_grows_and_then_stays_is_flat():
    found = trend(MEMORY, SECONDS, [min(80 + second / 10, 100) for second in SECONDS])
    assert (found.first, found.last) == (80, 100)
    assert found.slope == pytest.approx(0)
    assert found.flat


def test_a_leak_is_not_flat_and_its_slope_is_per_hour():
    found = trend(MEMORY, SECONDS, [100 + second / 10 for second in SECONDS])
    assert found.slope == pytest.approx(360)
    assert found.rise == pytest.approx(30)
    assert not found.flat
    assert found.row()[-1] == "RISES"


def test_what_falls_is_flat_and_what_is_small_is_noise():
    assert trend(MEMORY, SECONDS, [200 - second / 10 for second in SECONDS]).flat
    assert trend(MEMORY, SECONDS, [1 + second / 100 for second in SECONDS]).flat, "3 of 4 MB, below the floor of 5"
    assert not trend(Measure("rows", "", 2.0), SECONDS, [1 + second / 100 for second in SECONDS]).flat


def test_samples_without_a_value_are_left_out():
    values = [None if index % 3 else 50.0 for index in range(len(SECONDS))]
    assert trend(MEMORY, SECONDS, values).slope == 0
    with pytest.raises(ValueError, match="nothing was sampled"):
        trend(MEMORY, SECONDS, [None] * len(SECONDS))


def test_a_total_becomes_a_rate():
    rates = per_minute([0, 30, 60, 90, 120], [0, 10, 20, None, 100], 60)
    assert rates == [None, None, 20, None, 80]


def test_every_measure_is_judged():
    steady: list[float | None] = [10.0 for _ in SECONDS]
    growing: list[float | None] = [second * 0.01 for second in SECONDS]
    files: list[float | None] = [1000.0 if n % 6 == 0 else None for n in range(len(SECONDS))]
    small: list[float | None] = [1.0 for _ in SECONDS]
    names = ("memory", "descriptors", "connections", "dead", "wal files", "table jobs")
    series: Series = dict.fromkeys(names, steady) | {"log files": files, "log bytes": files, "table keys": small}
    series |= {
        "wal": growing,
        "output": growing,
        "table history": growing,
        "table idempotency": growing,
        "second": list(SECONDS),
    }
    found = trends(series, rate=100)
    assert all(each.flat for each in found), [each.row() for each in found]
    leaking: Series = {**series, "table jobs": [second * 0.1 for second in SECONDS]}
    assert [each.measure.name for each in trends(leaking, rate=100) if not each.flat] == ["table jobs"]
    faster: Series = {**series, "wal": [second * second * 0.01 for second in SECONDS]}
    assert [each.measure.name for each in trends(faster, rate=100) if not each.flat] == ["WAL written"]


def call(job: int, slot: int, at: float | None = None) -> Call:
    return Call(slot / 1000 if at is None else at, job, slot, 1, 200)


DUE = {1: Duty(False, first=10_000, count=3), 2: Duty(True, first=10_500, count=3), 3: Duty(False), 4: Duty(True)}
ALL = [call(1, 10_000 + n * 1000) for n in range(3)] + [call(2, 10_500 + n * 1000) for n in range(3)]
ALL += [call(3, 11_111), call(4, 11_112)]
AWAY = [Window(11.0, 13.0)]


def test_all_that_was_due_once_each():
    found = compare(DUE, ALL, [])
    assert (found.due, found.calls) == (8, 8)
    assert not any((found.lost, found.unsent, found.doubled, found.repeated, found.twice, found.strange))


@pytest.mark.parametrize(
    ("missing", "lost", "unsent"),
    [(1, [(1, 11_000)], []), (4, [], [(2, 11_500)]), (6, [(3, 0)], []), (7, [], [(4, 0)])],
)
def test_what_did_not_come(missing: int, lost: list[tuple[int, int]], unsent: list[tuple[int, int]]):
    found = compare(DUE, [each for index, each in enumerate(ALL) if index != missing], [])
    assert (found.lost, found.unsent) == (lost, unsent)


def test_a_repeat_is_explained_only_by_a_failover_at_its_first_call():
    during = [*ALL, call(1, 12_000, at=14.0)]
    assert compare(DUE, during, AWAY).repeated == [(1, 12_000)]
    assert compare(DUE, during, []).doubled == [(1, 12_000)]
    before = [*ALL, call(1, 10_000, at=12.0)]
    found = compare(DUE, before, AWAY)
    assert (found.doubled, found.repeated) == ([(1, 10_000)], [])


def test_no_failover_explains_an_at_most_once_call_that_came_twice():
    found = compare(DUE, [*ALL, call(2, 11_500, at=12.5)], AWAY)
    assert (found.twice, found.repeated) == ([(2, 11_500)], [])


@pytest.mark.parametrize("stranger", [call(1, 13_000), call(1, 10_001), call(9, 10_000), call(3, 11_112)])
def test_what_was_not_due(stranger: Call):
    assert (stranger.job, stranger.slot) in compare(DUE, [*ALL, stranger], AWAY).strange


def fault(gone: float = 100.0, writable: float = 103.0) -> Fault:
    return Fault("switchover", "a", "b", gone, writable, 110.0)


def test_the_first_call_after_a_failover_is_one_that_was_not_claimed_before():
    ahead = [call(1, slot) for slot in range(98_000, 102_001, 500)]  # claimed from the old primary
    late = [call(1, slot, at=104.5) for slot in range(102_500, 104_500, 500)]
    found = recovery(fault(), [*ahead, *late, call(1, 105_000)], until=200.0, lookahead=2.0, lease=5.0)
    assert found.first == 104.5
    assert (found.gap, found.own) == (4.5, 3.0)
    assert found.beyond == pytest.approx(4.5 - 3.0 - 5.0)
    assert found.silence == pytest.approx(2.5)
    assert found.caught_up == pytest.approx(4.5)
    assert found.window() == Window(95.0, 109.5)


def test_who_does_not_come_back_has_no_gap():
    found = recovery(fault(), [call(1, 101_000)], until=200.0, lookahead=2.0, lease=5.0)
    assert (found.first, found.gap, found.beyond, found.caught_up) == (None, None, None, None)
    assert "never" in found.row(0.0)
    assert isinstance(found, Recovery)


def test_the_record_is_read_as_it_is_written(tmp_path: Path):
    head = b"POST /%s HTTP/1.1\r\nhost: x\r\nWebhook-Id: 7-10000\r\nX-Onthedot-Attempt: 3\r\n\r\n"
    written, status = line(head % b"ok", PHASE * 2 + 0.5)
    assert status == 200
    failed, status = line(head % b"flaky", PHASE * 3 + 0.5)
    assert status == 500
    alert = b'POST /alert HTTP/1.1\r\n\r\n{"event": "opened", "condition": "failed", "count": 2, "text": "x"}'
    told, status = line(alert, 5.0)
    assert status == 200
    record = tmp_path / "calls.txt"
    record.write_bytes(written + failed + told + b"call 9.000 8-1")
    calls, alerts = read_record(record)
    assert calls == [(40.5, 7, 10_000, 3, 200), (60.5, 7, 10_000, 3, 500)]
    assert alerts == [(5.0, "opened", "failed", 2)]


def test_a_call_that_names_no_run_is_not_recorded_as_one():
    with pytest.raises(ValueError, match="not a webhook of a run"):
        line(b"POST /ok HTTP/1.1\r\nhost: x\r\n\r\n", 1.0)


def test_what_is_wanted_of_the_full_soak_is_measured_by_it():
    measured = (ROOT / "bench" / "ours" / "full_soak.py").read_text()
    wanted = {each.figure.partition(".")[0] for each in full_soak(patroni=True).wanted}
    assert wanted >= {"lost", "doubled", "twice", "not_flat", "beyond_lease"}
    assert [figure for figure in wanted if f'"{figure}":' not in measured] == []
    assert not {"failovers", "beyond_lease"} & {each.figure for each in full_soak().wanted}


def test_the_full_soak_has_its_door():
    text = (ROOT / "Makefile").read_text()
    assert all(flag in text for flag in ("--seconds $(SECONDS)", "--rate $(RATE)", "--full", "--patroni"))
