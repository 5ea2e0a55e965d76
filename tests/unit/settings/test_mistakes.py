"""A mistake in the settings is named: the setting, what was given, what is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest

from onthedot.errors import SettingsError
from onthedot.settings import load_settings, read_commands


@pytest.fixture
def nothing(tmp_path: Path) -> Path:
    path = tmp_path / "onthedot.toml"
    path.write_text("")
    return path


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("ONTHEDOT_PROT", "ONTHEDOT_PORT"),
        ("ONTHEDOT_STOER", "ONTHEDOT_STORE"),
        ("ONTHEDOT_LOG_LEVELS", "ONTHEDOT_LOG_LEVEL"),
        ("ONTHEDOT_ULR", "ONTHEDOT_URL"),
    ],
)
def test_an_unknown_variable_names_the_nearest_known_one(variable, meant, nothing):
    with pytest.raises(SettingsError) as caught:
        load_settings({}, {variable: "1"}, nothing)
    assert str(caught.value) == f"${variable}: unknown setting. Did you mean {meant}?"


def test_a_name_like_nothing_we_know_lists_what_there_is(nothing):
    with pytest.raises(SettingsError, match=r"unknown setting\. Known: ADMIN_KEY, ALERTS, AUTH, .*WORKERS"):
        load_settings({}, {"ONTHEDOT_QQQQ": "1"}, nothing)


def test_an_unknown_name_in_the_file_is_an_error(nothing):
    nothing.write_text("[server]\nport = 1\n")
    with pytest.raises(SettingsError, match=r"server \(.*onthedot\.toml\): unknown setting"):
        load_settings({}, {}, nothing)


def test_an_unknown_flag_is_an_error(nothing):
    with pytest.raises(SettingsError, match=r"prot \(flag\): unknown setting\. Did you mean PORT\?"):
        load_settings({"prot": 1}, {}, nothing)


def test_the_client_s_variables_are_not_settings(nothing):
    settings = load_settings({}, {"ONTHEDOT_URL": "http://x", "ONTHEDOT_KEY": "otd_x"}, nothing)
    assert settings.given == frozenset()


def test_what_a_command_s_run_is_told_is_no_mistake_either(nothing):
    """A job's command may well start `onthedot` itself."""
    told = {"ONTHEDOT_RUN_ID": "1-2", "ONTHEDOT_JOB_ID": "1", "ONTHEDOT_ATTEMPT": "1", "ONTHEDOT_PARAMS": "{}"}
    assert load_settings({}, told, nothing).given == frozenset()


def test_commands_that_are_not_json_are_refused_without_showing_them(nothing):
    with pytest.raises(
        SettingsError, match=r"COMMANDS \(\$ONTHEDOT_COMMANDS\): JSON is malformed.*Accepted: tables.*as JSON"
    ) as told:
        load_settings({}, {"ONTHEDOT_COMMANDS": "hunter2"}, nothing)
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize("store", ["postgress://u:hunter2@h/d", "postgres:/u:hunter2@h/d"])
def test_a_store_with_a_login_is_refused_without_showing_it(store, nothing):
    with pytest.raises(SettingsError, match=r"STORE \(\$ONTHEDOT_STORE\): the value is not valid") as told:
        load_settings({}, {"ONTHEDOT_STORE": store}, nothing)
    assert "hunter2" not in str(told.value)


WRONG = [
    ("NODE_NAME", "\udcff", "a name of 1 to 200 characters"),  # a byte of the environment that is no UTF-8
    ("JOBS_SOURCE", "\udcff", "a source name of 1 to 200 characters"),
    ("LABELS", "GPU", "at most 32 labels separated by commas"),
    ("LABELS", "a b", "each of 1 to 63 lower-case letters"),
    ("LABELS", ",".join("abcdefghijklmnopqrstuvwxyz0123456"), "at most 32 labels"),
    ("STORE", "mysql://x", "sqlite:///PATH"),
    ("STORE", "onthedot.db", "sqlite:///PATH"),
    ("STORE", "sqlite:///", "sqlite:///PATH"),
    ("HOST", "bad host", "an address or host name"),
    ("PORT", "70000", "a whole number from 0 to 65535"),
    ("PORT", "-1", "a whole number"),
    ("PORT", "8000.5", "a whole number"),
    ("PORT", "eighty", "a whole number"),
    ("ROLES", "api,boss", "api, executor"),
    ("ROLES", ",", "api, executor"),
    ("WORKERS", "0", "a whole number from 1"),
    ("SUPPORTED_EXTENSIONS", "json,exe", "json, yaml, yml, toml"),
    ("GRANULARITY", "fortnight", "second, minute, hour, day"),
    ("GRANULARITY", "0s", "second, minute, hour, day"),
    ("LOG_LEVEL", "LOUD", "DEBUG, INFO, WARNING, ERROR, CRITICAL"),
    ("NEXT_JOB_COUNT", "0", "a whole number from 1"),
    ("LOOKAHEAD", "-2s", "seconds as a number"),
    ("LOOKAHEAD", "2 hours", "seconds as a number"),
    ("POLL_INTERVAL", "0", "from 10ms to 1h"),
    ("LEASE", "1s", "from 2s to 1h"),
    ("GRACE", "soon", "seconds as a number"),
    ("CONCURRENCY", "many", "a whole number from 1"),
    ("FUNCTION_PROCESSES", "0", "a whole number from 1"),
    ("TIMEOUT_SECONDS", "0", "from 1ms to 1d"),
    ("RETENTION", "1s", "from 1m"),
    ("AUTH", "none", "auto"),
    ("AUTH", "oidc", "oidc is not available in this version"),
    ("EGRESS_ALLOW", "10.0.0.0/99", "networks (10.0.0.0/8)"),
    ("EGRESS_ALLOW", "10.0.0.256", "networks (10.0.0.0/8)"),
    ("EGRESS_ALLOW", "http://example.com", "networks (10.0.0.0/8)"),
    ("FUNCTIONS", "not a module", "Python modules whose functions"),
    ("FUNCTIONS", "a.b:c:d", "Python modules whose functions"),
    ("FUNCTIONS", "a.b:", "Python modules whose functions"),
]


@pytest.mark.parametrize(("name", "given", "accepted"), WRONG)
def test_a_wrong_value_is_named_with_what_is_accepted(name, given, accepted, nothing):
    with pytest.raises(SettingsError) as caught:
        load_settings({}, {f"ONTHEDOT_{name}": given}, nothing)
    message = str(caught.value)
    assert message.startswith(f"{name} ($ONTHEDOT_{name}): {given!r} is not valid. Accepted: ")
    assert accepted in message


@pytest.mark.parametrize("written", ["port = true", "port = 1.5", "store = 7", "roles = [1]", "jobs_file_path = ''"])
def test_a_wrong_type_in_the_file_is_refused(written, nothing):
    nothing.write_text(written)
    with pytest.raises(SettingsError, match="is not valid"):
        load_settings({}, {}, nothing)


def test_a_name_in_small_letters_is_near_to_the_one_in_capitals(nothing):
    with pytest.raises(SettingsError, match=r"\$ONTHEDOT_port: unknown setting\. Did you mean ONTHEDOT_PORT\?"):
        load_settings({}, {"ONTHEDOT_port": "1"}, nothing)


def test_all_mistakes_are_told_at_once(nothing):
    nothing.write_text('lease = "1s"\ncolour = "red"\n')
    with pytest.raises(SettingsError) as caught:
        load_settings({"port": "x"}, {"ONTHEDOT_LOG_LEVEL": "LOUD", "ONTHEDOT_PROT": "1"}, nothing)
    told = str(caught.value).splitlines()
    assert sorted(line.split(" ")[0].rstrip(":") for line in told) == [
        "$ONTHEDOT_PROT",
        "LEASE",
        "LOG_LEVEL",
        "PORT",
        "colour",
    ]


@pytest.mark.parametrize(
    "tables",
    [
        "backup",
        {"backup": "pg_dump"},
        {"backup": {}},
        {"backup": {"argv": []}},
        {"backup": {"argv": [""]}},
        {"backup": {"argv": "pg_dump otd"}},
        {"backup": {"argv": ["x"], "shell": True}},
        {"backup": {"argv": ["x"], "env": {"A": 1}}},
        {"no good name": {"argv": ["x"]}},
    ],
)
def test_a_wrong_command_says_what_a_command_is(tables):
    with pytest.raises(SettingsError, match=r"tables \[commands\.NAME\] with argv"):
        read_commands(tables)


@pytest.mark.parametrize(
    ("written", "seconds"), [("second", 1), ("minutes", 60), ("HOUR", 3600), ("day", 86400), ("250ms", 0.25), ("5", 5)]
)
def test_granularity_is_a_word_or_a_duration(written, seconds, nothing):
    assert load_settings({}, {"GRANULARITY": written}, nothing).granularity.seconds == seconds


@pytest.mark.parametrize(("written", "seconds"), [("3", 3.0), ("0.5", 0.5), ("10s", 10.0), ("1m", 60.0)])
def test_timeout_seconds_is_in_seconds(written, seconds, nothing):
    assert load_settings({}, {"ONTHEDOT_TIMEOUT_SECONDS": written}, nothing).timeout_seconds == seconds


@pytest.mark.parametrize(
    ("name", "given", "accepted"),
    [
        ("ROOT_PATH", "scheduler", "a path such as /scheduler"),
        ("ROOT_PATH", "/a/../b", "a path such as /scheduler"),
        ("ROOT_PATH", '/"><script>', "a path such as /scheduler"),
        ("TRUSTED_PROXIES", "proxy.internal", "addresses and networks"),
    ],
)
def test_where_a_proxy_may_be_is_checked(name, given, accepted, nothing):
    with pytest.raises(SettingsError, match=f"{name}.*{accepted}"):
        load_settings({}, {f"ONTHEDOT_{name}": given}, nothing)


def test_a_prefix_has_no_slash_at_its_end(nothing):
    given = {"ONTHEDOT_ROOT_PATH": "/jobs/", "ONTHEDOT_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8,::1"}
    settings = load_settings({}, given, nothing)
    assert settings.root_path == "/jobs"
    assert settings.trusted_proxies == ("127.0.0.1", "10.0.0.0/8", "::1")
    assert load_settings({}, {"ONTHEDOT_ROOT_PATH": "/"}, nothing).root_path == ""
