"""Who is lost, decided by watching: no clock but this node's monotonic one, no time of another machine.

A beat that stood still for one lease, while our own beats came through without a gap over 2 s. After a gap (we were
frozen, or the database was away, and then perhaps for everybody) the watch starts anew, so that nobody robs anybody
after an outage.
"""

from __future__ import annotations

from collections.abc import Iterable

from onthedot.engine.tuning import peer_gap

__all__ = ["PeerBeats"]


class PeerBeats:
    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._gap = peer_gap(lease)
        self._seen: dict[str, tuple[int, float]] = {}  # peer → its beat, and when we first saw that beat
        self._last_good: float | None = None

    def observe(self, at: float, peers: Iterable[tuple[str, int]]) -> None:
        """Our own beat came through at this monotonic instant, with the beats of all others."""
        self._check_gap(at)
        self._last_good = at
        seen = {}
        for peer, beat in peers:
            known = self._seen.get(peer)
            seen[peer] = known if known is not None and known[0] == beat else (beat, at)
        self._seen = seen

    def suspects(self, now: float) -> list[tuple[str, int]]:
        """(node, beat seen) of those to declare lost; the store does it only if the beat still is that one."""
        self._check_gap(now)
        return [(peer, beat) for peer, (beat, since) in self._seen.items() if now - since >= self._lease]

    def next_deadline(self) -> float | None:
        """When the first of them will have stood still for a lease: waiting for the next beat would cost a second."""
        return min((since + self._lease for _, since in self._seen.values()), default=None)

    def forget(self, peer: str) -> None:
        self._seen.pop(peer, None)

    def _check_gap(self, now: float) -> None:
        if self._last_good is not None and now - self._last_good > self._gap:
            self._seen = {peer: (beat, now) for peer, (beat, _) in self._seen.items()}
