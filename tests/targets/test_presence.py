"""Whether what a target names is there, without importing or running any of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from onthedot.settings import CommandSetting
from onthedot.targets.presence import function_problem, program_problem

MODULE = """
import os.path as renamed
from json import dumps, loads as read
print("this must never be printed")
raise SystemExit("nor may this stop anybody")
value = other = 1
async def waits(): ...
if value:
    def chosen(): ...
else:
    from nowhere import chosen
try:
    import missing
except ImportError:
    missing = None
with open(renamed) as (first, second):
    for item in first:
        pass
class Thing:
    def method(self): ...
def outer():
    def inner(): ...
"""


@pytest.fixture
def there(tmp_path: Path) -> str:
    (tmp_path / "pack" / "sub").mkdir(parents=True)
    (tmp_path / "pack" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "pack" / "mod.py").write_text(MODULE)
    (tmp_path / "pack" / "sub" / "__init__.py").write_text("def go(): ...")
    (tmp_path / "space" / "inner").mkdir(parents=True)
    (tmp_path / "space" / "inner" / "mod.py").write_text("def go(): ...")
    return str(tmp_path)


@pytest.mark.parametrize(
    "name",
    ["waits", "chosen", "missing", "Thing", "outer", "value", "other", "renamed", "dumps", "read", "second", "item"],
)
def test_what_a_module_defines(there: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert function_problem(f"pack.mod:{name}", [there]) is None
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["nothing", "method", "inner", "loads", "os"])
def test_what_it_does_not_define(there: str, name: str) -> None:
    assert function_problem(f"pack.mod:{name}", [there]) == f"{there}/pack/mod.py does not define a function {name!r}"


@pytest.mark.parametrize("function", ["pack.sub:go", "space.inner.mod:go", "json:dumps", "time:time", "sys:exit"])
def test_modules_that_are_there(there: str, function: str) -> None:
    assert function_problem(function, [there]) is None


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("nowhere:go", "module 'nowhere' not found (searched {}"),
        ("pack.nowhere:go", "module 'nowhere' not found in 'pack'"),
        ("pack.mod.deeper:go", "module 'deeper' not found in 'pack.mod'"),
    ],
)
def test_modules_that_are_not(there: str, function: str, told: str) -> None:
    assert str(function_problem(function, [there])).startswith(told.format(there))


@pytest.mark.parametrize(
    "text", ["from os import *", "def __getattr__(name): ...", "globals()['go'] = print", "exec('go = 1')"]
)
def test_what_only_importing_would_tell_is_taken_to_be_there(tmp_path: Path, text: str) -> None:
    (tmp_path / "dynamic.py").write_text(text)
    assert function_problem("dynamic:go", [str(tmp_path)]) is None


def test_a_module_that_can_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x = 1\ndef go(:\n")
    assert str(function_problem("broken:go", [str(tmp_path)])).startswith(f"{tmp_path}/broken.py:2: ")


def test_a_file_that_is_mended_is_looked_at_again(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text("")
    assert function_problem("later:go", [str(tmp_path)]) is not None
    (tmp_path / "later.py").write_text("def go(): ...")
    assert function_problem("later:go", [str(tmp_path)]) is None
    assert function_problem("new_one:go", [str(tmp_path)]) is not None
    (tmp_path / "new_one.py").write_text("def go(): ...")
    assert function_problem("new_one:go", [str(tmp_path)]) is None


def test_programs(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)

    def told(*argv: str, **more: object) -> str | None:
        return program_problem(CommandSetting(argv=argv, **more))  # type: ignore[arg-type]

    assert told("sh", "-c", "true") is None
    assert told("/bin/sh") is None
    assert told("./tool", cwd=str(tmp_path)) is None
    assert told("tool", env={"PATH": str(tmp_path)}) is None
    assert told("no-such-tool") is not None
    assert told("/no/such/tool") == "program '/no/such/tool' not found"
    assert told(str(tmp_path / "plain")) == f"'{tmp_path}/plain' is not executable"
    assert told("sh", cwd=str(tmp_path / "gone")) == f"working directory '{tmp_path}/gone' of 'sh' does not exist"
