"""No test waits for a fixed time: it waits for something (tests/services/waiting.py), or turns a clock by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
# The helper itself; the executor, which runs when the tests are over; and time that is only played (proof.sim.loop).
MAY = {"services/waiting.py", "services/orphan_reaper.py", "proof/test_loop.py"}


def sleeps(source: str) -> Iterator[int]:
    """The lines that sleep, but for `sleep(0)`, which only lets the others go first."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(args=[ast.Constant(value=0), *_]):
                continue
            case ast.Call(func=function) if ast.unparse(function) in ("asyncio.sleep", "time.sleep", "sleep"):
                yield node.lineno


def test_nobody_sleeps() -> None:
    files = sorted(TESTS.rglob("*.py"))
    assert len(files) > 200
    found = [
        f"{name}:{line}"
        for file in files
        if (name := file.relative_to(TESTS).as_posix()) not in MAY
        for line in sleeps(file.read_text())
    ]
    assert found == [], "wait for what you wait for: tests/services/waiting.py"


@pytest.mark.parametrize("line", ["await asyncio.sleep(0.1)", "time.sleep(n)", "await sleep(1)"])
def test_one_who_sleeps_is_found(line: str) -> None:
    assert list(sleeps(f"async def test():\n    {line}\n")) == [2]


def test_letting_others_go_first_is_no_sleep() -> None:
    assert list(sleeps("async def test():\n    await asyncio.sleep(0)\n    await clock.sleep(5)\n")) == []
