"""How long a pause lasts, as the forms that pause jobs ask for it."""

from __future__ import annotations

from onthedot.errors import Invalid
from onthedot.model.duration import DAY, HOUR
from onthedot.model.instant import format_instant
from onthedot.web.forms import Form
from onthedot.web.local_time import read_instant

__all__ = ["PAUSES", "PAUSE_FIELDS", "pause_end"]

PAUSE_FIELDS = ("note", "ends", "until")
PAUSES = (
    ("", "somebody resumes it"),
    ("1h", "an hour has passed"),
    ("8h", "8 hours have passed"),
    ("1d", "a day has passed"),
    ("7d", "a week has passed"),
    ("at", "the time below"),
)
_MS = {"1h": HOUR, "8h": 8 * HOUR, "1d": DAY, "7d": 7 * DAY}


def pause_end(form: Form, tz: str, now: int) -> str | None:
    """When it resumes by itself; None: when somebody resumes it."""
    ends, until = form.text("ends"), form.given("until")
    if ends not in dict(PAUSES):
        accepted = ", ".join(each for each, _ in PAUSES if each)
        raise Invalid.one("ends", "unknown choice", given=ends[:100], accepted=accepted)
    if ends in _MS:
        return format_instant(now + _MS[ends])
    if until is not None:
        return read_instant("until", until, tz)
    if ends == "at":
        raise Invalid.one("until", "is missing", accepted=f"a date and time in {tz}")
    return None
