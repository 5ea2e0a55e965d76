"""docs/reliability.md: how many bugs are planted, and the modules that they are in."""

from __future__ import annotations

import re
from pathlib import Path

from proof.planted.bugs import BUGS
from proof.sim.nemesis import EXTRA, PROFILES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text()
(PLANTED,) = re.findall(r"^## Planted bugs$(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)


def test_the_number_of_bugs_is_true():
    (told,) = re.findall(r"So more than (\d+) bugs are injected", PLANTED)
    assert int(told) < len(BUGS) < int(told) + 50


def test_every_module_is_in_the_table_and_no_other():
    rows = re.findall(r"^\| (`.*?) \|", PLANTED, re.MULTILINE)
    told = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    modules = (ROOT / "proof" / "planted" / "bugs").glob("[!_]*.py")
    assert sorted(told) == sorted(module.stem for module in modules)


def test_profiles_that_it_names_exist():
    assert set(re.findall(r"--profile (\w+)", PAGE)) <= {*PROFILES, *EXTRA}
