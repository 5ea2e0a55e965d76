"""Is everything firing on time? What keeps the answer from being yes, in words, the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from onthedot.model.destination import DestinationView
from onthedot.model.node import NodeView
from onthedot.model.proof import Proof
from onthedot.store import BacklogCount
from onthedot.web.words import count_words, how_long

__all__ = ["BoundedCount", "Concern", "concerns_of"]

WAITS_TOO_LONG = 5000
"""ms for which the oldest due run may wait before it is worth a word: longer than any node is busy with claiming."""


class BoundedCount(msgspec.Struct, frozen=True):
    """How many were found by looking at so many; `more`: there may be others."""

    number: int
    more: bool = False

    def words(self, one: str, many: str | None = None) -> str:
        if self.more:
            return f"more than {count_words(self.number, one, many)}" if self.number else f"some {many or one + 's'}"
        return count_words(self.number, one, many)

    @property
    def figure(self) -> str:
        return f"{self.number:,}{'+' if self.more else ''}"


class Concern(msgspec.Struct, frozen=True):
    """`path`: the page that shows it, with its parameters."""

    tone: str  # bad | warn
    words: str
    path: str


def concerns_of(
    *,
    paused: bool = False,
    nodes: Sequence[NodeView] | None = None,
    failing: BoundedCount | None = None,
    late: BoundedCount | None = None,
    backlog: BacklogCount | None = None,
    destinations: Sequence[DestinationView] | None = None,
    proof: Proof | None = None,
) -> list[Concern]:
    """Of what could be loaded; None is not known."""
    found = [*_of_nodes(nodes), *_of_proof(proof)]
    if paused:
        found.insert(0, Concern("warn", "everything is paused", "/audit?verb=freeze"))
    if failing is not None and failing.number:
        is_are = "is" if failing.number == 1 and not failing.more else "are"
        found.append(Concern("bad", f"{failing.words('job')} {is_are} failing", "/jobs?failing=true"))
    if late is not None and late.number:
        is_are = "is" if late.number == 1 and not late.more else "are"
        found.append(Concern("warn", f"{late.words('job')} {is_are} late", "/jobs?late=true"))
    if backlog is not None:
        found += _of_backlog(backlog)
    stopped = sum(1 for each in destinations or () if each.breaker != "closed")
    if stopped:
        does = "does" if stopped == 1 else "do"
        found.append(Concern("warn", f"{count_words(stopped, 'destination')} {does} not respond", "/destinations"))
    return sorted(found, key=lambda concern: concern.tone != "bad")


def _of_nodes(nodes: Sequence[NodeView] | None) -> Iterable[Concern]:
    if nodes is None:
        return
    if not any(node.state == "alive" and "executor" in node.roles for node in nodes):
        yield Concern("bad", "no node is running jobs", "/nodes")
    lost = sum(1 for node in nodes if node.state == "lost")
    if lost:
        yield Concern("bad", f"{count_words(lost, 'node')} {'was' if lost == 1 else 'were'} lost", "/nodes")


def _of_proof(proof: Proof | None) -> Iterable[Concern]:
    if proof is None:
        return
    if proof.missing:
        is_are = "is" if proof.missing == 1 else "are"
        yield Concern("bad", f"{count_words(proof.missing, 'slot')} {is_are} missing", "/#proof")
    if proof.twice:
        was = "was" if proof.twice == 1 else "were"
        yield Concern("bad", f"{count_words(proof.twice, 'slot')} {was} decided twice", "/#proof")
    if proof.blind and not (proof.missing or proof.twice):
        yield Concern("warn", "the proof does not cover the whole day", "/#proof")


def _of_backlog(backlog: BacklogCount) -> Iterable[Concern]:
    alone = sum(backlog.unoffered.values())
    if alone:
        needs = "needs" if alone == 1 else "need"
        yield Concern("bad", f"{count_words(alone, 'due run')} {needs} what no node offers", "/runs?due=true")
    elif backlog.due and (backlog.oldest_ms or 0) > WAITS_TOO_LONG:
        waits = "waits" if backlog.due == 1 else "wait"
        since = how_long(backlog.oldest_ms)
        yield Concern("warn", f"{count_words(backlog.due, 'due run')} {waits} (up to {since})", "/runs?due=true")
    away = sum(backlog.unreached.values())
    if away:
        words = "goes on where no node reaches it" if away == 1 else "go on where no node reaches them"
        yield Concern("bad", f"{count_words(away, 'run')} {words}", "/runs?status=EXECUTING")
