"""docs/tutorial.md says which of its commands a test runs (tests/cluster/test_manual.py): those with a mark."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()


def test_the_commands_of_sections_2_to_7_are_marked():
    assert "A test runs the commands of sections 2 to 7" in PAGE
    sections = re.findall(r"^## (\d)\. .*?\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert [number for number, _ in sections] == list("12345678")
    for number, text in sections:
        blocks = re.findall(r"^```\w", text, re.MULTILINE)
        marked = re.findall(r"^<!-- (?:run|file): \S+ -->\n```\w", text, re.MULTILINE)
        assert len(marked) == (len(blocks) if number in "234567" else 0), f"section {number}"
