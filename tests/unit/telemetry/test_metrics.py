"""Events become numbers; no label grows with the data."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from onthedot.telemetry import Telemetry
from onthedot.telemetry.metrics import Metrics


@pytest.fixture
def wire() -> Telemetry:
    return Telemetry()


@pytest.fixture
def metrics(wire: Telemetry) -> Metrics:
    metrics = Metrics()
    metrics.listen(wire)
    return metrics


def value(metrics: Metrics, name: str, **labels: str) -> float:
    found = metrics.registry.get_sample_value(name, labels)
    assert found is not None, f"no sample {name} {labels}"
    return found


@pytest.mark.parametrize(
    ("event", "fields", "name", "labels", "amount"),
    [
        ("run.claimed", {"n": 40}, "onthedot_runs_claimed_total", {}, 40),
        ("run.started", {"lateness_ms": 3}, "onthedot_runs_fired_total", {}, 1),
        ("run.retried", {}, "onthedot_runs_retried_total", {}, 1),
        ("run.skipped", {"reason": "late", "n": 12}, "onthedot_runs_skipped_total", {"reason": "late"}, 12),
        ("run.skipped", {"reason": "late", "n": None}, "onthedot_runs_skipped_total", {"reason": "late"}, 1),
        ("run.skipped", {"reason": "a whim"}, "onthedot_runs_skipped_total", {"reason": "other"}, 1),
        ("run.refused", {"run_id": "1-1"}, "onthedot_finishes_refused_total", {}, 1),
        ("run.lost", {}, "onthedot_runs_lost_total", {}, 1),
        ("dead.letter", {}, "onthedot_dead_letters_total", {}, 1),
        ("ledger.conflict", {}, "onthedot_ledger_conflicts_total", {}, 1),
        ("job.quarantined", {"reason": "x"}, "onthedot_jobs_quarantined_total", {}, 1),
        ("job.silent", {"job_id": 1}, "onthedot_jobs_silent_total", {}, 1),
        ("clock.set", {"by_ms": -3_600_000}, "onthedot_clock_set_total", {"way": "back"}, 1),
        ("clock.set", {"by_ms": 3_600_000}, "onthedot_clock_set_total", {"way": "ahead"}, 1),
        ("floor.repaired", {"n": 12, "jobs": [1]}, "onthedot_floors_repaired_total", {}, 12),
        ("run.detached", {"run_id": "1-1"}, "onthedot_runs_detached_total", {}, 1),
        ("run.adopted", {"run_id": "1-1"}, "onthedot_runs_adopted_total", {}, 1),
        ("run.accepted", {"run_id": "1-1"}, "onthedot_runs_accepted_total", {}, 1),
        ("callback.refused", {"run_id": "1-1"}, "onthedot_callbacks_refused_total", {}, 1),
        ("log.unwritten", {"path": "x"}, "onthedot_run_logs_unwritten_total", {}, 1),
        ("login.refused", {"address": "x"}, "onthedot_logins_refused_total", {}, 1),
        ("note.failed", {"kind": "chain"}, "onthedot_notes_failed_total", {}, 1),
        ("store.failover", {"gap": 1}, "onthedot_store_failovers_total", {}, 1),
        ("incident.opened", {"condition": "late"}, "onthedot_incidents_opened_total", {}, 1),
        ("alert.sent", {"channel": "ops", "n": 3}, "onthedot_alert_messages_total", {"result": "sent"}, 1),
        ("alert.failed", {"channel": "ops", "n": 3}, "onthedot_alert_messages_total", {"result": "failed"}, 1),
        ("aws.unavailable", {"error": "x"}, "onthedot_service_unavailable_total", {"service": "aws"}, 1),
        ("kubernetes.unavailable", {}, "onthedot_service_unavailable_total", {"service": "kubernetes"}, 1),
        ("node.lost", {"node": "a"}, "onthedot_nodes_lost_total", {}, 1),
        ("store.unavailable", {"error": "x"}, "onthedot_store_unavailable_total", {}, 1),
    ],
)
def test_an_event_is_counted_where_it_belongs(wire, metrics, event, fields, name, labels, amount):
    wire.emit(event, **fields)
    assert value(metrics, name, **labels) == amount


def test_a_finished_run_counts_by_status_and_kind_and_its_time_goes_into_the_histogram(wire, metrics):
    wire.emit("run.finished", status="DONE", kind="scheduled", duration_ms=20, lateness_ms=1, job_id=1)
    wire.emit("run.finished", status="FAILED", kind="manual", duration_ms=2000, lateness_ms=1, job_id=1)
    assert value(metrics, "onthedot_runs_finished_total", status="DONE", kind="scheduled") == 1
    assert value(metrics, "onthedot_runs_finished_total", status="FAILED", kind="manual") == 1
    assert value(metrics, "onthedot_runs_failed_total") == 1
    assert value(metrics, "onthedot_run_duration_seconds_count") == 2
    assert value(metrics, "onthedot_run_duration_seconds_bucket", le="0.025") == 1


def test_lateness_is_in_seconds_and_an_unknown_one_is_not_guessed(wire, metrics):
    wire.emit("run.started", lateness_ms=4)
    wire.emit("run.started", lateness_ms=None)
    assert value(metrics, "onthedot_run_lateness_seconds_sum") == pytest.approx(0.004)
    assert value(metrics, "onthedot_run_lateness_seconds_count") == 1
    assert value(metrics, "onthedot_runs_fired_total") == 2


def test_no_label_takes_its_values_from_the_data(wire, metrics):
    for number in range(50):
        wire.emit(
            "run.finished", status=f"odd-{number}", kind="scheduled", job_id=number, run_id=f"{number}-1", tenant=1
        )
        wire.emit("run.skipped", reason=f"odd-{number}", job_id=number, n=1)
    names = {
        label
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
        for label in sample.labels
    }
    assert names <= {
        "status",
        "kind",
        "reason",
        "le",
        "method",
        "route",
        "state",
        "way",
        "service",
        "version",
        "result",
    }
    assert value(metrics, "onthedot_runs_finished_total", status="other", kind="scheduled") == 50
    assert value(metrics, "onthedot_runs_skipped_total", reason="other") == 50


def test_every_skip_reason_is_there_from_the_start_so_that_rates_work(metrics):
    for reason in ("coalesced", "overlap", "late", "paused", "excluded"):
        assert value(metrics, "onthedot_runs_skipped_total", reason=reason) == 0


def test_events_that_are_no_metric_change_nothing(wire, metrics):
    def ours() -> list[bytes]:
        return [line for line in metrics.text().splitlines() if b"process_" not in line]

    before = ours()
    wire.emit("job.created", job_id=1)
    assert ours() == before


def test_two_nodes_in_one_process_do_not_mix(wire, metrics):
    other = Metrics()
    wire.emit("run.claimed", n=3)
    assert value(metrics, "onthedot_runs_claimed_total") == 3
    assert value(other, "onthedot_runs_claimed_total") == 0


def test_the_text_says_nothing_twice_and_has_help_for_everything(metrics):
    text = metrics.text().decode()
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
    assert not [name for name in names if name.endswith("_created")]
    assert text.count("# HELP") == len(names)
