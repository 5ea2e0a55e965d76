"""What was to be reached, and whether it was: one line each."""

from __future__ import annotations

import msgspec

from proof.chaos.figures import NO_FAULT, POSSIBLE, SPARED
from proof.chaos.run import Result
from proof.checker.story import LEASE

__all__ = ["Aim", "aims_of"]


class Aim(msgspec.Struct, frozen=True):
    """reached None: this run has nothing to say about it."""

    name: str
    wanted: str
    got: str
    reached: bool | None


def aims_of(result: Result, *, full: bool) -> list[Aim]:
    """full: also what only the long run of all kinds of faults can say."""
    figures, repeats = result.figures, result.figures.repeats
    counts = (figures.lost, figures.phantom, figures.early, figures.unexplained_repeats, figures.at_most_once)
    aims = [
        Aim(
            "lost, phantom, early, unexplained repeats, at-most-once",
            "0, 0, 0, 0, 0",
            ", ".join(map(str, counts)),
            not any(counts),
        ),
        Aim("any other violation", "0", str(figures.other_violations), not figures.other_violations),
        _average(
            "repeats per kill -9, database there, receiver quick",
            repeats.per_kill_of_both,
            repeats.kills + repeats.aimed,
            "kills",
        ),
        Aim("… at random", "–", _told(repeats.per_kill, repeats.kills), None),
        Aim("… of these, whose first had its answer", "–", _told(repeats.per_kill_answered, repeats.kills), None),
        Aim("… at a named point", "–", _told(repeats.per_aimed, repeats.aimed), None),
        Aim("… kill by kill", "–", " ".join(str(count) for _, _, count in repeats.of_each) or "none", None),
        Aim(
            "repeats per kill -9, database away",
            "–",
            f"{repeats.per_kill_apart} ({repeats.kills_apart} kills, with all unrecorded results of the outage)",
            None,
        ),
        Aim(
            "repeats per kill -9, answers take seconds",
            "–",
            f"{repeats.per_kill_slow} ({repeats.kills_slow} kills, with all calls under way)",
            None,
        ),
        _average(
            "repeats per cut connection",
            repeats.by_kind.get("cut", 0) / max(1, repeats.connections_cut),
            repeats.connections_cut,
            "connections",
        ),
    ]
    for name, kinds in (
        ("SIGTERM", ("sigterm", "twin_stopped")),
        ("terminated backends", ("backends",)),
        ("an outage shorter than the lease", ("short_outage", "db_restart")),
    ):
        happened = sum(figures.kinds.get(kind, 0) for kind in kinds)
        count = sum(repeats.by_kind.get(kind, 0) for kind in kinds)
        aims.append(Aim(f"repeats for {name}", "0", f"{count} ({happened} faults)", count == 0 if happened else None))
    takeover = figures.takeover_ms
    aims += [
        _within("a killed node's runs taken over, p99", takeover, LEASE + 1000),
        _within("lateness with no fault, p99", figures.lateness_ms[NO_FAULT], 50),
        _within(f"lateness {SPARED}, p99", figures.lateness_ms[SPARED], 2000),
    ]
    if full:
        big = figures.scheduled >= 200_000 and figures.faults >= 200 and len(figures.kinds) >= 12
        got = f"{figures.scheduled} / {figures.faults} / {len(figures.kinds)}"
        aims.insert(0, Aim("scheduled / faults / kinds", "≥ 200000 / ≥ 200 / ≥ 12", got, big))
        rate = figures.firings_per_second
        aims.append(_within(f"lateness {POSSIBLE}, p99", figures.lateness_ms[POSSIBLE], 2000))
        aims.append(Aim("firings per second, with all outages", "–", str(rate), None))
    return aims


def _told(value: float, kills: int) -> str:
    return f"{value} ({kills} kills)"


def _average(name: str, value: float, count: int, of: str) -> Aim:
    return Aim(name, "≤ 1", f"{round(value, 2)} ({count} {of})", value <= 1 if count else None)


def _within(name: str, spread: dict[str, int], most: int) -> Aim:
    return Aim(
        name, f"≤ {most} ms", f"{spread['p99']} ms (n = {spread['n']})", spread["p99"] <= most if spread["n"] else None
    )
