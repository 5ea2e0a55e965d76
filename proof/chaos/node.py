"""`onthedot serve` as it is, with three things put in between: webhooks say which node sent them, the process can be
made to kill itself at a named point, and its wall clock can be set. `python -m proof.chaos.node serve …`

SIGUSR1: read CHAOS_FILE again. "point count": kill -9 at the count-th passage from now; "warm 1" before it: only after
the first result was recorded. "clock ms": how wrong the wall clock is from now on. Nothing in the product knows of
this.

The clock is set in here rather than by libfaketime, which also meddles with epoll: under it an idle node's webhooks
were a second late at p99.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Self

import msgspec

import onthedot.main
from onthedot.cli import main
from onthedot.engine import Node
from onthedot.model.node import NodeInfo
from onthedot.model.targets import Target, WebhookTarget
from onthedot.store import Claim, Finished, FinishReport, Store
from onthedot.targets import Kind, Targets
from onthedot.targets.contract import Call, Done, Ended, Handle

__all__ = ["LISTENS", "POINTS", "serve"]

POINTS = ("claimed", "begun", "before_send", "after_send", "before_record", "after_record")
LISTENS = ".listens"
"""Beside CHAOS_FILE: which process hears SIGUSR1 by now. That it is ignored before is not inherited: libuv resets."""


class Trap:
    """What is armed, if anything."""

    def __init__(self) -> None:
        self.point = ""
        self.left = 0
        self.cold = False
        self.clock_ms = 0

    def read(self, *_: object) -> None:
        self.point, self.left, self.cold = "", 0, False
        for line in Path(os.environ["CHAOS_FILE"]).read_text().splitlines():
            what, number = line.split()
            if what == "clock":
                self.clock_ms = int(number)
            elif what == "warm":
                self.cold = bool(int(number))
            else:
                self.point, self.left = what, int(number)

    def passed(self, point: str) -> None:
        if self.cold:
            self.cold = point != "after_record"
            return
        if point != self.point:
            return
        self.left -= 1
        if self.left <= 0:
            Path(os.environ["CHAOS_FILE"] + ".hit").write_text(point)
            os.kill(os.getpid(), signal.SIGKILL)


trap = Trap()
current: list[Node] = []


class TrappedStore(Store):
    async def claim(self, *args: Any, **kwargs: Any) -> Claim:
        claim = await super().claim(*args, **kwargs)
        if claim.runs:
            trap.passed("claimed")
        return claim

    async def begin(self, node: str, fences: Sequence[tuple[str, int]]) -> set[str]:
        begun = await super().begin(node, fences)
        trap.passed("begun")
        return begun

    async def finish(self, node: str, results: Sequence[Finished]) -> FinishReport:
        trap.passed("before_record")
        report = await super().finish(node, results)
        trap.passed("after_record")
        return report


class SignedTargets:
    """The node's targets, as they are; but each webhook carries the id of the incarnation that sends it."""

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._stack = AsyncExitStack()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._targets, name)

    def kind_of(self, target: Target) -> Any:
        return SignedKind(self._targets.kind_of(target))

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._targets)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()


class SignedKind:
    def __init__(self, kind: Kind) -> None:
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kind, name)

    def start(self, call: Call, at: float, done: Done) -> Handle:
        def told(ended: Ended) -> None:
            if ended.outcome is not None:  # else it was not sent, or stopped
                trap.passed("after_send")
            done(ended)

        trap.passed("before_send")
        return self._kind.start(_signed(call), at, told)


def _signed(call: Call) -> Call:
    target, info = call.target, _who()
    if not isinstance(target, WebhookTarget) or info is None:
        return call
    signed = msgspec.structs.replace(target, headers={**target.headers, "x-chaos-node": info.id})
    return msgspec.structs.replace(call, target=signed)


def _who() -> NodeInfo | None:
    return current[0].info if current else None


def _die_with_parent() -> None:
    """No node outlives the harness, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def serve(argv: Sequence[str]) -> None:
    """The command line, trapped."""
    _die_with_parent()
    product: Any = onthedot.main
    build, open_store, node = product.build_targets, product.open_store, Node.__init__

    def build_signed(*args: Any, **kwargs: Any) -> Any:
        return SignedTargets(build(*args, **kwargs))

    async def open_trapped(*args: Any, **kwargs: Any) -> Store:
        store: Store = await open_store(*args, **kwargs)
        return TrappedStore(store.driver)

    def remember(self: Node, **kwargs: Any) -> None:
        node(self, **kwargs)
        current[:] = [self]

    product.build_targets, product.open_store = build_signed, open_trapped
    trapped: Any = Node
    trapped.__init__ = remember
    wall: Any = time
    true_time, true_time_ns = time.time, time.time_ns
    wall.time = lambda: true_time() + trap.clock_ms / 1000
    wall.time_ns = lambda: true_time_ns() + trap.clock_ms * 1_000_000
    if "CHAOS_FILE" in os.environ:
        signal.signal(signal.SIGUSR1, trap.read)
        Path(os.environ["CHAOS_FILE"] + LISTENS).write_text(str(os.getpid()))
        trap.read()  # after it said so: whoever found it deaf wrote down its word before
    main(argv)


if __name__ == "__main__":
    serve(sys.argv[1:])
