"""The tables of the settings: with the names that users rely on and nothing besides, in the file, and the same as JSON
in the environment."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from onthedot.errors import SettingsError
from onthedot.settings import Settings, load_settings

TABLES = {
    "commands": '[commands.backup]\nargv = ["/usr/bin/true", "--all"]\n',
    "brokers": "".join(
        f'[brokers.{name}]\nurl = "{url}"\n'
        for name, url in {
            "a": "kafka://kafka.example:9092",
            "b": "amqp://rabbit.example",
            "c": "nats://nats.example",
            "d": "redis://redis.example",
            "e": "sqs://eu-central-1",
        }.items()
    ),
    "intake": '[intake.orders]\nbroker = "a"\ntopic = "jobs"\ndead_letter = "jobs.refused"\n',
    "scripts": '[scripts]\ninterpreters = {python = "/usr/bin/python3"}\nmemory = "512M"\nnetwork = true\n',
    "containers": '[containers]\nsocket = "/var/run/docker.sock"\nimages = ["registry.example/*"]\n',
    "kubernetes": '[kubernetes]\ncontext = "prod"\nnamespace = "jobs"\n'
    '[kubernetes.templates.small.spec]\ncontainers = [{name = "main", image = "alpine:3"}]\n',
    "aws": '[aws]\nregion = "eu-central-1"\nendpoint = "http://127.0.0.1:5000"\n',
    "workflows": '[workflows.etl]\nurl = "https://airflow.example"\ntoken = "t"\n',
    "channels": '[channels.ops]\nurl = "https://hooks.example/1"\n'
    '[channels.pager]\ncommand = ["/usr/bin/page", "--now"]\n',
    "alerts": '[alerts.nightly]\nmatch = {tag = "night", owner = "data", target = "webhook"}\n'
    'on = ["failed", "dead", "late", "missed", "too_long", "in_a_row", "unroutable", "node_lost", "recovered"]\n'
    'channels = ["ops"]\nquiet = "22:00-06:00"\nrepeat = "1h"\n',
    "certificates": '[certificates.partner]\ncert = "c.pem"\nkey = "k.pem"\nca = "ca.pem"\n',
}
"""What everybody may write. Further names are described in docs/settings.md."""


def loaded(name: str, text: str, directory: Path, *, by_environment: bool) -> Settings:
    environ = {}
    if name == "alerts":  # rules name channels
        environ["ONTHEDOT_CHANNELS"] = json.dumps(tomllib.loads(TABLES["channels"])["channels"])
    if by_environment:
        return load_settings(environ=environ | {f"ONTHEDOT_{name.upper()}": json.dumps(tomllib.loads(text)[name])})
    (directory / "onthedot.toml").write_text(text)
    return load_settings(environ=environ, file=directory / "onthedot.toml")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_the_same_from_the_file_and_as_json(name: str, tmp_path: Path):
    by_file, by_environment = (
        getattr(loaded(name, TABLES[name], tmp_path, by_environment=each), name) for each in (False, True)
    )
    assert by_file == by_environment
    assert by_file != getattr(Settings(), name)


@pytest.mark.parametrize("by_environment", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_an_unknown_name_in_a_table_is_refused_by_its_name(name: str, by_environment: bool, tmp_path: Path):
    table = tomllib.loads(TABLES[name])[name]
    inner: dict[str, Any] = (
        table if name in ("scripts", "containers", "kubernetes", "aws") else next(iter(table.values()))
    )
    inner["colour"] = "red"
    with pytest.raises(SettingsError) as raised:
        loaded(name, _toml(name, table), tmp_path, by_environment=by_environment)
    assert name.upper() in str(raised.value)
    assert "colour" in str(raised.value)


@pytest.mark.parametrize("by_environment", [False, True])
@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            "commands",
            '[commands.ls]\narg = ["ls"]',
            "commands.ls.arg: unknown field; did you mean argv? Accepted: tables",
        ),
        ("commands", 'commands = {ls = "df"}', "commands.ls: expected an object, not text. Accepted: tables"),
        ("commands", '[commands.ls]\nargv = "ls"', "commands.ls.argv: expected a list, not text. Accepted: tables"),
        ("commands", '[commands.ls]\nargv = ["ls", 1]', "commands.ls.argv[1]: expected text, not a whole number. "),
        ("brokers", '[brokers.k]\nurk = "nats://a"', "brokers.k.urk: unknown field; did you mean url? Accepted"),
        (
            "intake",
            '[intake.i]\nbroker = "k"\ntopic = "t"',
            "intake.i.dead_letter: required field is missing. Accepted",
        ),
        ("scripts", '[scripts]\nmemry = "1G"', "scripts.memry: unknown field; did you mean memory? Accepted"),
        ("containers", '[containers]\nsocet = "/s"', "containers.socet: unknown field; did you mean socket? Accepted"),
        (
            "containers",
            '[containers.registries."a.example"]\nuser = "u"',
            "containers.registries.a.example.user: unknown field; did you mean username? Accepted",
        ),
        (
            "kubernetes",
            '[kubernetes]\ncontxt = "c"',
            "kubernetes.contxt: unknown field; did you mean context? Accepted",
        ),
        ("aws", '[aws]\nregin = "eu-central-1"', "aws.regin: unknown field; did you mean region? Accepted: a table"),
        ("workflows", '[workflows.w]\nuri = "http://w"', "workflows.w.uri: unknown field; did you mean url? Accepted"),
        (
            "workflows",
            '[workflows.w]\nurl = "http://w"\ntype = "luigi"',
            "workflows.w.type: is not an accepted value (one of airflow, argo or null). Accepted",
        ),
        ("channels", '[channels.ops]\nuri = "http://w"', "channels.ops.uri: unknown field; did you mean url? Accepted"),
        (
            "alerts",
            '[alerts.a]\non = ["failed"]\nmatch = {tg = "x"}',
            "alerts.a.match.tg: unknown field; did you mean tag? Accepted",
        ),
        (
            "certificates",
            '[certificates.c]\ncrt = "f"',
            "certificates.c.crt: unknown field; did you mean cert? Accepted",
        ),
    ],
)
def test_a_wrong_field_is_named_by_its_path_with_the_nearest_name(
    name: str, text: str, told: str, by_environment: bool, tmp_path: Path
):
    with pytest.raises(SettingsError) as raised:
        loaded(name, text, tmp_path, by_environment=by_environment)
    origin = f"$ONTHEDOT_{name.upper()}" if by_environment else str(tmp_path / "onthedot.toml")
    assert str(raised.value).startswith(f"{name.upper()} ({origin}): {told}")


def test_a_secret_of_a_wrong_table_is_not_repeated(tmp_path: Path):
    text = '[workflows.w]\nurl = "http://w"\ntoken = ["s3cret"]\npasword = "s3cret"'
    with pytest.raises(SettingsError, match=r"workflows\.w\.(token|pasword)") as raised:
        loaded("workflows", text, tmp_path, by_environment=False)
    assert "s3cret" not in str(raised.value)


def _toml(name: str, table: dict[str, Any]) -> str:
    """Written inline: every value on the one line of its table."""
    return f"{name} = {_inline(table)}\n"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return msgspec.json.encode(value).decode()


@pytest.mark.parametrize("given", ["[[1, 2]]", '{"interpreters": [["python", "/usr/bin/python3"]]}'])
def test_a_list_of_pairs_is_no_table(given: str, tmp_path: Path):
    with pytest.raises(SettingsError, match=r"ONTHEDOT_SCRIPTS.*Accepted: a table"):
        load_settings({}, {"ONTHEDOT_SCRIPTS": given}, tmp_path / "none.toml")
