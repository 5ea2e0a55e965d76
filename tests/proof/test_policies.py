"""What the rules about catch-up take for slots that had come."""

from __future__ import annotations

import pytest

from proof.oracle.slots import slots_of


@pytest.mark.parametrize(
    ("schedule", "newer"),
    [
        ({"every": "1s"}, [4000, 5000, 6000]),
        ({"every": "1s", "count": 3}, []),  # 1, 2 and 3: the slot that fired was the last
        ({"every": "1s", "count": 5}, [4000, 5000]),
    ],
)
def test_count_counts_from_the_beginning_of_the_schedule(schedule, newer):
    assert slots_of(schedule, anchor=0, after=3000, until=6500) == newer
