"""The database's time is asked for once a second at most, and carried on by the monotonic clock."""

from __future__ import annotations

from onthedot.clock import FakeClock
from onthedot.service.database_time import DatabaseTime


class Database:
    def __init__(self, clock: FakeClock, ahead: int) -> None:
        self._clock, self._ahead = clock, ahead
        self.asked = 0

    async def now(self) -> int:
        self.asked += 1
        return self._clock.now_ms() + self._ahead


async def test_one_answer_serves_for_a_second():
    clock = FakeClock(1_000_000)
    database = Database(clock, ahead=500)
    time = DatabaseTime(database.now, clock)
    assert await time.now() == 1_000_500
    await clock.advance(0.4)
    assert await time.now() == 1_000_900
    assert database.asked == 1
    await clock.advance(0.6)
    assert await time.now() == 1_001_500
    assert database.asked == 2


async def test_this_machine_s_date_does_not_matter():
    clock = FakeClock(1_000_000)
    time = DatabaseTime(Database(clock, ahead=0).now, clock)
    await time.now()
    clock.step_wall(3_600_000)
    await clock.advance(0.5)
    assert await time.now() == 1_000_500
