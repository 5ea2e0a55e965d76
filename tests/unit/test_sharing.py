"""What is dear to make is made by one worker, and every group that is named has tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.services.sharing import GROUPS, group_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("tests/acceptance/test_firing.py::test_a_timer_fires_once[sqlite]", "acceptance on sqlite"),
        ("tests/acceptance/test_firing.py::test_codes[postgres-204-DONE-1]", "acceptance on postgres"),
        ("tests/acceptance/test_commands.py::test_keys_close_the_door", None),
        ("tests/store/test_query_plans_runs.py::TestPostgres::test_all[1M]", "plans of postgres"),
        ("tests/store/test_query_plans_jobs.py::test_sqlite[50k]", "plans of sqlite"),
        ("tests/web/test_browser.py::test_times_tick", "browser"),
        ("tests/pages/test_actions.py::test_every_action[sqlite-delete_and_undo-390-dark]", "actions pages on sqlite"),
        ("tests/pages/test_walk.py::test_every_page_is_well[light-390-postgres]", "walk pages on postgres"),
        ("tests/store/test_claim.py::TestOneOffs::test_however_late[sqlite]", None),
    ],
)
def test_where_a_test_belongs(test, group):
    assert group_of(test) == (group or test)


def test_the_files_of_the_groups_are_there():
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")]
    for pattern, _ in GROUPS:
        told = pattern.pattern
        ids = [f"{file}::test_sqlite[{part}]" for file in files for part in ("sqlite", "rabbitmq")]
        assert any(pattern.match(test) for test in ids), told
