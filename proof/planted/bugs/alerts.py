"""Who is told of what, once and within seconds: found by the tests, as nobody is told anything in the simulation."""

from __future__ import annotations

from proof.planted.plant import Bug, Code, Edit, Sql, Swap

__all__ = ["BUGS"]

_AT_ONCE, _DELAY, _ALERTS = (
    "tests/store/test_alerts_at_once.py",
    "tests/engine/test_alert_delay.py",
    "tests/store/test_alerts.py",
)
_OPEN = "onthedot.store.alerts.incidents:open_incidents"


def _bug(name: str, what: str, edit: Edit | tuple[Edit, ...], *tests: str) -> Bug:
    edits = edit if isinstance(edit, tuple) else (edit,)
    return Bug(name=f"alert: {name}", what=what, edits=edits, tests=tests, unseen="the simulation has no alerts")


BUGS = (
    _bug(
        "told by each who finds it",
        "two nodes that find the same both tell it",
        Code(_OPEN, 'fresh = [row for row in rows if row["alerted_at"] is None]', "fresh = list(rows)"),
        _AT_ONCE,
    ),
    _bug(
        "a second incident",
        "who finds what is open already opens one more",
        Code(
            "onthedot.store.alerts.incidents:_merged",
            "subject=last.subject,",
            'subject=f"{last.subject} {last.occurrence}",',
        ),
        _AT_ONCE,
    ),
    _bug(
        "opened while it is closed",
        "what is over is told anew by who had found it before",
        Sql("lock_open_incidents", " FOR UPDATE OF i", "", dialect="postgres"),
        _AT_ONCE,
    ),
    _bug(
        "closed twice",
        "two nodes that see that it is over both tell it",
        Sql("close_incident", " AND closed_at IS NULL", "", dialect="postgres"),
        _AT_ONCE,
    ),
    _bug(
        "a message that two nodes take",
        "each channel is sent it twice",
        Sql("take_deliveries", "taken_until = $3", "taken_until = 0", dialect="postgres"),
        _AT_ONCE,
        _ALERTS,
    ),
    _bug(
        "looked for too seldom",
        "what only somebody who looks can find is told after ten seconds",
        Swap("onthedot.engine.alerting.alert_watcher:LOOK_EVERY", 10.0),
        _DELAY,
    ),
    _bug(
        "nobody looks after a death",
        "who has the duty after a lost node waits for the next look at it",
        Code("onthedot.engine.membership.failure_detector:FailureDetector.look_around", "self.duty_free.set()", "pass"),
        _DELAY,
    ),
    _bug(
        "the sender is not called",
        "a message waits for the next look of its channel, ten seconds",
        (
            Code("onthedot.engine.recording.note_runner:NoteRunner.carry_out", "if carried.incidents:", "if False:"),
            Swap("onthedot.engine.alerting.alert_sender:LOOK_EVERY", 10.0),
        ),
        _DELAY,
    ),
)
