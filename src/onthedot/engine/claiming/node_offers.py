"""What this node offers: what its kinds of target can do, and the same with the sets of labels that runs ask for.

A node of five labels has 31 sets of them, and each would be a look of its own in every claim. So it offers those that
occur in the store (`LabelWatch` finds them), and no more than so many. A node without labels offers what its kinds do.
"""

from __future__ import annotations

from collections.abc import Iterable

from onthedot.engine.tuning import LABEL_SETS_KEPT, LABEL_SETS_OFFERED
from onthedot.model.labels import read_requires, with_labels
from onthedot.targets import Targets

__all__ = ["NodeOffers"]


class NodeOffers:
    def __init__(self, targets: Targets, labels: Iterable[str] = ()) -> None:
        self.labels = frozenset(labels)
        self._targets = targets
        self._asked_for: dict[str, tuple[str, float]] = {}  # what runs require: its capability, and when it was seen

    def capabilities(self) -> list[str]:
        """All that a run may require which this node claims."""
        return self._with_labels(self._targets.capabilities())

    def waiting_capabilities(self) -> list[str]:
        """Of them, those with which runs may have to wait for a destination."""
        return self._with_labels(self._targets.waiting_capabilities())

    def seen(self, required: Iterable[str], now: float) -> bool:
        """Runs require this. Whether something is new that this node can run."""
        offered = set(self._targets.capabilities())
        new = False
        for text in required:
            needed = read_requires(text)
            if not needed.labels or needed.capability not in offered or not self.labels.issuperset(needed.labels):
                continue
            requires = with_labels(needed.capability, needed.labels)  # it may wait for a destination, too
            new = self._asked_for.pop(requires, None) is None or new
            self._asked_for[requires] = needed.capability, now
        self._forget(now)
        return new

    def _with_labels(self, capabilities: list[str]) -> list[str]:
        if not self._asked_for:
            return capabilities
        here = set(capabilities)
        return [*capabilities, *sorted(name for name, (needs, _) in self._asked_for.items() if needs in here)]

    def _forget(self, now: float) -> None:
        """What nobody asks for any more; and of too many those that were seen first: they are seen again in turn."""
        for requires, (_, at) in list(self._asked_for.items()):
            if now - at <= LABEL_SETS_KEPT and len(self._asked_for) <= LABEL_SETS_OFFERED:
                break  # they stand in the order in which they were seen
            del self._asked_for[requires]
