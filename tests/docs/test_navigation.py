"""Every page of the manual can be found in its navigation, and nothing else is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = {"index.md", "security.md", "changelog.md"}
"""`make docs` makes them of files elsewhere."""


def test_every_page_is_in_the_navigation_once():
    _, _, navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")
    listed = re.findall(r"([\w/-]+\.md)$", navigation, re.MULTILINE)
    assert len(listed) == len(set(listed))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in listed if not name.startswith("adr/")} - MADE == pages


@pytest.mark.parametrize(("index", "folder"), [("README.md", "docs/"), ("docs/README.md", "")])
def test_every_page_is_in_the_tables(index, folder):
    text = (ROOT / index).read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"]({folder}{page}" not in text} == set()


PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "SECURITY.md", ROOT / "README.md"])


def test_a_list_of_contents_names_every_section():
    lacking, listing = {}, 0
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        contents = {name.replace("`", "") for name in re.findall(r"^- \[([^\]]+)\]\(#", text, re.MULTILINE)}
        sections = {name.replace("`", "") for name in re.findall(r"^## (.+)$", text, re.MULTILINE)}
        listing += bool(contents)
        if contents and sections - contents:
            lacking[page.name] = sections - contents
    assert listing > 20
    assert lacking == {}
