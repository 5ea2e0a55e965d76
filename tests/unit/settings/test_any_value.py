"""Whatever stands in the environment or the file: either good settings, or a SettingsError that names it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onthedot.errors import SettingsError
from onthedot.settings import Settings, load_settings
from onthedot.settings.sources import CLIENT_NAMES, PARTS, RUN_NAMES
from onthedot.settings.values import PARSERS

NAMES = st.sampled_from(sorted(PARSERS))
LIKELY = st.sampled_from(
    [
        "0",
        "1",
        "-1",
        "8000",
        "65536",
        "1s",
        "5m",
        "PT1H",
        "second",
        "api",
        "api,executor",
        "json",
        "INFO",
        "auto",
        "keys",
        "sqlite:///x.db",
        "postgresql://h/d",
        "127.0.0.1",
        "::1",
        "10.0.0.0/8",
        "a.b",
        "jobs.json",
        ",",
        "true",
    ]
)
TEXTS = LIKELY | st.text(max_size=20)
LOOSE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(NAMES, TEXTS, max_size=4))
def test_the_environment(tmp_path_factory, variables):
    environ = {f"ONTHEDOT_{name}": value for name, value in variables.items()}
    _check(lambda: load_settings({}, environ, _empty(tmp_path_factory)), variables)


@given(st.dictionaries(NAMES, LOOSE, max_size=4))
def test_values_of_any_type(tmp_path_factory, flags):
    _check(lambda: load_settings(flags, {}, _empty(tmp_path_factory)), flags)


@given(st.text(min_size=1, max_size=12))
def test_names_nobody_knows(tmp_path_factory, name):
    environ = {f"ONTHEDOT_{name}": ""}
    if name in PARSERS or name in PARTS:
        assert load_settings({}, environ, _empty(tmp_path_factory)).given == frozenset()
    elif name not in (*CLIENT_NAMES, *RUN_NAMES):
        with pytest.raises(SettingsError, match="unknown setting"):
            load_settings({}, environ, _empty(tmp_path_factory))


def _empty(factory):
    path = factory.getbasetemp() / "onthedot.toml"
    path.touch()
    return path


def _check(load, given_names) -> None:
    settings, told = None, ""
    try:
        settings = load()
    except SettingsError as error:
        told = str(error)
    if settings is None:
        assert any(name in told for name in given_names)
    else:
        assert isinstance(settings, Settings)
        assert settings.port >= 0
        assert settings.roles
        assert settings.poll_interval > 0
        assert settings.lease >= 2000
        assert {name.upper() for name in settings.given} <= set(given_names)
