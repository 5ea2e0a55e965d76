"""A store that says what the test wrote into its script, for tests that step one actor alone.

What runs mean to each other is tested on the real store (test_node_*.py); here it is about one answer at a time,
in particular about answers that never come.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from onthedot.clock import FakeClock
from onthedot.errors import StoreUnavailable
from onthedot.store import FinishReport, PolledOrders, WaitingSeen, WorkedOff

AWAY = StoreUnavailable("the database is away")


class ScriptedStore:
    """`store.script("finish", AWAY, answer)`: the answers of the next calls, in order; then the usual one."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        self._clock = clock or FakeClock()
        self.asked: list[tuple[str, Any]] = []
        self._answers: defaultdict[str, deque[Any]] = defaultdict(deque)

    def script(self, name: str, *answers: Any) -> None:
        self._answers[name].extend(answers)

    def asked_for(self, name: str) -> list[Any]:
        return [what for asked, what in self.asked if asked == name]

    def _answer(self, name: str, what: Any, usual: Any) -> Any:
        self.asked.append((name, what))
        answer = self._answers[name].popleft() if self._answers[name] else usual
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def finish(self, node, results):
        return self._answer("finish", list(results), FinishReport(recorded=len(results), refused=[], repeated=[]))

    async def give_back(self, node, fences):
        return self._answer("give_back", list(fences), None)

    async def wait_for_destinations(self, node, runs):
        return self._answer("wait_for_destinations", list(runs), None)

    async def waited_for(self, ranges, most):
        return self._answer("waited_for", list(ranges), WaitingSeen(requires=[], expired=False))

    async def required(self, after, most):
        return self._answer("required", after, [])

    async def release_expired_waiting(self):
        return self._answer("release_expired_waiting", None, 0)

    async def close_one_offs(self, most):
        return self._answer("close_one_offs", most, 0)

    async def wait_for_operation(self) -> int | None:
        return None

    async def work_off_operation(self, node: str) -> WorkedOff | None:
        return None

    async def carry_out_notes(self, after):
        return self._answer("carry_out_notes", after, None)

    async def alerts_due(self, channels):
        return self._answer("alerts_due", list(channels), [])

    async def take_alerts(self, node, channel):
        return self._answer("take_alerts", channel, ([], 0))

    async def alerts_sent(self, ids):
        return self._answer("alerts_sent", list(ids), None)

    async def alerts_not_sent(self, ids, error, wait_ms):
        return self._answer("alerts_not_sent", (list(ids), error, wait_ms), None)

    async def alerts_wanted(self):
        return self._answer("alerts_wanted", None, False)

    async def watch_alerts(self):
        return self._answer("watch_alerts", None, False)

    async def count_objectives(self):
        return self._answer("count_objectives", None, 0)

    async def begin(self, node, fences):
        return self._answer("begin", list(fences), {run_id for run_id, _ in fences})

    async def begin_work(self, node, started):
        return self._answer("begin_work", list(started), {work.run_id for work in started})

    async def living(self, tries):
        return self._answer("living", list(tries), set(tries))

    async def detach(self, node, runs):
        return self._answer("detach", list(runs), {run_id for run_id, _, _ in runs})

    async def adopt(self, node, capabilities, *, level, limit):
        return self._answer("adopt", (list(capabilities), limit), [])

    async def claim_each(self, node, wants, *, level, lookahead_ms, within_ms):
        return [self._answer("claim", (list(want.offers), want.limit), None) for want in wants]

    async def held(self, node):
        return self._answer("held", node, [])

    async def poll_orders(self, node):
        return self._answer("poll_orders", node, PolledOrders(now_us=self._clock.now_us(), orders=[]))

    async def beat(self, node, load):
        return self._answer("beat", load, None)

    async def declare_lost(self, node, beat_seen):
        return self._answer("declare_lost", (node, beat_seen), True)

    async def reclaim(self):
        return self._answer("reclaim", None, 0)

    async def notify(self, topic):
        return self._answer("notify", topic, None)

    async def now(self):
        return self._answer("now", None, self._clock.now_ms())

    async def close_one_offs_in_passing(self):
        return self._answer("close_one_offs_in_passing", None, 0)

    async def resume_due(self):
        return self._answer("resume_due", None, None)

    async def take_duty(self, name, node):
        return self._answer("take_duty", name, True)

    async def forget_noticed(self):
        return self._answer("forget_noticed", None, 0)

    async def prune(self, before):
        return self._answer("prune", before, 0)

    async def register(self, info):
        return self._answer("register", info, 1_700_000_000_000)

    async def callback_secret(self, proposal):
        return self._answer("callback_secret", proposal, proposal)

    async def leave(self, node):
        return self._answer("leave", node, None)

    def listen(self, callback):
        return lambda: None

    async def ensure_partitions(self):
        return self._answer("ensure_partitions", None, [])

    async def put_live_logs(self, logs):
        return self._answer("put_live_logs", logs, None)

    async def drop_live_logs(self, ended):
        return self._answer("drop_live_logs", ended, None)

    async def put_floors_right(self, after=0):
        return self._answer("put_floors_right", after, (0, 0))

    async def watch_groups(self):
        return self._answer("watch_groups", None, 0)

    async def prove(self, kept_ms):
        return self._answer("prove", kept_ms, False)

    async def roll_up(self):
        return self._answer("roll_up", None, 0)

    async def watch_ledger(self):
        return self._answer("watch_ledger", None, [])
