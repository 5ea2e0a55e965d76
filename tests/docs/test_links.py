"""Pages lead where they say: to files that exist, to headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")])


def headings(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for address in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        path, _, heading = address.partition("#")
        target = page if not path else (page.parent / path)
        assert target.exists(), f"{page.name} leads to {address}"
        if heading:
            assert heading in headings(target), f"{page.name} leads to {address}"
