"""Receivers that tell later how their work ended: at once, even before they have answered; soon; too late; never;
twice; that it failed, for good or not; with a token that is none; and how far they have got.

What a receiver does is decided by the call alone, so that nothing else is drawn differently for it.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Literal

from onthedot.errors import Conflict, NotFound, OnTheDotError, StoreUnavailable, Unauthorized
from onthedot.model.callback import Completion, Progress, run_and_token
from onthedot.service.callbacks import CallbackVerbs
from onthedot.targets import Call
from proof.checker.events import CalledBack, Crashed

if TYPE_CHECKING:
    from proof.sim.world import World

__all__ = ["BASE", "CallbackDoor", "LaterResults"]

BASE = "http://api"
ASKED_AGAIN = 30
"""How often a receiver asks until it gives up."""
Told = Literal["done", "failed", "final", "progress"]
_SAID = {
    "done": Completion(status="done"),
    "failed": Completion(status="failed", error="it went wrong"),
    "final": Completion(status="failed", error="it can't be done", retryable=False),
}


class CallbackDoor(CallbackVerbs):
    """What the API of a process does with callbacks, on that process's way to the database."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self._secret = None

    async def report_progress(self, run_id: str, token: str | None, told: Progress) -> None:
        await self.store.set_progress(run_id, await self._try_named(run_id, token), {"percent": told.percent})


class LaterResults:
    def __init__(self, world: World) -> None:
        self._world = world
        self._marks = 0

    def follow(self, call: Call, answer: str, seconds: float) -> None:
        """`answer`: what the receiver says, after so many seconds. One whose connection broke may have the work."""
        assert call.callback is not None
        rng = random.Random(f"{call.run_id} {call.attempt}")
        if answer == "cut" and rng.random() < 0.5:
            return
        if rng.random() < 0.15:
            self._later(rng, call, seconds + rng.uniform(0, 1), "progress")
        soon = seconds + rng.uniform(0.02, 1.5)
        match rng.choices(
            ("at once", "soon", "twice", "failed", "final", "late", "never", "false"), (15, 35, 10, 12, 5, 8, 8, 7)
        )[0]:
            case "at once":
                self._later(rng, call, 0.0, rng.choice(("done", "done", "failed")))
            case "soon":
                self._later(rng, call, soon, "done")
            case "twice":
                self._later(rng, call, soon, "done")
                self._later(rng, call, soon + rng.choice((0.0, 0.001, 2.0)), rng.choice(("done", "failed", "final")))
            case "failed":
                self._later(rng, call, soon, "failed")
            case "final":
                self._later(rng, call, soon, "final")
            case "late":
                self._later(rng, call, seconds + rng.uniform(7, 12), rng.choice(("done", "failed")))
            case "false":
                self._later(rng, call, soon, "done", false=True)

    def _later(self, rng: random.Random, call: Call, delay: float, told: Told, *, false: bool = False) -> None:
        own = random.Random(rng.getrandbits(64))
        self._world.loop.outside_later(delay, self._start, own, call, told, false)

    def _start(self, rng: random.Random, call: Call, told: Told, false: bool) -> None:
        self._world.loop.create_task(self._tell(rng, call, told, false))

    async def _tell(self, rng: random.Random, call: Call, told: Told, false: bool) -> None:
        world, url = self._world, call.callback or ""
        run, token = run_and_token(url)
        self._marks += 1
        mark, began, answer, sent = self._marks, world.now, None, 0
        if false:
            token = token[:-1] + ("A" if token[-1] != "A" else "B")
        while answer is None and sent < ASKED_AGAIN:
            sent += 1
            answer = await self._ask(run, token, told, mark)
            if answer is None:
                await world.time.sleep(rng.uniform(0.1, 2))
        world.history.append(
            CalledBack(
                at=began,
                until=world.now,
                run=run,
                of=call.try_number,
                told=told,
                answer=answer,
                mark=mark,
                false=false,
                sent=sent,
            )
        )

    async def _ask(self, run: str, token: str, told: Told, mark: int) -> int | None:
        front = self._world.front
        try:
            if told == "progress":
                await front.ask(front.client(), "report_progress", (run, token, Progress(percent=50)), {})
                return 204
            said = _SAID[told]
            said = Completion(status=said.status, retryable=said.retryable, error=said.error, result=mark)
            await front.ask(front.client(), "complete_run", (run, token, said), {})
            return 200
        except StoreUnavailable:
            return None
        except Unauthorized:
            return 401
        except NotFound:
            return 404
        except Conflict:
            return 409
        except Exception as error:  # a 500, or what nobody foresaw: never an answer that a receiver may get
            known = isinstance(error, OnTheDotError)
            problem = f"{told}: {type(error).__name__}: {error}"
            self._world.history.append(Crashed(at=self._world.now, node="api", error=problem))
            return 422 if known else 500
