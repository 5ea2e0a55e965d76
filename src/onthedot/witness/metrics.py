"""Prometheus metrics of a witness."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector
from prometheus_client.exposition import generate_latest

from onthedot.telemetry.metrics import CONTENT_TYPE
from onthedot.version import __version__

__all__ = ["CONTENT_TYPE", "WitnessMetrics"]

FINDINGS = ("silent", "standing", "missing", "twice")
_RESULTS = ("ok", "failed")


class WitnessMetrics:
    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        build = Gauge("onthedot_build_info", "Always 1; the version is a label", ["version"], registry=registry)
        build.labels(__version__).set(1)
        self.looks = Counter(
            "onthedot_witness_looks",
            "Looks of the witness at the store, by what was looked at and whether it could be read",
            ["look", "result"],
            registry=registry,
        )
        self.looked_at = Gauge(
            "onthedot_witness_last_look_timestamp_seconds",
            "When the witness last could look",
            ["look"],
            registry=registry,
        )
        self.blind = Gauge(
            "onthedot_witness_blind", "1 while the witness can't read the store, else 0", registry=registry
        )
        self.findings = Gauge(
            "onthedot_witness_findings", "What the last look of the witness found, by kind", ["kind"], registry=registry
        )
        self.expected = Gauge(
            "onthedot_witness_slots_expected", "Slots that must have been decided, at the last look", registry=registry
        )
        self.decided = Gauge("onthedot_witness_slots_decided", "Slots of them that were decided", registry=registry)
        self.messages = Counter(
            "onthedot_witness_messages",
            "Messages of the witness to channels: ok or failed",
            ["result"],
            registry=registry,
        )
        self.pings = Counter(
            "onthedot_witness_pings", "Calls of WITNESS_PING_URL: ok or failed", ["result"], registry=registry
        )
        for result in _RESULTS:
            self.messages.labels(result)
            self.pings.labels(result)
            for look in ("alive", "slots"):
                self.looks.labels(look, result)
        for kind in FINDINGS:
            self.findings.labels(kind)

    def text(self) -> bytes:
        return generate_latest(self.registry)


def result_of(good: bool) -> str:
    return _RESULTS[0] if good else _RESULTS[1]
