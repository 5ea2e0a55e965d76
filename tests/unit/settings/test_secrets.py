"""POSTGRES_* make STORE, NAME_FILE is read from a file, and every table works as JSON in the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onthedot.errors import SettingsError
from onthedot.service.settings_in_force import _shown
from onthedot.settings import Settings, load_settings
from onthedot.store.postgres.address import parse_address


@pytest.fixture
def load(tmp_path: Path):
    def load(flags: dict[str, Any] | None = None, toml: str = "", **environ: str) -> Settings:
        (tmp_path / "onthedot.toml").write_text(toml)
        return load_settings(flags, environ, tmp_path / "onthedot.toml")

    return load


WHOLE = {
    "POSTGRES_USER": "scheduler",
    "POSTGRES_PASSWORD": "p@ss/w:rd?%",
    "POSTGRES_DB": "jobs",
    "POSTGRES_HOST": "db",
    "POSTGRES_PORT": "5433",
}


@pytest.mark.parametrize("prefix", ["", "ONTHEDOT_"])
def test_the_parts_make_the_store(load, prefix):
    settings = load(**{f"{prefix}{name}": value for name, value in WHOLE.items()})
    assert settings.store == "postgresql://scheduler:p%40ss%2Fw%3Ard%3F%25@db:5433/jobs"
    assert "store" in settings.given
    assert settings.origins["store"] == f"${prefix}POSTGRES_HOST"
    assert parse_address(settings.store).shown() == "db:5433/jobs"


@pytest.mark.parametrize(
    ("environ", "store"),
    [
        ({"POSTGRES_HOST": "db"}, "postgresql://postgres@db:5432/postgres"),
        ({"POSTGRES_USER": "anna"}, "postgresql://anna@localhost:5432/anna"),
        ({"POSTGRES_DB": "a b"}, "postgresql://postgres@localhost:5432/a%20b"),
        ({"POSTGRES_HOST": "a,b"}, "postgresql://postgres@a:5432,b:5432/postgres"),
        ({"POSTGRES_HOST": "fd00::1"}, "postgresql://postgres@[fd00::1]:5432/postgres"),
        ({"POSTGRES_HOST": "/run/pg"}, "postgresql://postgres@/postgres?host=%2Frun%2Fpg&port=5432"),
        ({"POSTGRES_HOST": "a", "ONTHEDOT_POSTGRES_HOST": "b"}, "postgresql://postgres@b:5432/postgres"),
        ({"POSTGRES_PASSWORD": "for-somebody-else", "POSTGRES_PORT": "5432"}, "sqlite:///onthedot.db"),
        ({"POSTGRES_HOST": "db", "ONTHEDOT_STORE": "sqlite:///x.db"}, "sqlite:///x.db"),
        ({"POSTGRES_HOST": "", "POSTGRES_USER": ""}, "sqlite:///onthedot.db"),
    ],
)
def test_which_store_is_meant(load, environ, store):
    assert load(**environ).store == store


def test_a_store_of_the_file_or_a_flag_wins(load):
    assert load({"store": "sqlite:///f.db"}, POSTGRES_HOST="db").store == "sqlite:///f.db"
    assert load(toml='store = "sqlite:///t.db"', POSTGRES_HOST="db", POSTGRES_PORT="x").store == "sqlite:///t.db"
    assert load(toml='postgres_host = "db"\npostgres_user = "u"').store == "postgresql://u@db:5432/u"


def test_parts_in_files(load, tmp_path):
    (tmp_path / "password").write_text("s3cret \n")
    (tmp_path / "user").write_text("anna\r\n")
    files = {
        "POSTGRES_PASSWORD_FILE": str(tmp_path / "password"),
        "ONTHEDOT_POSTGRES_USER_FILE": str(tmp_path / "user"),
    }
    assert load(POSTGRES_HOST="db", **files).store == "postgresql://anna:s3cret%20@db:5432/anna"


def test_an_admin_key_in_a_file(load, tmp_path):
    (tmp_path / "key").write_text("otd_0123456789abcdef\n")
    assert load(ONTHEDOT_ADMIN_KEY_FILE=str(tmp_path / "key")).admin_key == "otd_0123456789abcdef"
    assert load(toml=f'admin_key_file = "{tmp_path / "key"}"').admin_key == "otd_0123456789abcdef"
    assert load(ONTHEDOT_ADMIN_KEY="otd_0123456789abcdef").admin_key == "otd_0123456789abcdef"


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        ({"POSTGRES_HOST": "a b"}, r"POSTGRES_HOST \(\$POSTGRES_HOST\): 'a b' is not valid\. Accepted: a host name"),
        ({"POSTGRES_HOST": "a", "POSTGRES_PORT": "0"}, r"POSTGRES_PORT .* from 1 to 65535"),
        (
            {"POSTGRES_HOST": "a", "POSTGRES_USER_FILE": "/no/such"},
            r"POSTGRES_USER_FILE .*can't be read: .*No such file",
        ),
        ({"ONTHEDOT_ADMIN_KEY_FILE": "/dev/null"}, r"ADMIN_KEY_FILE .* must have 1 to 4096 characters"),
        (
            {"ONTHEDOT_ADMIN_KEY_FILE": "/dev/null", "ONTHEDOT_ADMIN_KEY": "x" * 20},
            r"ADMIN_KEY_FILE .*ADMIN_KEY \(\$ONTHEDOT_ADMIN_KEY\) is set too; set only one",
        ),
        ({"ONTHEDOT_ADMIN_KEY": "tooshort"}, r"ADMIN_KEY \(.*\): the value is not valid\. Accepted: 16 to 200"),
        ({"ONTHEDOT_POSTGRES_HOTS": "db"}, r"unknown setting\. Did you mean ONTHEDOT_POSTGRES_HOST\?"),
    ],
)
def test_what_is_wrong_is_told_without_the_secret(load, environ, told):
    with pytest.raises(SettingsError, match=told) as error:
        load(**environ)
    assert "tooshort" not in str(error.value)


def test_the_admin_key_is_never_shown():
    settings = Settings(admin_key="otd_0123456789abcdef")
    assert _shown("admin_key", settings.admin_key) == "••••••"
    assert _shown("admin_key", None) == "none"


TABLES = {
    "COMMANDS": '{"b": {"argv": ["/bin/echo", "x"], "env": {"A": "1"}, "cwd": "/", "inherit_env": ["PATH"]}}',
    "BROKERS": '{"b": {"url": "nats://n"}}',
    "INTAKE": '{"i": {"broker": "b", "topic": "t", "dead_letter": "d"}}',
    "SCRIPTS": '{"memory": "2G"}',
    "CONTAINERS": '{"images": ["r.example/*"]}',
    "KUBERNETES": '{"namespace": "n", "templates": {"t": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}}',
    "AWS": '{"region": "eu-central-1"}',
    "WORKFLOWS": '{"w": {"url": "https://a.example", "type": "airflow", "token": "t"}}',
    "CERTIFICATES": '{"c": {"ca": "ca.pem"}}',
    "TARGETS": '{"p": {"x": 1}}',
}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_table_is_read_as_json_from_the_environment(load, name):
    settings = load(**{f"ONTHEDOT_{name}": TABLES[name]})
    assert name.lower() in settings.given
    assert getattr(settings, name.lower()) != getattr(Settings(), name.lower())


def test_commands_as_json_are_those_of_the_file(load):
    toml = '[commands.b]\nargv = ["/bin/echo", "x"]\nenv = { A = "1" }\ncwd = "/"\ninherit_env = ["PATH"]\n'
    assert load(ONTHEDOT_COMMANDS=TABLES["COMMANDS"]).commands == load(toml=toml).commands


def test_a_wrong_command_in_json_is_told_with_its_place(load):
    with pytest.raises(SettingsError, match=r"commands\.b\.argv is missing the program"):
        load(ONTHEDOT_COMMANDS='{"b": {"argv": []}}')
