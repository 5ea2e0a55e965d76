"""[brokers.NAME]: what is read from a URL, what is wrong, and that no password is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from onthedot.errors import SettingsError
from onthedot.settings import BrokerAddress, BrokerSetting, Settings, WrongBroker, load_settings


def loaded(tables: Any, tmp_path: Path) -> Settings:
    (tmp_path / "none.toml").write_text("")
    return load_settings({}, environ={"ONTHEDOT_BROKERS": json.dumps(tables)}, file=tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("nats://h", BrokerAddress(client="nats", tls=False, hosts=(("h", 4222),))),
        (
            "nats+tls://u:p%40s%2Fs@h1:1,h2",
            BrokerAddress(client="nats", tls=True, hosts=(("h1", 1), ("h2", 4222)), user="u", password="p@s/s"),
        ),
        (
            "redis://:p@[::1]/3",
            BrokerAddress(client="redis", tls=False, hosts=(("::1", 6379),), user="", password="p", path="3"),
        ),
        (
            "amqps://u@h/my%2Fhost?exchange=events",
            BrokerAddress(
                client="rabbitmq",
                tls=True,
                hosts=(("h", 5671),),
                user="u",
                path="my/host",
                options={"exchange": "events"},
            ),
        ),
        (
            "kafka://h1:9092,h2:9093?mechanism=SCRAM-SHA-256",
            BrokerAddress(
                client="kafka",
                tls=False,
                hosts=(("h1", 9092), ("h2", 9093)),
                options={"mechanism": "SCRAM-SHA-256"},
            ),
        ),
        (
            "sqs://eu-west-1?endpoint=http://127.0.0.1:5000",
            BrokerAddress(
                client="sqs", tls=True, hosts=(("eu-west-1", 443),), options={"endpoint": "http://127.0.0.1:5000"}
            ),
        ),
    ],
)
def test_a_url_says_where_the_broker_is(url: str, address: BrokerAddress, tmp_path: Path):
    setting = loaded({"it": {"url": url}}, tmp_path).brokers["it"]
    assert setting.login() == address
    assert setting.client == address.client


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "brokers.it.url: required field is missing"),
        ({"url": "http://secret@h"}, "must begin with one of nats://"),
        ({"url": "nats://u:secret@"}, "no valid host"),
        ({"url": "nats://u:secret@h:99x"}, "no valid host"),
        ({"url": "redis://u:secret@h1,h2"}, "exactly one host"),
        ({"url": "nats://u:secret@h?maxlen=3"}, "unknown option 'maxlen'"),
        ({"url": "redis://u:secret@h/first"}, "a database number"),
        ({"url": "redis://u:secret@h?maxlen=many"}, "the option maxlen of its url is not valid"),
        ({"url": "kafka://u:secret@h?mechanism=GSSAPI"}, "the option mechanism"),
        ({"url": "nats://h", "colour": "secret"}, "brokers.it.colour: unknown field"),
        ({"url": "nats://h", "ca": "ca.pem"}, "that uses TLS"),
        ({"url": "amqps://h", "cert": "c.pem"}, "must be set together"),
        ({"url": "nats://h", "password_file": "a", "password_env": "b"}, "both"),
        ({"url": 3}, "brokers.it.url: expected text, not a whole number"),
    ],
)
def test_what_is_wrong_is_said_without_the_url(table: dict[str, Any], said: str, tmp_path: Path):
    with pytest.raises(SettingsError) as wrong:
        loaded({"it": table}, tmp_path)
    text = str(wrong.value)
    assert "brokers.it" in text
    assert said in text
    assert "secret" not in text


@pytest.mark.parametrize("value", ["[]", '{"a b": {"url": "nats://u:secret@h"}}', '{"a": "nats://u:secret@h"}', "{"])
def test_what_is_no_table_of_brokers_is_refused(value: str, tmp_path: Path):
    (tmp_path / "none.toml").write_text("")
    with pytest.raises(SettingsError) as wrong:
        load_settings({}, environ={"ONTHEDOT_BROKERS": value}, file=tmp_path / "none.toml")
    assert "secret" not in str(wrong.value)


def test_the_file_has_a_table_for_each(tmp_path: Path):
    (tmp_path / "onthedot.toml").write_text('[brokers.orders]\nurl = "nats://u@h"\npassword_env = "ORDERS_PASSWORD"\n')
    setting = load_settings({}, environ={}, file=tmp_path / "onthedot.toml").brokers["orders"]
    with pytest.raises(WrongBroker, match="ORDERS_PASSWORD is not set"):
        setting.login()


def test_a_password_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    secret = tmp_path / "secret"
    by_file = BrokerSetting(url="nats://u@h", password_file=str(secret))
    with pytest.raises(WrongBroker, match="password_file can't be read"):
        by_file.login()
    for password in ("first", "second"):
        secret.write_text(f"{password}\n")
        assert by_file.login().password == password
    monkeypatch.setenv("ORDERS_PASSWORD", "third")
    assert BrokerSetting(url="nats://u:old@h", password_env="ORDERS_PASSWORD").login().password == "third"


def test_no_text_of_it_has_the_password():
    setting = BrokerSetting(url="nats://u:secret@h:1?x=y")
    assert repr(setting) == "BrokerSetting(nats://h:1)"
    with_login = BrokerSetting(url="nats://u:secret@h:1")
    assert "secret" not in repr(with_login.login()) + str(Settings(brokers={"it": with_login}))
    assert "secret" not in repr(BrokerSetting(url="u:secret@h"))


def test_settings_reach_a_worker_process():
    brokers = {"it": BrokerSetting(url="nats://u:p@h", password_env="X")}
    assert msgspec.json.decode(msgspec.json.encode(brokers), type=dict[str, BrokerSetting]) == brokers
