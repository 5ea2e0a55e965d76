"""What a job says about a script."""

from __future__ import annotations

from typing import Any

import pytest

from onthedot.model.secret_text import MASK
from onthedot.model.secrets import masked
from onthedot.model.targets import ScriptTarget

ID = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({}, "target.script"),
        ({"code": "x", "script": ID}, "target.script"),
        ({"script": "sha256:12"}, "target.script"),
        ({"script": ID.upper()}, "target.script"),
        ({"code": "  \n"}, "target.code"),
        ({"code": "é" * 40_000}, "target.code"),
        ({"code": "x", "interpreter": ""}, "target.interpreter"),
        ({"code": "x", "interpreter": "../python"}, "target.interpreter"),
        ({"code": "x", "memory": "lots"}, "target.memory"),
        ({"code": "x", "memory": "1M"}, "target.memory"),
        ({"code": "x", "args": ["x" * 5000]}, "target.args[0]"),
        ({"code": "x", "env": {"A-B": "x"}}, "target.env.A-B"),
        ({"code": "x", "env": {"LD_PRELOAD": "x"}}, "target.env.LD_PRELOAD"),
        ({"code": "x", "env": {"ONTHEDOT_RUN_ID": "x"}}, "target.env.ONTHEDOT_RUN_ID"),
        ({"code": "x", "env": {"A": "x" * 5000}}, "target.env.A"),
        ({"code": "x", "env": {f"A{n}": "x" for n in range(101)}}, "target.env"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], path: str):
    assert [problem.path for problem in ScriptTarget(**fields).problems()] == [path]


@pytest.mark.parametrize("fields", [{"code": "x"}, {"script": ID}, {"code": "x", "memory": "16M", "env": {"A": ""}}])
def test_what_is_right(fields: dict[str, Any]):
    assert list(ScriptTarget(**fields).problems()) == []


def test_secrets_in_the_environment_are_masked_and_code_never():
    code = "requests.get('https://example.com/?token=1&password=2')"
    shown = masked(ScriptTarget(code=code, env={"API_TOKEN": "secret", "DAY": "monday"}))
    assert isinstance(shown, ScriptTarget)
    assert shown.code == code
    assert shown.env == {"API_TOKEN": MASK, "DAY": "monday"}


def test_in_words():
    assert ScriptTarget(code="\n\n  print(1)\nprint(2)").summary().line == "script python: print(1)"
    assert ScriptTarget(script=ID).summary().what == "python sha256:aaaaaaaaaaaa…"
    assert "network = true" in ScriptTarget.how_to_offer("python:network")
    assert "onthedot doctor" in ScriptTarget.how_to_offer("python")
