"""docs/settings.md names every setting there is, with its default, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest

from onthedot.settings import Settings, load_settings
from onthedot.settings.secrets import POSTGRES_NAMES
from onthedot.settings.sources import BARE_NAMES
from onthedot.settings.values import PARSERS
from onthedot.store.postgres.address import parse_address

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
ROWS = {
    found[1]: (bool(found[2]), found[3].strip(), found[4].strip(), found[5].strip())
    for found in re.finditer(r"^\| `([A-Z_]+)`( °)? \| (.*?) \| (.*) \| (.*?) \|$", PAGE, re.MULTILINE)
}


def test_every_setting_is_there_and_no_other():
    assert set(ROWS) == set(PARSERS)
    assert {name.lower() for name in ROWS} == {field.name for field in msgspec.structs.fields(Settings)} - {
        "given",
        "origins",
    }


def test_the_names_that_become_other_settings_are_there():
    assert all(f"`{name}`" in PAGE for name in (*POSTGRES_NAMES, "POSTGRES_PASSWORD_FILE", "ADMIN_KEY_FILE"))


def test_those_without_the_prefix_are_marked():
    assert {name for name, (bare, *_) in ROWS.items() if bare} == set(BARE_NAMES)


@pytest.mark.parametrize("name", sorted(ROWS))
def test_defaults_and_examples_are_true(name, tmp_path):
    _, default, meaning, example = ROWS[name]
    assert meaning
    if default.startswith("`"):
        given = load_settings({name: default.strip("`")}, environ={}, file=_empty(tmp_path))
        assert getattr(given, name.lower()) == getattr(Settings(), name.lower())
    elif default == "none":
        assert not getattr(Settings(), name.lower())
    environ = {f"ONTHEDOT_{name}": example.strip("`")}
    assert name.lower() in load_settings({}, environ=environ, file=_empty(tmp_path)).given


def test_the_file_it_shows_is_one(tmp_path):
    (text,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "onthedot.toml").write_text(text)
    settings = load_settings({}, environ={}, file=tmp_path / "onthedot.toml")
    assert settings.commands["backup"].inherit_env == ("AWS_PROFILE",)
    assert settings.functions == ("reports.daily",)


def test_the_address_options_are_known():
    options = re.findall(r"^\| `([a-z]+)(?:=([a-z]+))?` \| (\d*) ?\| ", PAGE, re.MULTILINE)
    assert len(options) == 5
    address = parse_address("postgresql://h/d?" + urlencode({name: word or number for name, word, number in options}))
    assert "?" not in address.dsn, "an option went to the driver"
    plain = parse_address("postgresql://h/d")
    assert {name: int(number) for name, _, number in options if number} == {
        "pool": plain.pool,
        "timeout": plain.timeout,
    }


def _empty(directory: Path) -> Path:
    (directory / "none.toml").write_text("")
    return directory / "none.toml"
