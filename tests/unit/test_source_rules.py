"""Rules that every module keeps, which neither the linter nor the contracts of imports can express."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src" / "onthedot"
WALL_CLOCK = re.compile(
    r"\btime\.(time|time_ns|gmtime|localtime|ctime|strftime)\b|\b(datetime|date)\.(now|utcnow|today)\b"
    r"|^from time import (?!monotonic|sleep)",
    re.MULTILINE,
)


def test_one_module_reads_the_wall_clock() -> None:
    found = [path.name for path in SOURCES.rglob("*.py") if WALL_CLOCK.search(path.read_text())]
    assert found == ["clock.py"]


def test_columns_of_rows_are_read_by_name() -> None:
    sources = sorted((SOURCES / "store").rglob("*.py"))
    assert len(sources) > 100, "the sources were found"
    assert [f"{path.name}:{place}" for path in sources for place in _by_number(path.read_text())] == []


def test_columns_that_are_read_by_number_are_found() -> None:
    for line in (
        "row[0]",
        "old_row[-1]",
        "reader.execute('SELECT 1').fetchone()[0]",
        "(await tx.row('now'))[0]",
        "[each[0] for each in file.execute('SELECT 1')]",
        "for each in reader.execute('SELECT 1').fetchall():\n    use(each[1])",
    ):
        assert list(_by_number(line)), line
    for line in ("row['now']", "rows[0]['now']", "found[0]", "[each['n'] for each in file.execute('SELECT 1')]"):
        assert not list(_by_number(line)), line


def _by_number(source: str) -> Iterator[int]:
    """The lines where a number stands for a column: of what is called a row, was fetched, or is looped over."""
    tree = ast.parse(source)
    rows = {"row"}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.For | ast.AsyncFor | ast.comprehension)
            and isinstance(node.target, ast.Name)
            and _called(node.iter) & {"execute", "fetchall", "fetch", "rows", "sql"}
        ):
            rows.add(node.target.id)
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and _is_number(node.slice):
            value = node.value.value if isinstance(node.value, ast.Await) else node.value
            named = isinstance(value, ast.Name) and (value.id in rows or value.id.endswith("_row"))
            if named or (isinstance(value, ast.Call) and _name_of(value) in {"fetchone", "fetchrow", "row"}):
                yield node.lineno


def _called(node: ast.AST) -> set[str]:
    return {_name_of(each) for each in ast.walk(node) if isinstance(each, ast.Call)}


def _name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_number(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def test_the_list_of_decisions_names_each_module() -> None:
    plan = SOURCES / "plan"
    text = ast.get_docstring(ast.parse((plan / "__init__.py").read_text())) or ""
    listed = {line.split()[0] for line in text.splitlines()[1:] if line}
    assert listed == {path.stem for path in plan.glob("*.py")} - {"__init__"}
