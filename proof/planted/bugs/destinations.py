"""Destinations: waiting that counts, limits and breakers that do not hold, and runs that wait for ever."""

from __future__ import annotations

from typing import Any

from proof.planted.plant import Bug, Code, code, sql

__all__ = ["BUGS"]

_PLACES = "onthedot.engine.running.destinations:Destinations"
_BREAKER = "onthedot.plan.breaker:Breaker"
_WATCH = "onthedot.engine.claiming.waiting_watch:WaitingWatch"
_HOSTS = ("hanging_host", "failing_host")
_STORE = ("tests/store/test_destinations.py",)
_ENGINE = ("tests/engine/test_destinations.py",)


def _played(name: str, what: str, where: str, part: str, instead: str, **more: Any) -> Bug:
    return code(f"destinations: {name}", what, where, part, instead, faults=_HOSTS, **more)


def _waiting(name: str, what: str, instead: str) -> Bug:
    """In the statement that lets a run wait."""
    return sql(
        f"destinations: {name}",
        what,
        "wait_for_destination",
        "waiting = x.waiting,",
        f"waiting = x.waiting, {instead},",
        faults=_HOSTS,
        shows=("waiting",),
    )


BUGS = (
    _waiting("waiting is an attempt", "a run that waits loses a try each time", "tries = runs.tries + 1"),
    _waiting("waiting changes the due time", "nobody sees how late it is", "due_at = runs.due_at + 1000"),
    _waiting("waiting raises the token", "the fence moves without a claim", "token = runs.token + 1"),
    _played(
        "limit ignored",
        "a host that hangs gets all slots",
        f"{_PLACES}._room",
        "max(limit - place.open_calls, pool.capacity // 2 + 1 - pool.running)",
        "99",
        shows=("limit",),
    ),
    _played(
        "limit of the whole pool",
        "the limit is not counted by destination",
        f"{_PLACES}.begin",
        "place.open_calls += 1",
        "place.open_calls += 0",
        shows=("limit",),
    ),
    _played(
        "never probed",
        "nobody ever finds out that a host is back",
        f"{_BREAKER}.admits",
        "(not self.probing and now >= self._probe_at)",
        "False",
        shows=("stuck", "waiting"),
    ),
    _played(
        "breaker never closes",
        "a host that is back gets one call in ten seconds",
        f"{_BREAKER}.succeeded",
        "self.since, self.probing, self._closed_at = None, False, now",
        "self.probing = False",
        shows=("stuck", "waiting", "breaker"),
    ),
    _played(
        "breaker ignored",
        "a host that is down is called all the same",
        f"{_PLACES}.admits",
        "if is_open and not place.breaker.admits(self._clock.monotonic()):",
        "if False:",
        shows=("breaker",),
    ),
    _played(
        "probe after probe",
        "while a breaker is open each end of a probe is followed by the next",
        f"{_BREAKER}.sent",
        "self._probe_at = now + PROBE_EVERY",
        "self._probe_at = now",
        shows=("breaker",),
    ),
    Bug(
        name="destinations: what waits is never looked for",
        what="runs that another node put there, or that this one forgot, wait for ever",
        edits=(
            Code(f"{_WATCH}.look", "self._waits(requires)", "pass"),
            Code(f"{_PLACES}.waits", "if not place.waited_for:", "if False:"),
        ),
        faults=_HOSTS,
        shows=("stuck", "waiting"),
    ),
    code(
        "destinations: only the first are seen",
        "of many destinations those after the first are never looked for",
        f"{_WATCH}.look",
        "self._seen[low] = here[-1]",
        "pass",
        tests=_ENGINE,
        unseen="the simulation has three hosts, and a look finds 64",
    ),
    code(
        "destinations: forgotten with open calls",
        "a destination has more calls than it may",
        f"{_PLACES}._forget_some",
        "place.open_calls or ",
        "",
        tests=_ENGINE,
        unseen="the simulation has three hosts, and none is ever forgotten",
    ),
    code(
        "destinations: shared by tenants",
        "one tenant opens the breaker of another",
        "onthedot.model.destination:waits_for",
        "if tenant == _FIRST_TENANT:",
        "if True:",
        tests=("tests/unit/model/test_destination.py", *_ENGINE),
        unseen="the simulation has one tenant",
    ),
    sql(
        "destinations: an edit in between is not seen",
        "a run waits for the host that its job had before",
        "wait_for_destination",
        "AND j.version = x.version ",
        "",
        tests=_STORE,
        unseen="it is sent when that host is well: late, which waiting excuses",
    ),
    sql(
        "destinations: expiry is not seen",
        "what should have expired waits until its host is well",
        "any_expired_waiting",
        "waiting_until <= now_ms()",
        "waiting_until < 0",
        tests=_STORE,
        unseen="it expires when its host is well",
    ),
    sql(
        "destinations: a pause is lifted",
        "a run of a paused job is let go because it has expired",
        "release_expired_waiting",
        "AND parked IS NULL",
        "",
        tests=_STORE,
        unseen="its ready_at keeps it from being claimed",
    ),
)
