"""docs/cli.md names every command with its options, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from onthedot.cli.app import command_line
from onthedot.model.targets.registry import BUILT_IN

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
SECTIONS = {
    re.sub(r"( \[?[A-Z][^`]*)$", "", head): body
    for head, body in re.findall(r"^### `onthedot ([^`]+)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
}
EVERYWHERE = ["--json", "--url", "--server", "--key", "--api-key", "--store", "--settings"]


def commands(found: Any, *path: str) -> Iterator[tuple[str, Any]]:
    if getattr(found, "invoke_without_command", False):  # `nodes` lists them, `nodes drain` is a command below it
        yield " ".join(path), found
    if hasattr(found, "commands"):
        for name, inner in found.commands.items():
            yield from commands(inner, *path, name)
    elif not found.hidden:
        yield " ".join(path), found


COMMANDS = dict(commands(typer.main.get_command(command_line())))


def options(command: Any) -> list[list[str]]:
    params = command.get_params(typer.Context(command))
    return [
        [*param.opts, *param.secondary_opts]
        for param in params
        if param.param_type_name == "option" and param.name != "help"
    ]


def test_every_command_is_there_and_no_other():
    assert set(SECTIONS) == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_is_there_and_no_other(name):
    known = {option for names in options(COMMANDS[name]) for option in names}
    told = set(re.findall(r"`(--?[a-zA-Z-]+)`", SECTIONS[name].partition("| Option |")[2]))
    assert told <= known
    assert known - told <= set(EVERYWHERE)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_it_says_what_help_says(name):
    text = " ".join((COMMANDS[name].help or "").split())
    assert text
    assert text in " ".join(SECTIONS[name].split())


def test_what_holds_everywhere_is_said_once():
    intro = PAGE.partition("## Start a node")[0]
    assert all(f"`{option}" in intro for option in EVERYWHERE)


def test_the_filter_by_target_names_every_type():
    (told,) = re.findall(r"^\| `--target` \| (.*) \|$", SECTIONS["jobs list"], re.MULTILINE)
    (option,) = [param for param in COMMANDS["jobs list"].params if param.name == "target"]
    assert re.sub(r"\[(.*?)\]\(.*?\)", r"\1", told) == option.help
    assert all(f" {kind}," in told for kind in BUILT_IN)
