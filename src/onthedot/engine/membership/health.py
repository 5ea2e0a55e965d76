"""Whether the database answers, as this node sees it. Feeds `ready`; says each change once."""

from __future__ import annotations

from onthedot.telemetry import emit

__all__ = ["StoreHealth"]


class StoreHealth:
    def __init__(self) -> None:
        self.ok = True

    def failed(self, error: BaseException) -> None:
        if self.ok:
            self.ok = False
            emit("store.unavailable", error=str(error) or type(error).__name__)

    def worked(self) -> None:
        if not self.ok:
            self.ok = True
            emit("store.back")
