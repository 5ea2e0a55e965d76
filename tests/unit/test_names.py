"""Names explain themselves, and each means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCES = sorted((Path(__file__).resolve().parents[2] / "src").rglob("*.py"))
PICTURES = """
    agenda appetite asked bell by_hand callables chain changing conditions departures edge endings errand express
    gathering hazards heads heart holdings identifiers keeper last_will lending mistakes offers one_statement other_loop
    pace patience records sending settling standby surroundings trouble upkeep watchman whole wired

    common helpers manager utils
"""
"""What modules were called before they had the words of the trade, and names that say nothing."""


def test_no_class_name_is_given_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.name}:{node.lineno}")
    assert len(places) > 300, "the sources were found"
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_module_has_a_name_of_the_old_pictures() -> None:
    names = {part for path in SOURCES for part in (path.stem, path.parent.name)}
    assert names & set(PICTURES.split()) == set()
