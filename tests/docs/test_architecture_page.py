"""docs/architecture.md names files, classes and functions; each of them must exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
PLACES = sorted({ROOT, ROOT / "src" / "onthedot"})
NAMED = re.compile(r"`([\w/.<>{},-]+\.(?:py|sql|md|toml|html|css|js))(?::([\w.]+))?`")
RECIPES = ("a kind of target", "a column of `runs`", "a policy field", "a filter", "a page", "a setting")
JOURNEYS = ("Create", "Fire", "Finish", "Take over", "List")


def _named() -> list[tuple[str, str]]:
    """(file, name inside it or "") of everything that the page names."""
    return sorted({(m[1], m[2] or "") for m in NAMED.finditer(PAGE.read_text("utf-8")) if "<" not in m[1]})


def _file(name: str) -> Path | None:
    return next((place / name for place in PLACES if (place / name).is_file()), None)


@cache
def _defined(file: Path) -> frozenset[str]:
    """Functions, classes, their members and module constants, as `Class.method` and by their own name."""
    found: set[str] = set()

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.update({node.name, prefix + node.name})
                if isinstance(node, ast.ClassDef):
                    walk(node.body, f"{node.name}.")
            elif isinstance(node, ast.Assign):
                found.update(prefix + target.id for target in node.targets if isinstance(target, ast.Name))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.add(prefix + node.target.id)

    walk(ast.parse(file.read_text("utf-8")).body, "")
    return frozenset(found)


@pytest.mark.parametrize(("file", "name"), _named(), ids=[":".join(named) for named in _named()])
def test_what_the_page_names_is_there(file: str, name: str) -> None:
    found = _file(file)
    assert found is not None, f"there is no {file}"
    if not name:
        return
    if found.suffix == ".sql":
        assert f"-- name: {name}\n" in found.read_text("utf-8")
    else:
        assert name in _defined(found)


def test_the_page_has_every_journey_and_recipe() -> None:
    headings = re.findall(r"^#+ (.+)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert [journey for journey in JOURNEYS if not any(journey in heading for heading in headings)] == []
    assert [recipe for recipe in RECIPES if not any(recipe in heading for heading in headings)] == []
    assert any("Glossary" in heading for heading in headings)
    assert len(_named()) > 40  # a pattern that matches nothing would check nothing
