"""Blocks of the manual that are drawings, what a command prints, or SQL for the database: compared with the product, or
run. (What tests/docs/test_every_block.py can't read.)"""

from __future__ import annotations

import ast
import re
import tomllib
from typing import get_args

import asyncpg
import pytest

from bench import capacity
from onthedot.cli import cluster
from onthedot.cli.output import table
from onthedot.model.job import JobState
from onthedot.model.run import RunStatus
from onthedot.store import open_store
from tests.docs.blocks import ROOT, blocks_of

SOURCES = ROOT / "src" / "onthedot"
CALLED = {"EXECUTING": "running"}  # in the database, and so in the drawing
STATE = re.compile(r"    (\[\*\]|\w+) --> (\[\*\]|\w+)(?:: (.+))?")


def block(page: str, first: str) -> str:
    (found,) = {each.text for each in blocks_of(page) if each.first.startswith(first)}
    return found


def test_the_layers_are_those_that_imports_keep_to() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (each["layers"] for each in contracts if each["name"] == "Imports go downwards only")
    shown = block("docs/architecture.md", "cli     ").splitlines()
    assert len(shown) == len(layers)
    for line, layer in zip(shown, layers, strict=True):
        assert re.findall(r"\w+", line)[: len(layer.split()[::2])] == layer.split()[::2]


def test_the_engine_is_drawn_with_its_own_classes() -> None:
    classes = {
        node.name
        for file in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef)
    }
    named = set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)*\b", block("docs/architecture.md", "claims, begin")))
    assert named - classes == {"Beside"}
    assert len(named) > 20


@pytest.mark.parametrize(("number", "known"), [(0, RunStatus), (1, JobState)])
def test_the_states_are_drawn_as_they_are(number: int, known: object) -> None:
    """No other states, all of them, each reached from the start and left towards the end."""
    drawn = [each.text for each in blocks_of("docs/state_machine.md") if each.first == "stateDiagram-v2"][number]
    arrows = [STATE.fullmatch(line) for line in drawn.splitlines()[1:]]
    assert all(arrows), "a line that is no arrow"
    pairs = {(arrow[1], arrow[2]) for arrow in arrows if arrow is not None}
    states = {state for pair in pairs for state in pair} - {"[*]"}
    assert states == {CALLED.get(each, each.lower()) for each in get_args(known)}
    for ends in (pairs, {(there, here) for here, there in pairs}):
        reached = {"[*]"}
        for _ in states:
            reached |= {there for here, there in ends if here in reached}
        assert reached == states | {"[*]"}


def test_the_table_of_groups_is_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    header, row = block("docs/concurrency.md", "GROUP  LIMIT").splitlines()
    tree = ast.parse((SOURCES / "cli" / "cluster.py").read_text())
    (groups,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == cluster.groups.__name__
    )
    (call,) = (
        node
        for node in ast.walk(groups)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == table.__name__
    )
    columns = ast.literal_eval(call.args[0])
    table(columns, [re.split(r" {2,}", row)], empty="")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [header, row]


def test_the_capacity_is_what_the_model_says() -> None:
    assert block("docs/scale.md", "$ python -m bench.capacity").partition("\n")[2].strip() == capacity.main([]).strip()


async def test_the_statements_for_a_role_and_a_schema_are_enough(empty_postgres_url: str) -> None:
    """They run, and the role that they make can then migrate and own its schema, which is all that `serve` needs."""
    statements = block("docs/operations.md", "CREATE ROLE scheduler").replace("scheduler", "of_the_manual")
    admin = await asyncpg.connect(empty_postgres_url)
    try:
        await admin.execute(statements)
        address = re.sub(r"//[^@]*@", "//of_the_manual@", empty_postgres_url)
        store = await open_store(f"{address}{'&' if '?' in address else '?'}schema=onthedot")
        await store.close()
        owners = await admin.fetch("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'onthedot'")
        assert [row["tableowner"] for row in owners] == ["of_the_manual"]
    finally:
        await admin.execute("DROP SCHEMA IF EXISTS onthedot CASCADE")
        await admin.execute("DROP ROLE IF EXISTS of_the_manual")
        await admin.close()
