"""Plug-ins, as they are installed: a distribution on the path with an entry point. Kinds are found once in the life of
a process, so each test has one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

KIND = """
from onthedot.model.targets import TargetSpec

class FaxTarget(TargetSpec, frozen=True, kw_only=True, tag="fax"):
    number: int

    def capability(self):
        return "fax"

class Fax:
    spec = FaxTarget
    kind = dict  # whatever it makes: nobody makes it here
"""
ASK = """
import json, sys
from onthedot.errors import Invalid
from onthedot.model.decoding import convert, encode_json
from onthedot.model.job import JobSpec
from onthedot.model.targets.registry import plugins, target_types

def ask(target):
    try:
        spec = convert({"schedule": {"in": "1s"}, "target": target}, JobSpec)
    except Invalid as invalid:
        return [[problem.path, problem.message] for problem in invalid.problems]
    return [json.loads(encode_json(spec.target)), spec.target.capability()]

found = plugins()
print(json.dumps([sorted(found.kinds), found.broken, list(target_types())[-1], *map(ask, json.loads(sys.argv[1]))]))
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path


def install(place: Path, module: str, code: str, entry: str) -> None:
    (place / f"{module}.py").write_text(code)
    about = place / f"{module}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[onthedot.targets]\n{entry}\n")


def ask(place: Path, *targets: Any) -> list[Any]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(place), *sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(targets)], env=env, cwd=place, check=True, capture_output=True
    )
    answer: list[Any] = json.loads(done.stdout)
    return answer


def test_an_installed_kind_is_decoded_as_strictly_as_those_built_in(place: Path):
    install(place, "faxes", KIND, "fax = faxes:Fax")
    good, wrong = {"type": "fax", "number": 1}, {"type": "fax", "number": "x", "colour": 1}
    kinds, broken, last, *answers = ask(place, good, wrong, {"type": "telex"})
    assert (kinds, broken, last) == (["fax"], {}, "fax")
    assert answers[0] == [good, "fax"]
    assert answers[1] == [
        ["target.number", "expected a whole number, not text"],
        ["target.colour", "unknown field"],
    ]
    assert answers[2] == [["target.type", "unknown target type"]]


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise RuntimeError('no fax here')", "RuntimeError: no fax here"),
        ("", "AttributeError"),
        ("class Fax: pass", "AttributeError"),
        ("class Fax: spec = dict", "must be a subclass of TargetSpec"),
        (KIND.replace('"fax"', '"webhook"'), "a target type 'webhook' already exists"),
        (KIND.replace('tag="fax"', "tag=3"), "must be a single word"),
        (KIND.replace('"fax"', '"telex"'), "must be named 'telex'"),
        (KIND.replace('"fax"', '"bad"').replace("kind =", "make ="), "AttributeError"),
        (KIND.replace('"fax"', '"bad"').replace("dict", "3"), "its kind must be a function, not 3"),
        ("raise SystemExit(1)", "SystemExit: 1"),
        (KIND.replace('"fax"', '"telex"').replace("int\n", "int | list[int] | tuple[int, int]\n"), "TypeError"),
    ],
)
def test_a_broken_one_is_named_and_the_others_go_on(place: Path, code: str, why: str):
    install(place, "bad", code, "bad = bad:Fax")
    install(place, "faxes", KIND, "fax = faxes:Fax")
    kinds, broken, _, works = ask(place, {"type": "fax", "number": 1})
    assert kinds == ["fax"]
    assert why in broken["bad"]
    assert works == [{"type": "fax", "number": 1}, "fax"]
